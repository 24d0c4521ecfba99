//! Injected faults: which requests they affect, and what happens to those.

use super::message::{Request, Response};
use super::service::Services;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A fault of a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The gateway answers; the service does not receive the request.
    Answer(Response),
    /// The service receives the request after this delay.
    Delay(Duration),
    /// The connection is reset; the service does not receive the request.
    ResetBefore,
    /// The service handles the request; then the connection is reset.
    ResetAfter,
    /// The client gets no answer on an open connection; the service does not receive
    /// the request.
    StallBefore,
    /// The service handles the request; the client gets no answer on an open connection.
    StallAfter,
    /// The client gets the service's answer with this body.
    Body(Vec<u8>),
}

/// Matches requests and selects some of them. The default matches every request and
/// selects the first.
#[derive(Clone, Debug)]
pub struct Rule<S> {
    service: Option<S>,
    operation: Option<String>,
    method: Option<String>,
    path: Option<String>,
    skip: usize,
    /// How many requests in a row; the default is one.
    times: Option<usize>,
    /// Replaces `skip` and `times`.
    step: Option<Step>,
}

/// One of the distinct requests of a client. Ids are replaced by `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// `GET /servers/*`, or the name of an operation
    pub request: String,
    /// The number of this request among equal ones, starting at one.
    pub nth: usize,
    /// The number of the poll, starting at one. A client that waits for something
    /// repeats a GET an unknown number of times.
    pub poll: usize,
}

/// Numbers the steps of a client. Every request is a step, but a GET that repeats the
/// previous request is another poll of the same step.
#[derive(Debug, Default)]
pub struct Steps {
    last: Option<(String, Step)>,
    seen: BTreeMap<String, usize>,
}

/// A fault that waits for matching requests.
pub(crate) struct PlannedFault<S> {
    rule: Rule<S>,
    fault: Fault,
    seen: AtomicUsize,
    steps: Mutex<Steps>,
    hits: Arc<AtomicUsize>,
}

/// A fault that applies to the current request.
pub(crate) struct ActiveFault {
    pub(crate) fault: Fault,
    hits: Hits,
}

/// Counts how often a fault happened.
#[derive(Clone, Debug)]
pub struct Hits(Arc<AtomicUsize>);

impl Fault {
    /// Returns a fault that answers with this status, as a proxy in front of a service
    /// does.
    pub fn status(status: u16) -> Fault {
        Fault::Answer(Response::new(status).with("Content-Type", "text/plain"))
    }

    /// Returns a fault that answers 429 with `Retry-After`.
    pub fn too_many(seconds: u32) -> Fault {
        Fault::Answer(Response::new(429).with("Retry-After", &seconds.to_string()))
    }
}

impl<S> Default for Rule<S> {
    fn default() -> Self {
        Rule { service: None, operation: None, method: None, path: None, skip: 0, times: None, step: None }
    }
}

impl<S: Services> Rule<S> {
    /// Matches every request of every service.
    pub fn any() -> Rule<S> {
        Rule::default()
    }

    /// Matches an operation of a service whose requests all have the same method and path.
    pub fn operation(service: S, operation: &str) -> Rule<S> {
        Rule { operation: Some(operation.to_owned()), ..Rule::of(service) }
    }

    /// Matches a method and a path without the service's prefix (`/servers`,
    /// `/volumes/*/action`): `*` matches one part, `**` at the end all further parts.
    pub fn on(service: S, method: &str, path: &str) -> Rule<S> {
        Rule { method: Some(method.to_owned()), path: Some(path.to_owned()), ..Rule::of(service) }
    }

    /// Matches all requests of one service.
    pub fn of(service: S) -> Rule<S> {
        Rule { service: Some(service), ..Rule::default() }
    }

    /// Selects the nth matching request from now on instead of the first.
    #[must_use]
    pub fn nth(self, nth: usize) -> Rule<S> {
        Rule { skip: nth.saturating_sub(1), ..self }
    }

    /// Selects this many requests in a row instead of one.
    #[must_use]
    pub fn times(self, times: usize) -> Rule<S> {
        Rule { times: Some(times), ..self }
    }

    /// Selects one step, as `Steps` numbers them.
    pub fn step(step: &Step) -> Rule<S> {
        Rule { step: Some(step.clone()), ..Rule::default() }
    }

