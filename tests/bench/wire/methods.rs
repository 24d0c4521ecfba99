//! Each method without cloud-side waiting, in turns with the peer: every call of the
//! runtime is followed by a process of the peer that sends the same requests.
//!
//! The runtime keeps the token of an earlier call, and the peer logs in. Some passes make
//! the runtime log in, too, to show how much of the difference is the login.

use super::access::Login;
use super::cpi::{Call, Cpi, Site};
use super::peer::{Peer, Run};
use super::script::{self, METHODS};
use crate::Bench;
use crate::report::{Report, Table, Target};
use crate::rounds::{quantile, ratio};
use serde_json::{Value, json};
use std::time::Duration;
use tests::gateway::{Backend as _, Services};

/// What was measured of one method.
#[derive(Default)]
pub(super) struct Method {
    /// Wall times of the runtime and of the peer.
    times: [Vec<Duration>; 2],
    /// The most of any call.
    connections: [usize; 2],
    requests: [usize; 2],
    logins: usize,
    keys: usize,
    /// The most connections of a call, relative to those that it needs.
    pub(super) per_need: f64,
}

impl Method {
    pub(super) fn add<S: Services>(&mut self, call: &Call<S>, run: &Run) {
        for (times, wall) in self.times.iter_mut().zip([call.wall, run.wall]) {
            times.push(wall);
        }
        for (most, count) in self.connections.iter_mut().zip([call.connections, run.connections]) {
            *most = count.max(*most);
        }
        for (most, count) in self.requests.iter_mut().zip([call.exchanges.len(), run.requests]) {
            *most = count.max(*most);
        }
        let keys = call.connection_keys();
        self.logins = self.logins.max(call.logins());
        self.keys = self.keys.max(keys);
        self.per_need = self.per_need.max(call.connections as f64 / call.connections_needed().max(1) as f64);
    }

    fn medians(&self) -> [Duration; 2] {
        self.times.each_ref().map(|times| quantile(times.clone(), 50))
    }

    pub(super) fn ratio(&self) -> f64 {
        let [ours, peer] = self.medians();
        ratio(ours, peer)
    }

    pub(super) fn row(&self, name: &str) -> Vec<Value> {
        let [ours, peer] = self.medians().map(|time| json!((time.as_secs_f64() * 1e4).round() / 10.0));
        let ([requests, peer_requests], [connections, peer_connections]) = (self.requests, self.connections);
        vec![
            json!(name),
            json!(requests),
            json!(connections),
            json!(self.keys),
            json!(self.logins),
            ours,
            json!(peer_requests),
            json!(peer_connections),
            peer,
            json!((self.ratio() * 100.0).round() / 100.0),
        ]
    }
}

pub(super) const COLUMNS: [&str; 10] = [
    "method",
    "requests",
    "connections",
    "connection keys",
    "logins",
    "ms",
    "peer's requests",
    "peer's connections",
    "peer's ms",
    "ratio",
];

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let site = Site::simulated(0);
    let (cpi, cpi_with_logins) = (Cpi::openstack(&site, true)?, Cpi::openstack(&site, false)?);
    let mut login = None;
    // The first pass logs in, and is not measured.
    script::run(bench, &cpi, &site, |_, call| {
        login = login.take().or_else(|| call.exchanges.iter().find(|exchange| exchange.is_login()).cloned());
        Ok(())
    })?;
    let peer = Peer::new(bench, site.recorder.cloud(), Login(login.ok_or("no call has logged in")?));
    let [mut methods, mut methods_with_logins] = [(); 2].map(|()| METHODS.map(|name| (name, Method::default())));
    for pass in 0..if bench.quick { 5 } else { 25 } {
        run_pass(bench, &cpi, &site, &peer, &mut methods)?;
        if pass % 2 == 0 {
            run_pass(bench, &cpi_with_logins, &site, &peer, &mut methods_with_logins)?;
        }
    }
    add(report, &methods);
    let ratio = ratio_of_sums(&methods_with_logins);
    report.figure("all methods with a login in every call vs. Go", ratio, "x", Target::None);
    Ok(())
}

/// Runs each method once, followed by the peer.
fn run_pass(
    bench: &Bench,
    cpi: &Cpi,
    site: &Site,
    peer: &Peer,
    methods: &mut [(&'static str, Method)],
) -> Result<(), String> {
    let mut methods = methods.iter_mut();
    script::run(bench, cpi, site, |name, call| {
        let run = peer.run(bench, name, call)?;
        let (_, method) = methods.next().ok_or("a pass has more calls than methods")?;
        method.add(call, &run);
        Ok(())
    })
}

fn ratio_of_sums(methods: &[(&'static str, Method)]) -> f64 {
    let sum = |which: usize| methods.iter().map(|(_, method)| method.medians()[which]).sum::<Duration>();
    ratio(sum(0), sum(1))
}

fn add(report: &mut Report, methods: &[(&'static str, Method)]) {
    let per_need = methods.iter().map(|(_, method)| method.per_need).fold(0.0, f64::max);
    let name = "connections of a call vs. those for its connection keys and requests at once";
    report.figure(name, per_need, "x", Target::AtMost(1.0));
    report.figure("all methods vs. Go", ratio_of_sums(methods), "x", Target::AtMost(0.8));
    for (name, method) in methods {
        report.figure(format!("{name} vs. Go"), method.ratio(), "x", Target::AtMost(0.9));
    }
    let rows = methods.iter().map(|(name, method)| method.row(name)).collect();
    report.table(Table { name: "methods without cloud-side waiting".to_owned(), columns: COLUMNS.to_vec(), rows });
}
