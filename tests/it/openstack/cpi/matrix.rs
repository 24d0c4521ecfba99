//! The fault matrix: every request of the methods that make, change and delete,
//! times everything that can go wrong with it, against the table in
//! `tests/cases/openstack-faults.txt`. Each cell also shows that nothing is left
//! behind (`faults`).
//!
//! A row is a request that differs from the one before it. Who waits for a cloud
//! repeats a GET as often as that takes: on the simulator, which always takes the
//! same, each further look is a row marked `again`; real services are struck at the
//! first. They must see the other rows, in their order. What gets lost before them
//! while a VM, a stemcell or an attachment is made or goes must end as the same
//! table says. There, reads that a play survives are lost in one call of it, each
//! once: if that ends well, none of them is fatal.

use super::faults::{Kind, Scene};
use super::plays::Play;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tests::dist;
use tests::openstack::{Gateway, Simulator, Step, Tenant};

const TABLE: &str = include_str!("../../../cases/openstack-faults.txt");
/// Marks a further look.
const AGAIN: &str = " again";

/// Calls wait more than they compute.
const SIMULATORS: usize = 64;
/// Real services compute: more at a time would only take longer each.
const TENANTS: usize = 5;

/// For an answer on either, in seconds: see `Scene`.
const PATIENCE: (u32, u32) = (5, 6);

/// Rows by their places, and what goes wrong at each of them.
type Cell = (Vec<usize>, Kind);
/// By the row's place, and what went wrong.
type Endings = BTreeMap<(usize, String), String>;

struct Row {
    play: Play,
    step: Step,
}

impl Row {
    fn request(&self) -> String {
        self.step.request.clone() + if self.step.look > 1 { AGAIN } else { "" }
    }
}

#[test]
fn every_fault_at_every_request_ends_as_the_table_says_and_leaves_nothing() {
    let gateway = Gateway::start(Simulator::new());
    let scene = Scene::new(&gateway, PATIENCE.0);
    let rows_of = |play: Play| scene.requests(play).into_iter().map(move |step| Row { play, step });
    let rows: Vec<Row> = Play::ALL.into_iter().flat_map(rows_of).collect();
    let cells = (0..rows.len()).flat_map(|row| Kind::ALL.map(|kind| (vec![row], kind)));
    let cells = Mutex::new(cells.collect());
    let endings = Mutex::new(BTreeMap::new());
    std::thread::scope(|threads| {
        for _ in 0..SIMULATORS {
            threads.spawn(|| play(&rows, &cells, &endings, Scene::new(&Gateway::start(Simulator::new()), PATIENCE.0)));
        }
    });
    let endings = endings.into_inner().unwrap_or_default();
    let mut table = heading();
    for (at, row) in rows.iter().enumerate() {
        let cells = Kind::ALL.map(|kind| endings.get(&(at, kind.name())).map_or("?", String::as_str));
        table += &written(&format!("{:?}", row.play), &row.request(), &cells);
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return tests::job::write(&dist::root().join("tests/cases/openstack-faults.txt"), table.as_bytes());
    }
    assert!(
        table == TABLE,
        "this is not what tests/cases/openstack-faults.txt says, or UPDATE_EXPECT=1 writes:\n{table}"
    );
}

