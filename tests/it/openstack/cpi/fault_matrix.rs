//! The fault matrix: every request of the methods that create, change and delete,
//! combined with every kind of fault, compared with the table in
//! `tests/cases/openstack-faults.txt`. Each cell also checks that nothing is left
//! behind (`faults`).
//!
//! A row is a request that differs from the one before it. GETs between two changes are in
//! the order of their names, as the guest sends some of them at once. The guest repeats a GET while
//! it waits for the cloud. The simulator always needs the same number of them, and each
//! repetition is a row marked `again`. On real services the number varies, so that a fault
//! affects only the first GET, and the other rows must appear in the same order.
//!
//! On real services only responses are lost, and only for the scenarios with VMs,
//! stemcells and attachments. The outcome must be that of the same table. The reads that a
//! scenario survives lose their responses in one call, each once: if the call succeeds,
//! none of them is fatal.

use super::faults::{Fixture, Kind};
use super::scenarios::Scenario;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tests::dist;
use tests::openstack::{Gateway, Simulator, Step, Tenant};

const TABLE: &str = include_str!("../../../cases/openstack-faults.txt");
/// Marks the repetition of a request.
const AGAIN: &str = " again";

/// The number of simulators in use. Calls mostly wait, so that many can run at once.
const SIMULATORS: usize = 64;
/// The number of tenants in use. Real services are busy, and more tenants would not be faster.
const TENANTS: usize = 5;

/// The timeout of a response in seconds, on the simulator and on real services: see `Fixture`.
const RESPONSE_TIMEOUT: (u32, u32) = (5, 10);

/// The indices of rows, and the fault to inject at each of them.
type Cell = (Vec<usize>, Kind);
/// The outcomes by the index of the row and the name of the fault.
type Outcomes = BTreeMap<(usize, String), String>;

struct Row {
    scenario: Scenario,
    step: Step,
}

impl Row {
    fn request(&self) -> String {
        self.step.request.clone() + if self.step.poll > 1 { AGAIN } else { "" }
    }
}

