//! Calls that end early, by a signal or because the caller is gone. Nothing is left in the cloud,
//! so that the same call succeeds when it is made again.

use super::{Cpi, GUARD, small_vm};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tests::CLOUD_ERROR;
use tests::audit::{audited, last_call};
use tests::lost_caller::{Abandoned, Leaves, Stdout, run_within};
use tests::openstack::{Contents, Fault, Gateway, Hits, Rule, Service, on_each_cloud};

const ADDRESS: &str = "10.0.0.41";

/// A tenant with a stemcell.
struct Fixture<'g> {
    cpi: Cpi<'g>,
    stemcell: String,
    before: Contents,
}

impl<'g> Fixture<'g> {
    fn new(gateway: &'g Gateway) -> Fixture<'g> {
        let mut cpi = Cpi::new(gateway);
        cpi.job = audited(cpi.job);
        let stemcell = cpi.stemcell();
        let before = cpi.api.contents();
        Fixture { cpi, stemcell, before }
    }

    fn vm(&self) -> Value {
        small_vm(&self.cpi, &self.stemcell, ADDRESS)
    }

    /// Makes the guest wait for a server that exists: it reads once that the server is not ready.
    fn make_wait(&self) -> Hits {
        let building = json!({"server": {"id": "x", "status": "BUILD"}}).to_string();
        self.cpi.gateway.inject(Rule::on(Service::Compute, "GET", "/servers/*"), Fault::Body(building.into()))
    }

    fn abandon(&self, method: &str, arguments: Value, stdout: Stdout, leaves: &Leaves<'_>) -> Abandoned {
        let abandoned = run_within(&self.cpi.call(method, arguments), stdout, leaves, GUARD);
        assert_eq!(abandoned.code, Some(1), "{}", abandoned.stderr);
        assert_eq!(last_call(&self.cpi.job)["outcome"], "undelivered", "{}", abandoned.stderr);
        abandoned
    }

    #[track_caller]
    fn check_nothing_left(&self, why: &str) {
        self.cpi.gateway.clear_faults();
        assert_eq!(self.cpi.api.left_behind(&self.before), Vec::<String>::new(), "{why}");
    }

    fn tear_down(self) {
        // The same call succeeds now: neither server nor port have the address.
        let vm = self.cpi.create_vm(self.vm()).0;
        self.cpi.ok("delete_vm", json!([vm]));
        self.check_nothing_left("after all");
        self.cpi.ok("delete_stemcell", json!([self.stemcell]));
    }
}

/// Returns a condition that is true when the services have got a POST, and then have answered everything
/// and got no request for a while, because the guest has returned.
fn is_quiet(gateway: &Gateway) -> impl Fn() -> bool {
    let last = Mutex::new((0, Instant::now()));
    move || {
        let count = gateway.records().len();
        let mut last = last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if count != last.0 || gateway.unanswered() > 0 {
            *last = (count, Instant::now());
        }
        let started = gateway.records().iter().any(|record| record.method == "POST" && !record.path.contains("auth"));
        started && last.1.elapsed() > Duration::from_secs(3)
    }
}

#[test]
fn a_signal_while_a_vm_is_created_leaves_neither_server_nor_port() {
    on_each_cloud(|name, gateway| {
        let fixture = Fixture::new(gateway);
        for (signal, text) in [(Signal::HUP, "SIGHUP"), (Signal::QUIT, "SIGQUIT")] {
            let hits = fixture.make_wait();
            let call = fixture.cpi.call("create_vm", fixture.vm()).guard(GUARD);
            let response = call.signal_when(move || hits.count() > 0, signal).run();
            response.fails(CLOUD_ERROR, &[&format!("{text} ended the call; the guest cleaned up in time")]);
            fixture.check_nothing_left(&format!("{name}, {text}: {}", response.message()));
        }
        fixture.tear_down();
    });
}

#[test]
fn a_caller_that_leaves_while_a_vm_is_created_leaves_neither_server_nor_port() {
    on_each_cloud(|name, gateway| {
        let fixture = Fixture::new(gateway);
        let hits = fixture.make_wait();
        let gone = || hits.count() > 0;
        let abandoned = fixture.abandon("create_vm", fixture.vm(), Stdout::Empty, &Leaves::When(&gone));
        assert!(abandoned.stderr.contains("the guest cleaned up in time"), "{name}: {}", abandoned.stderr);
        fixture.check_nothing_left(name);
        fixture.tear_down();
    });
}

#[test]
fn what_was_created_is_deleted_if_the_response_is_never_read_and_a_stemcell_stays() {
    on_each_cloud(|name, gateway| {
        let mut fixture = Fixture::new(gateway);
        let abandon = |fixture: &Fixture<'_>, method: &str, arguments: Value| {
            gateway.clear_records();
            let quiet = is_quiet(gateway);
            fixture.abandon(method, arguments, Stdout::Full, &Leaves::When(&quiet));
            last_call(&fixture.cpi.job)
        };
        let line = abandon(&fixture, "create_vm", fixture.vm());
        assert_eq!(line["undo"], "deleted", "{name}: {line}");
        fixture.check_nothing_left(name);

        let line = abandon(&fixture, "create_disk", json!([1024, {}, null]));
        assert_eq!(line["undo"], "deleted", "{name}: {line}");
        fixture.check_nothing_left(name);

        let disk = fixture.cpi.cid("create_disk", json!([1024, {}, null]));
        fixture.before = fixture.cpi.api.contents();
        let line = abandon(&fixture, "snapshot_disk", json!([disk, {}]));
        assert_eq!(line["undo"], "deleted", "{name}: {line}");
        fixture.check_nothing_left(name);
        fixture.cpi.ok("delete_disk", json!([disk]));

        let properties = json!({"name": "another", "version": "1", "disk_format": "raw"});
        let line = abandon(&fixture, "create_stemcell", json!([fixture.cpi.image(), properties]));
        assert_eq!(line["undo"], "kept", "{name}: {line}");
        fixture.cpi.ok("delete_stemcell", json!([line["created"]]));
        fixture.cpi.ok("delete_stemcell", json!([fixture.stemcell]));
    });
}

#[test]
fn a_disk_stays_if_the_caller_leaves_after_the_last_byte_of_the_response() {
    on_each_cloud(|name, gateway| {
        let fixture = Fixture::new(gateway);
        let ids = || fixture.cpi.api.volumes().iter().map(|volume| volume["id"].clone()).collect::<Vec<Value>>();
        let before = ids();
        // The response fits into the pipe, and no one ever reads it.
        let call = fixture.cpi.call("create_disk", json!([1024, {}, null]));
        let abandoned = run_within(&call, Stdout::Empty, &Leaves::AfterExit, GUARD);
        assert_eq!(abandoned.code, Some(0), "{name}: {}", abandoned.stderr);
        assert_eq!(last_call(&fixture.cpi.job)["outcome"], "ok");
        let new: Vec<Value> = ids().into_iter().filter(|id| !before.contains(id)).collect();
        assert_eq!(new.len(), 1, "{name}: {new:?}");
        fixture.cpi.ok("delete_disk", json!([new[0]]));
        fixture.check_nothing_left(name);
        fixture.cpi.ok("delete_stemcell", json!([fixture.stemcell]));
    });
}
