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

use super::faults::{Fixture, KINDS};
use super::scenarios::Scenario;
use crate::fault_matrix::{AGAIN, Cell, Kind, Matrix, Row};
use std::fmt::Write as _;
use tests::openstack::{Gateway, Simulator, Step, Tenant};

const TABLE: &str = include_str!("../../../cases/openstack-faults.txt");

/// The number of simulators in use. Calls mostly wait, so that many can run at once.
const SIMULATORS: usize = 64;
/// The number of tenants in use. Real services are busy, and more tenants would not be faster.
const TENANTS: usize = 5;

/// The timeout of a response in seconds, on the simulator and on real services: see `Fixture`.
const RESPONSE_TIMEOUT: (u32, u32) = (5, 10);

#[test]
fn every_fault_at_every_request_ends_as_the_table_says_and_leaves_nothing_behind() {
    let gateway = Gateway::start(Simulator::new());
    let fixture = Fixture::new(&gateway, RESPONSE_TIMEOUT.0);
    let rows_of = |scenario: Scenario| fixture.requests(scenario).into_iter().map(move |step| Row { scenario, step });
    let matrix = Matrix::full(Scenario::ALL.into_iter().flat_map(rows_of).collect(), &KINDS);
    std::thread::scope(|threads| {
        for _ in 0..SIMULATORS {
            threads.spawn(|| matrix.run(Fixture::new(&Gateway::start(Simulator::new()), RESPONSE_TIMEOUT.0)));
        }
    });
    matrix.compare(&KINDS, "openstack-faults.txt", TABLE);
}

/// Returns the rows of the table without repetitions, and the cells of each.
fn table() -> Vec<(Row<Scenario>, Vec<&'static str>)> {
    let mut rows: Vec<(Row<Scenario>, Vec<&str>)> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [scenario, method, path, cells @ ..] = columns.as_slice() else { panic!("not a row: {line}") };
        let scenario = Scenario::ALL.into_iter().find(|known| format!("{known:?}") == *scenario);
        let scenario = scenario.unwrap_or_else(|| panic!("unknown scenario: {line}"));
        if cells.first() == Some(&AGAIN.trim()) {
            continue;
        }
        let request = format!("{method} {path}");
        let same = |(row, _): &&(Row<Scenario>, _)| row.scenario == scenario && row.step.request == request;
        let nth = rows.iter().filter(same).count() + 1;
        rows.push((Row { scenario, step: Step { request, nth, poll: 1 } }, cells.to_vec()));
    }
    rows
}

/// `aa_lost_answers` runs this, so that it starts first.
pub(crate) fn check_lost_answers_of_real_services() {
    let Some(tenant) = Tenant::take() else { return };
    let (rows, expected_cells): (Vec<Row<Scenario>>, Vec<Vec<&str>>) = table().into_iter().unzip();
    let gateway = Gateway::start(tenant.cloud());
    let fixture = Fixture::new(&gateway, RESPONSE_TIMEOUT.1);
    for scenario in Scenario::ALL {
        let known = rows.iter().filter(|row| row.scenario == scenario).map(|row| &row.step);
        let made: Vec<Step> = fixture.requests(scenario).into_iter().filter(|step| step.poll == 1).collect();
        assert_eq!(known.cloned().collect::<Vec<_>>(), made, "{scenario:?}");
    }
    let cells = lost_responses(&rows, &expected_cells);
    let matrix = Matrix::new(rows, cells);
    std::thread::scope(|threads| {
        for _ in 1..TENANTS {
            threads.spawn(|| {
                let Some(tenant) = Tenant::take() else { return };
                matrix.run(Fixture::new(&Gateway::start(tenant.cloud()), RESPONSE_TIMEOUT.1));
            });
        }
        matrix.run(fixture);
    });
    let mut wrong = String::new();
    for ((at, name), outcome) in matrix.outcomes() {
        let (row, expected) = (&matrix.rows()[at], expected(&expected_cells, at, name));
        if outcome != expected {
            let _ = writeln!(wrong, "{:?} {} {name}: got {outcome}, expected {expected}", row.scenario, row.request());
        }
    }
    assert!(wrong.is_empty(), "the outcomes differ from tests/cases/openstack-faults.txt:\n{wrong}");
}

/// Returns the cells for real services: every response is lost, by a reset or without an end
/// of the connection. Lost requests change nothing in the cloud and run only on the
/// simulator. SIGTERM arrives after the last change, when there is most to undo.
fn lost_responses(rows: &[Row<Scenario>], expected_cells: &[Vec<&str>]) -> Vec<Cell> {
    let reads = |at: usize| ["GET ", "POST /auth/"].iter().any(|read| rows[at].step.request.starts_with(read));
    let mut cells: Vec<Cell> = Vec::new();
    let has_many_requests =
        |scenario: &Scenario| ["create_vm", "delete_vm", "attach_disk", "create_stemcell"].contains(&scenario.method());
    for scenario in Scenario::ALL.into_iter().filter(has_many_requests) {
        let own = || (0..rows.len()).filter(|at| rows[*at].scenario == scenario);
        for kind in [Kind::ResetAfter, Kind::Timeout] {
            let survived = |at: &usize| reads(*at) && expected(expected_cells, *at, kind.name()) == "ok";
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
    let column = KINDS.iter().position(|known| known.name() == kind);
    column.and_then(|column| expected_cells[at].get(column)).copied().unwrap_or_default()
}
