//! The fault matrix: every request of the methods that make, change and delete,
//! times everything that can go wrong with it, against the table in
//! `tests/cases/openstack-faults.txt`. Each cell also shows that nothing is left
//! behind (`faults`).
//!
//! All of it runs on the simulator, in several clouds at a time. On real services
//! there is a choice that fits into a test's time: answers that get lost after
//! something was changed there, and at a new server also a reset before that, an
//! answer that never comes, and a call that is stopped.

use super::faults::{Kind, Play, Scene, line};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use tests::dist;
use tests::openstack::{Gateway, Real, Rule, Service, Simulator, alone};

const TABLE: &str = include_str!("../../../cases/openstack-faults.txt");
/// Calls wait more than they compute.
const CLOUDS: usize = 24;

#[test]
fn every_fault_at_every_request_ends_as_the_table_says_and_leaves_nothing() {
    let rows = rows();
    let cells: Vec<(usize, usize)> =
        (0..rows.len()).flat_map(|row| (0..Kind::ALL.len()).map(move |kind| (row, kind))).collect();
    let (queue, done) = (Mutex::new(cells), Mutex::new(BTreeMap::new()));
    std::thread::scope(|threads| {
        for _ in 0..CLOUDS {
            threads.spawn(|| {
                let gateway = Gateway::start(Simulator::new());
                let mut scene = Scene::new(&gateway);
                while let Some((row, kind)) = next(&queue) {
                    let (play, nth, _) = &rows[row];
                    let mut cell = || scene.cell(*play, Some(Rule::any().nth(*nth)), Kind::ALL[kind]);
                    // All that is wrong shows in the table, not only the first of it.
                    let ending = catch_unwind(AssertUnwindSafe(&mut cell)).unwrap_or_else(|_| {
                        gateway.clear_faults();
                        "PANIC".to_owned()
                    });
                    if let Ok(mut done) = done.lock() {
                        done.insert((row, kind), ending);
                    }
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_default();
    let mut table = heading();
    for (row, (play, _, request)) in rows.iter().enumerate() {
        let cells = (0..Kind::ALL.len()).map(|kind| done.get(&(row, kind)).map_or("?", String::as_str));
        table += &written(&format!("{play:?}"), request, &cells.collect::<Vec<_>>());
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        return tests::job::write(&dist::root().join("tests/cases/openstack-faults.txt"), table.as_bytes());
    }
    assert!(
        table == TABLE,
        "this is not what tests/cases/openstack-faults.txt says, or UPDATE_EXPECT=1 writes:\n{table}"
    );
}

fn next(queue: &Mutex<Vec<(usize, usize)>>) -> Option<(usize, usize)> {
    queue.lock().ok()?.pop()
}

/// Each request of each play: which it is, and what it asks.
fn rows() -> Vec<(Play, usize, String)> {
    let gateway = Gateway::start(Simulator::new());
    let mut scene = Scene::new(&gateway);
    let mut rows = Vec::new();
    for play in Play::ALL {
        let requests = scene.requests(play).into_iter().enumerate();
        rows.extend(requests.map(|(at, request)| (play, at + 1, request)));
    }
    rows
}

fn heading() -> String {
    let about = "# How a call ends when this goes wrong at one of its requests. `+`: the Director tries again.\n";
    let names: Vec<String> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    about.to_owned() + &written("# call", "request", &names.iter().map(String::as_str).collect::<Vec<_>>())
}

fn written(play: &str, request: &str, cells: &[&str]) -> String {
    let mut text = format!("{play:17} {request:42}");
    for cell in cells {
        let _ = write!(text, " {cell:17}");
    }
    text.trim_end().to_owned() + "\n"
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that does nothing has to say so")]
fn what_is_lost_before_real_services_ends_as_the_table_says_and_leaves_nothing() {
    let Some(real) = Real::from_environment() else {
        eprintln!("NOT RUN on real services: no cloud is named");
        return;
    };
    let _alone = alone();
    let gateway = Gateway::start(real);
    let mut scene = Scene::new(&gateway);
    let both = [Kind::ResetBefore, Kind::ResetAfter];
    for (play, service, method, path, kinds) in [
        (Play::CreateStemcell, Service::Identity, "POST", "/auth/tokens", &both[..1]),
        (Play::CreateVm, Service::Network, "POST", "/ports", &both[1..]),
        (Play::CreateVm, Service::Compute, "POST", "/servers", &[Kind::ResetBefore, Kind::ResetAfter, Kind::Timeout]),
        (Play::CreateVm, Service::Network, "PUT", "/floatingips/*", &[Kind::ResetAfter, Kind::Term]),
        (Play::CreateVmOfVolume, Service::Compute, "POST", "/servers", &[Kind::Term]),
        (Play::AttachDisk, Service::Compute, "POST", "/servers/*/os-volume_attachments", &both[1..]),
        (Play::CreateStemcell, Service::Image, "POST", "/images", &both[1..]),
        (Play::CreateStemcell, Service::Image, "PUT", "/images/*/file", &both[1..]),
        (Play::DeleteVm, Service::Compute, "DELETE", "/servers/*", &both[1..]),
        (Play::DeleteVm, Service::Network, "DELETE", "/ports/*", &both[1..]),
        (Play::SnapshotDisk, Service::Volume, "POST", "/snapshots", &both[1..]),
        (Play::CreateNetwork, Service::Network, "POST", "/subnets", &both[1..]),
    ] {
        for kind in kinds {
            let ending = scene.cell(play, Some(Rule::on(service, method, path)), *kind);
            assert_eq!(Some(ending.as_str()), expected(play, &line(method, path), *kind), "{play:?} {path} {kind:?}");
        }
    }
    scene.drop_all();
}

/// What the table has for the first request of that kind.
fn expected(play: Play, request: &str, kind: Kind) -> Option<&'static str> {
    let column = Kind::ALL.iter().position(|other| *other == kind)?;
    let row = TABLE.lines().find(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        words.first() == Some(&format!("{play:?}").as_str())
            && words.get(1..3).map(|two| two.join(" ")) == Some(request.to_owned())
    })?;
    row.split_whitespace().nth(3 + column)
}
