//! Injects the faults of a cell into a call.

use super::Kind;
use rustix::process::Signal;
use tests::gateway::{Fault, Gateway, Hits, Rule, Services, Step};
use tests::{Call, Response};

/// Runs a call with a fault at each of these requests. Each must happen once.
pub(crate) fn call_with_fault<S: Services>(
    gateway: &Gateway<S>,
    steps: &[&Step],
    kind: Kind,
    answer: impl Fn(&Step, &str) -> Fault,
    call: Call<'_>,
) -> Response {
    gateway.clear_records();
    let inject = |step: &&Step| gateway.inject(Rule::step(step), kind.fault(|name| answer(step, name)));
    let injected: Vec<Hits> = steps.iter().map(inject).collect();
    let response = if kind == Kind::Term {
        let injected = injected.clone();
        call.signal_when(move || injected.iter().any(|hits| hits.count() > 0), Signal::TERM).run()
    } else {
        call.run()
    };
    gateway.clear_faults();
    let happened = injected.iter().all(|hits| hits.count() == 1);
    assert!(happened, "{kind:?} at {steps:?} was not injected: {}\n{}", response.json, response.stderr);
    response
}

/// Sorts the requests of each run. The guest sends some of a run at once, so that their order varies.
pub(crate) fn sort_runs(requests: &mut [Step], are_in_one: impl Fn(&Step, &Step) -> bool) {
    for run in requests.chunk_by_mut(|one, next| are_in_one(one, next)) {
        run.sort_by(|one, other| (&one.request, one.nth, one.poll).cmp(&(&other.request, other.nth, other.poll)));
    }
}