/// Plays what is left of the cells, one after the other.
fn play(rows: &[Row], cells: &Mutex<Vec<Cell>>, endings: &Mutex<Endings>, mut scene: Scene<'_>) {
    let mut tidy = true;
    loop {
        let next = lock(cells).pop();
        let Some((at, kind)) = next else { break };
        let steps: Vec<&Step> = at.iter().map(|at| &rows[*at].step).collect();
        // All that is wrong shows in the table, not only the first of it.
        let ending = catch_unwind(AssertUnwindSafe(|| scene.cell(rows[at[0]].play, &steps, kind)));
        let ending = ending.unwrap_or_else(|_| {
            tidy = false;
            scene.settle();
            "PANIC".to_owned()
        });
        lock(endings).extend(at.iter().map(|at| ((*at, kind.name()), ending.clone())));
    }
    if tidy {
        scene.drop_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn heading() -> String {
    let about = "# How a call ends when this goes wrong at one of its requests. `+`: the Director tries again.\n";
    let names = Kind::ALL.map(Kind::name);
    about.to_owned() + &written("# call", "request", &names.each_ref().map(String::as_str))
}

fn written(play: &str, request: &str, cells: &[&str]) -> String {
    let mut text = format!("{play:17} {request:42}");
    for cell in cells {
        let _ = write!(text, " {cell:17}");
    }
    text.trim_end().to_owned() + "\n"
}

/// The table's rows but for further looks, and what each cell of them says.
fn table() -> Vec<(Row, Vec<&'static str>)> {
    let mut rows: Vec<(Row, Vec<&str>)> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [play, method, path, cells @ ..] = words.as_slice() else { panic!("no row: {line}") };
        let play = Play::ALL.into_iter().find(|known| format!("{known:?}") == *play);
        let play = play.unwrap_or_else(|| panic!("no play: {line}"));
        if cells.first() == Some(&AGAIN.trim()) {
            continue;
        }
        let request = format!("{method} {path}");
        let same = |(row, _): &&(Row, _)| row.play == play && row.step.request == request;
        let nth = rows.iter().filter(same).count() + 1;
        rows.push((Row { play, step: Step { request, nth, look: 1 } }, cells.to_vec()));
    }
    rows
}

/// A test of its own, see `afflicted`.
pub(crate) fn what_is_lost_before_real_services() {
    let Some(tenant) = Tenant::take() else { return };
    let (rows, said): (Vec<Row>, Vec<Vec<&str>>) = table().into_iter().unzip();
    let gateway = Gateway::start(tenant.cloud());
    let scene = Scene::new(&gateway, PATIENCE.1);
    for play in Play::ALL {
        let known = rows.iter().filter(|row| row.play == play).map(|row| &row.step);
        let made: Vec<Step> = scene.requests(play).into_iter().filter(|step| step.look == 1).collect();
        assert_eq!(known.cloned().collect::<Vec<_>>(), made, "{play:?}");
    }
    let cells = lost(&rows, &said);
    let (cells, endings) = (Mutex::new(cells), Mutex::new(BTreeMap::new()));
    std::thread::scope(|threads| {
        for _ in 1..TENANTS {
            threads.spawn(|| {
                let Some(tenant) = Tenant::take() else { return };
                play(&rows, &cells, &endings, Scene::new(&Gateway::start(tenant.cloud()), PATIENCE.1));
            });
        }
        play(&rows, &cells, &endings, scene);
    });
    let mut wrong = String::new();
    for ((at, name), ending) in endings.into_inner().unwrap_or_default() {
        let (row, expected) = (&rows[at], expected(&said, at, &name));
        if ending != expected {
            let _ = writeln!(wrong, "{:?} {} {name}: {ending}, and not {expected}", row.play, row.request());
        }
    }
    assert!(wrong.is_empty(), "this is not what tests/cases/openstack-faults.txt says:\n{wrong}");
}

/// What gets lost before real services: every answer, by a reset and for ever. Lost
/// requests, which change nothing there, are the simulator's.
/// A call that is told to stop has most to take back after its last change.
fn lost(rows: &[Row], said: &[Vec<&str>]) -> Vec<Cell> {
    let reads = |at: usize| ["GET ", "POST /auth/"].iter().any(|read| rows[at].step.request.starts_with(read));
    let mut cells: Vec<Cell> = Vec::new();
    let costly = |play: &Play| ["create_vm", "delete_vm", "attach_disk", "create_stemcell"].contains(&play.method());
    for play in Play::ALL.into_iter().filter(costly) {
        let own = || (0..rows.len()).filter(|at| rows[*at].play == play);
        for kind in [Kind::ResetAfter, Kind::Timeout] {
            let survived = |at: &usize| reads(*at) && expected(said, *at, &kind.name()) == "ok";
            let (together, alone): (Vec<usize>, Vec<usize>) = own().partition(survived);
            let alone = alone.into_iter().map(|at| vec![at]);
            cells.extend(alone.chain([together]).filter(|at| !at.is_empty()).map(|at| (at, kind)));
        }
        let last = own().rfind(|at| !reads(*at)).filter(|_| play.method() == "create_vm");
        cells.extend(last.map(|at| (vec![at], Kind::Term)));
    }
    // Those that take longest are taken first, from the end.
    cells.sort_by_key(|(at, kind)| if *kind == Kind::Timeout { at.len() } else { 0 });
    cells
}

fn expected<'a>(said: &[Vec<&'a str>], at: usize, kind: &str) -> &'a str {
    let column = Kind::ALL.iter().position(|known| known.name() == kind);
    column.and_then(|column| said[at].get(column)).copied().unwrap_or_default()
}