    fn matches(&self, service: S, request: &Request, operation: Option<&str>) -> bool {
        self.service.is_none_or(|wanted| wanted == service)
            && self.operation.as_deref().is_none_or(|wanted| operation == Some(wanted))
            && self.method.as_ref().is_none_or(|method| *method == request.method)
            && self.path.as_ref().is_none_or(|path| path_matches(path, &service.relative(&request.path)))
    }
}

impl<S: Services> PlannedFault<S> {
    pub(crate) fn new(rule: Rule<S>, fault: Fault) -> (PlannedFault<S>, Hits) {
        let hits = Arc::new(AtomicUsize::new(0));
        let planned =
            PlannedFault { rule, fault, seen: AtomicUsize::new(0), steps: Mutex::default(), hits: Arc::clone(&hits) };
        (planned, Hits(hits))
    }

    /// Returns the fault if it applies to this request. `named` is the operation and the form of the request, if the
    /// service has named operations.
    pub(crate) fn activate(&self, service: S, request: &Request, named: Option<(&str, &[u8])>) -> Option<ActiveFault> {
        if !self.rule.matches(service, request, named.map(|(operation, _)| operation)) {
            return None;
        }
        let selected = match &self.rule.step {
            Some(wanted) => {
                let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
                let step = match named {
                    Some((operation, form)) => steps.next_operation(operation, form, service.is_read(operation)),
                    None => steps.next(&request.method, &request.target, &service.relative(&request.path)),
                };
                step == *wanted
            }
            None => {
                let number = self.seen.fetch_add(1, Ordering::SeqCst);
                let end = self.rule.skip.saturating_add(self.rule.times.unwrap_or(1));
                (self.rule.skip..end).contains(&number)
            }
        };
        if !selected {
            return None;
        }
        Some(ActiveFault { fault: self.fault.clone(), hits: Hits(Arc::clone(&self.hits)) })
    }
}

impl ActiveFault {
    /// Counts a fault that happens before the service handles the request.
    pub(crate) fn count_before(&self) {
        self.count_if(!self.happens_after());
    }

    /// Counts a fault that happens after the service has handled the request.
    pub(crate) fn count_after(&self) {
        self.count_if(self.happens_after());
    }

    fn happens_after(&self) -> bool {
        matches!(self.fault, Fault::ResetAfter | Fault::StallAfter)
    }