#[test]
fn every_fault_at_every_request_ends_as_the_table_says_and_leaves_nothing_behind() {
    let gateway = Gateway::start(Simulator::new());
    let fixture = Fixture::new(&gateway, RESPONSE_TIMEOUT.0);
    let rows_of = |scenario: Scenario| fixture.requests(scenario).into_iter().map(move |step| Row { scenario, step });
    let rows: Vec<Row> = Scenario::ALL.into_iter().flat_map(rows_of).collect();
    let cells = (0..rows.len()).flat_map(|row| Kind::ALL.map(|kind| (vec![row], kind)));
    let cells = Mutex::new(cells.collect());
    let outcomes = Mutex::new(BTreeMap::new());
    std::thread::scope(|threads| {
        for _ in 0..SIMULATORS {
            threads.spawn(|| {
                run_cells(&rows, &cells, &outcomes, Fixture::new(&Gateway::start(Simulator::new()), RESPONSE_TIMEOUT.0))
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_default();
    let mut table = heading();
    for (at, row) in rows.iter().enumerate() {
        let cells = Kind::ALL.map(|kind| outcomes.get(&(at, kind.name())).map_or("?", String::as_str));
        table += &format_row(&format!("{:?}", row.scenario), &row.request(), &cells);
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return tests::job::write(&dist::root().join("tests/cases/openstack-faults.txt"), table.as_bytes());
    }
    assert!(
        table == TABLE,
        "the outcomes differ from tests/cases/openstack-faults.txt, which UPDATE_EXPECT=1 rewrites:\n{table}"
    );
}

/// Runs the remaining cells, one after the other.
fn run_cells(rows: &[Row], cells: &Mutex<Vec<Cell>>, outcomes: &Mutex<Outcomes>, mut fixture: Fixture<'_>) {
    let mut tidy = true;
    loop {
        let next = lock(cells).pop();
        let Some((at, kind)) = next else { break };
        let steps: Vec<&Step> = at.iter().map(|at| &rows[*at].step).collect();
        // The table shows all differences, not only the first one.
        let outcome = catch_unwind(AssertUnwindSafe(|| fixture.run_cell(rows[at[0]].scenario, &steps, kind)));
        let outcome = outcome.unwrap_or_else(|_| {
            tidy = false;
            fixture.settle();
            "PANIC".to_owned()
        });
        lock(outcomes).extend(at.iter().map(|at| ((*at, kind.name()), outcome.clone())));
    }
    if tidy {
        fixture.tear_down();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn heading() -> String {
    let about = "# The outcome of a call with a fault at one of its requests. `+`: the Director may try again.\n";
    let names = Kind::ALL.map(Kind::name);
    about.to_owned() + &format_row("# call", "request", &names.each_ref().map(String::as_str))
}

fn format_row(scenario: &str, request: &str, cells: &[&str]) -> String {
    let mut text = format!("{scenario:17} {request:42}");
    for cell in cells {
        let _ = write!(text, " {cell:17}");
    }
    text.trim_end().to_owned() + "\n"
}

/// Returns the rows of the table without repetitions, and the cells of each.
fn table() -> Vec<(Row, Vec<&'static str>)> {
    let mut rows: Vec<(Row, Vec<&str>)> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [scenario, method, path, cells @ ..] = columns.as_slice() else { panic!("not a row: {line}") };
        let scenario = Scenario::ALL.into_iter().find(|known| format!("{known:?}") == *scenario);
        let scenario = scenario.unwrap_or_else(|| panic!("unknown scenario: {line}"));
        if cells.first() == Some(&AGAIN.trim()) {
            continue;
        }
        let request = format!("{method} {path}");
        let same = |(row, _): &&(Row, _)| row.scenario == scenario && row.step.request == request;
        let nth = rows.iter().filter(same).count() + 1;
        rows.push((Row { scenario, step: Step { request, nth, poll: 1 } }, cells.to_vec()));
    }
    rows
}

/// `aa_lost_answers` runs this, so that it starts first.
pub(crate) fn check_lost_answers_of_real_services() {
    let Some(tenant) = Tenant::take() else { return };
    let (rows, expected_cells): (Vec<Row>, Vec<Vec<&str>>) = table().into_iter().unzip();
    let gateway = Gateway::start(tenant.cloud());
    let fixture = Fixture::new(&gateway, RESPONSE_TIMEOUT.1);
    for scenario in Scenario::ALL {
        let known = rows.iter().filter(|row| row.scenario == scenario).map(|row| &row.step);
        let made: Vec<Step> = fixture.requests(scenario).into_iter().filter(|step| step.poll == 1).collect();
        assert_eq!(known.cloned().collect::<Vec<_>>(), made, "{scenario:?}");
    }
    let cells = lost_responses(&rows, &expected_cells);
    let (cells, outcomes) = (Mutex::new(cells), Mutex::new(BTreeMap::new()));
    std::thread::scope(|threads| {
        for _ in 1..TENANTS {
            threads.spawn(|| {
                let Some(tenant) = Tenant::take() else { return };
                run_cells(&rows, &cells, &outcomes, Fixture::new(&Gateway::start(tenant.cloud()), RESPONSE_TIMEOUT.1));
            });
        }
        run_cells(&rows, &cells, &outcomes, fixture);
    });
    let mut wrong = String::new();
    for ((at, name), outcome) in outcomes.into_inner().unwrap_or_default() {
        let (row, expected) = (&rows[at], expected(&expected_cells, at, &name));
        if outcome != expected {
            let _ = writeln!(wrong, "{:?} {} {name}: got {outcome}, expected {expected}", row.scenario, row.request());
        }
    }
    assert!(wrong.is_empty(), "the outcomes differ from tests/cases/openstack-faults.txt:\n{wrong}");
}

/// Returns the cells for real services: every response is lost, by a reset or without an end
/// of the connection. Lost requests change nothing in the cloud and run only on the
/// simulator. SIGTERM arrives after the last change, when there is most to undo.
fn lost_responses(rows: &[Row], expected_cells: &[Vec<&str>]) -> Vec<Cell> {
    let reads = |at: usize| ["GET ", "POST /auth/"].iter().any(|read| rows[at].step.request.starts_with(read));
    let mut cells: Vec<Cell> = Vec::new();
    let has_many_requests =
        |scenario: &Scenario| ["create_vm", "delete_vm", "attach_disk", "create_stemcell"].contains(&scenario.method());
    for scenario in Scenario::ALL.into_iter().filter(has_many_requests) {
        let own = || (0..rows.len()).filter(|at| rows[*at].scenario == scenario);
        for kind in [Kind::ResetAfter, Kind::Timeout] {
            let survived = |at: &usize| reads(*at) && expected(expected_cells, *at, &kind.name()) == "ok";
            let (together, alone): (Vec<usize>, Vec<usize>) = own().partition(survived);
            let alone = alone.into_iter().map(|at| vec![at]);
            cells.extend(alone.chain([together]).filter(|at| !at.is_empty()).map(|at| (at, kind)));
        }
        let last = own().rfind(|at| !reads(*at)).filter(|_| scenario.method() == "create_vm");
        cells.extend(last.map(|at| (vec![at], Kind::Term)));
    }
    // Cells are taken from the end, those that take longest first.
    cells.sort_by_key(|(at, kind)| if *kind == Kind::Timeout { at.len() } else { 0 });
    cells
}

fn expected<'a>(expected_cells: &[Vec<&'a str>], at: usize, kind: &str) -> &'a str {
    let column = Kind::ALL.iter().position(|known| known.name() == kind);
    column.and_then(|column| expected_cells[at].get(column)).copied().unwrap_or_default()
}