    fn count_if(&self, happens: bool) {
        if happens {
            self.hits.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Steps {
    /// Returns the step of the next request; the path is without the service's prefix.
    pub fn next(&mut self, method: &str, target: &str, path: &str) -> Step {
        let parts: Vec<&str> = path.split('/').map(|part| if part.len() > 30 { "*" } else { part }).collect();
        self.number(format!("{method} {}", parts.join("/")), target, method == "GET")
    }

    /// Returns the step of the next request to a service with named operations. A read with the same form as the
    /// previous request is another poll.
    pub fn next_operation(&mut self, operation: &str, form: &[u8], is_read: bool) -> Step {
        let target = format!("{operation} {}", String::from_utf8_lossy(form));
        self.number(operation.to_owned(), &target, is_read)
    }

    fn number(&mut self, request: String, target: &str, is_read: bool) -> Step {
        let step = match self.last.take() {
            Some((last, step)) if is_read && last == target => Step { poll: step.poll + 1, ..step },
            _ => {
                let seen = self.seen.entry(request.clone()).or_default();
                *seen += 1;
                Step { request, nth: *seen, poll: 1 }
            }
        };
        self.last = is_read.then(|| (target.to_owned(), step.clone()));
        step
    }
}

impl Hits {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn path_matches(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut parts) = (pattern.split('/'), path.split('/'));
    loop {
        match (wanted.next(), parts.next()) {
            (None, None) => return true,
            (Some("**"), Some(_)) => return true,
            (Some("*"), Some(_)) => {}
            (Some(wanted), Some(part)) if wanted == part => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openstack::Service;

    #[test]
    fn patterns_match_paths() {
        for (pattern, path, fit) in [
            ("/servers", "/servers", true),
            ("/servers", "/servers/a", false),
            ("/servers/*", "/servers/a", true),
            ("/servers/*", "/servers", false),
            ("/servers/*/action", "/servers/a/action", true),
            ("/servers/**", "/servers/a/action", true),
            ("/servers/**", "/servers", false),
        ] {
            assert_eq!(path_matches(pattern, path), fit, "{pattern} {path}");
        }
    }

    #[test]
    fn a_repeated_get_is_another_poll_and_every_other_request_is_a_step() {
        let id = "5f0e7d9a-6f0c-4f9d-9d53-0c9a5c0b7a11";
        let one = format!("/servers/{id}");
        let mut steps = Steps::default();
        for (method, target, request, nth, poll) in [
            ("POST", "/servers", "POST /servers", 1, 1),
            ("POST", "/servers", "POST /servers", 2, 1),
            ("GET", &one, "GET /servers/*", 1, 1),
            ("GET", &one, "GET /servers/*", 1, 2),
            ("GET", &one, "GET /servers/*", 1, 3),
            ("DELETE", &one, "DELETE /servers/*", 1, 1),
            ("DELETE", &one, "DELETE /servers/*", 2, 1),
            ("GET", &one, "GET /servers/*", 2, 1),
            ("GET", "/servers/detail", "GET /servers/detail", 1, 1),
        ] {
            let step = Step { request: request.to_owned(), nth, poll };
            assert_eq!(steps.next(method, target, target), step, "{method} {target}");
        }
        let step = Step { request: "GET /b".to_owned(), nth: 1, poll: 2 };
        let (planned, hits) = PlannedFault::new(Rule::step(&step), Fault::ResetBefore);
        for (target, active) in [("/a", false), ("/b", false), ("/b", true), ("/b", false), ("/a", false)] {
            let request = Request::new("GET", &format!("/v2.1{target}"), Vec::new());
            let one = planned.activate(Service::Compute, &request, None);
            assert_eq!(one.is_some(), active, "{target}");
            one.iter().for_each(|one| one.count_before());
        }
        assert_eq!(hits.count(), 1);
    }

    #[test]
    fn a_read_with_the_same_form_is_another_poll() {
        let mut steps = Steps::default();
        for (operation, form, is_read, nth, poll) in [
            ("RunInstances", "a", false, 1, 1),
            ("RunInstances", "a", false, 2, 1),
            ("DescribeInstances", "a", true, 1, 1),
            ("DescribeInstances", "a", true, 1, 2),
            ("DescribeInstances", "b", true, 2, 1),
            ("TerminateInstances", "b", false, 1, 1),
            ("DescribeInstances", "b", true, 3, 1),
        ] {
            let step = steps.next_operation(operation, form.as_bytes(), is_read);
            assert_eq!((step.nth, step.poll), (nth, poll), "{operation} {form}");
        }
    }

    #[test]
    fn a_rule_for_an_operation_matches_no_other() {
        let rule = Rule::operation(Service::Compute, "RunInstances").times(9);
        let (planned, _) = PlannedFault::new(rule, Fault::ResetBefore);
        let request = Request::new("POST", "/", Vec::new());
        for (named, active) in [(Some("RunInstances"), true), (Some("DescribeInstances"), false), (None, false)] {
            let named = named.map(|operation| (operation, &b""[..]));
            assert_eq!(planned.activate(Service::Compute, &request, named).is_some(), active, "{named:?}");
        }
    }

    #[test]
    fn a_rule_selects_requests_by_their_number() {
        let request = |method: &str, target: &str| Request::new(method, target, Vec::new());
        let rule = Rule::on(Service::Compute, "GET", "/servers/*").nth(2).times(2);
        let (planned, hits) = PlannedFault::new(rule, Fault::ResetBefore);
        let mut active = Vec::new();
        for (service, method, target) in [
            (Service::Compute, "GET", "/v2.1/servers/a"),
            (Service::Compute, "POST", "/v2.1/servers/a"),
            (Service::Network, "GET", "/v2.0/servers/a"),
            (Service::Compute, "GET", "/v2.1/servers/a?x=y"),
            (Service::Compute, "GET", "/v2.1/servers/b"),
            (Service::Compute, "GET", "/v2.1/servers/c"),
        ] {
            active.push(planned.activate(service, &request(method, target), None).is_some());
        }
        assert_eq!(active, [false, false, false, true, true, false]);
        assert_eq!(hits.count(), 0);
    }

    #[test]
    fn a_fault_counts_when_it_happens() {
        for (fault, early, late) in [(Fault::StallBefore, 1, 1), (Fault::StallAfter, 0, 1), (Fault::ResetAfter, 0, 1)] {
            let (planned, hits) = PlannedFault::new(Rule::<Service>::any(), fault);
            let active = planned.activate(Service::Compute, &Request::new("GET", "/v2.1/servers", Vec::new()), None);
            active.iter().for_each(|active| active.count_before());
            assert_eq!(hits.count(), early);
            active.iter().for_each(|active| active.count_after());
            assert_eq!(hits.count(), late);
        }
    }
}
