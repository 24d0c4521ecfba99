//! Misbehaviour on demand: which requests, and what happens to them.

use super::message::{Request, Response};
use super::service::Service;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What goes wrong with a request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The gateway answers; the service never sees the request.
    Answer(Response),
    /// The service sees it that much later.
    Delay(Duration),
    /// The connection is reset; the service never sees the request.
    ResetBefore,
    /// The service did it all; the client sees a reset.
    ResetAfter,
    /// No answer, on a connection that stays open; the service never sees the request.
    StallBefore,
    /// The same, and the service did it all.
    StallAfter,
    /// The service's answer with another body.
    Body(Vec<u8>),
}

/// Requests that are meant. All of them, unless said otherwise.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    service: Option<Service>,
    method: Option<String>,
    path: Option<String>,
    skip: usize,
    /// How many; one at first.
    times: Option<usize>,
    /// Instead of both.
    step: Option<Step>,
}

/// One of the different requests of a client, whatever it is about: ids are `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// `GET /servers/*`
    pub request: String,
    /// Which of those that look the same, from one.
    pub nth: usize,
    /// Who waits for something looks as often as it takes: which look, from one.
    pub look: usize,
}

/// Tells the steps of a client from each other: every request is one, but a GET
/// that repeats the one before it is another look of the same.
#[derive(Debug, Default)]
pub struct Steps {
    last: Option<(String, Step)>,
    seen: BTreeMap<String, usize>,
}

/// A fault that waits for its requests.
pub(super) struct Planned {
    rule: Rule,
    fault: Fault,
    seen: AtomicUsize,
    steps: Mutex<Steps>,
    hits: Arc<AtomicUsize>,
}

/// A fault that befalls a request.
pub(super) struct Struck {
    pub(super) fault: Fault,
    hits: Hits,
}

/// Tells how often a fault happened.
#[derive(Clone, Debug)]
pub struct Hits(Arc<AtomicUsize>);

impl Fault {
    /// An answer with this status, as a proxy in front of a service would give it.
    pub fn status(status: u16) -> Fault {
        Fault::Answer(Response::new(status).with("Content-Type", "text/plain"))
    }

    /// 429 with `Retry-After`.
    pub fn too_many(seconds: u32) -> Fault {
        Fault::Answer(Response::new(429).with("Retry-After", &seconds.to_string()))
    }
}

impl Rule {
    /// Every request of every service.
    pub fn any() -> Rule {
        Rule::default()
    }

    /// By method and path, which is without the service's prefix (`/servers`,
    /// `/volumes/*/action`): `*` is any one part, `**` at the end all that follow.
    pub fn on(service: Service, method: &str, path: &str) -> Rule {
        Rule { method: Some(method.to_owned()), path: Some(path.to_owned()), ..Rule::of(service) }
    }

    /// All of one service.
    pub fn of(service: Service) -> Rule {
        Rule { service: Some(service), ..Rule::default() }
    }

    /// Not the first one that matches from now on, but the nth.
    #[must_use]
    pub fn nth(self, nth: usize) -> Rule {
        Rule { skip: nth.saturating_sub(1), ..self }
    }

    /// So many in a row instead of one.
    #[must_use]
    pub fn times(self, times: usize) -> Rule {
        Rule { times: Some(times), ..self }
    }

    /// The one request that this is, as `Steps` counts them.
    pub fn step(step: &Step) -> Rule {
        Rule { step: Some(step.clone()), ..Rule::default() }
    }

    fn matches(&self, service: Service, request: &Request) -> bool {
        self.service.is_none_or(|wanted| wanted == service)
            && self.method.as_ref().is_none_or(|method| *method == request.method)
            && self.path.as_ref().is_none_or(|path| fits(path, &service.relative(&request.path)))
    }
}

impl Planned {
    pub(super) fn new(rule: Rule, fault: Fault) -> (Planned, Hits) {
        let hits = Arc::new(AtomicUsize::new(0));
        let planned =
            Planned { rule, fault, seen: AtomicUsize::new(0), steps: Mutex::default(), hits: Arc::clone(&hits) };
        (planned, Hits(hits))
    }

    /// The fault, if this request is one of those meant.
    pub(super) fn strike(&self, service: Service, request: &Request) -> Option<Struck> {
        if !self.rule.matches(service, request) {
            return None;
        }
        let meant = match &self.rule.step {
            Some(wanted) => {
                let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
                steps.next(&request.method, &request.target, &service.relative(&request.path)) == *wanted
            }
            None => {
                let number = self.seen.fetch_add(1, Ordering::SeqCst);
                let end = self.rule.skip.saturating_add(self.rule.times.unwrap_or(1));
                (self.rule.skip..end).contains(&number)
            }
        };
        if !meant {
            return None;
        }
        Some(Struck { fault: self.fault.clone(), hits: Hits(Arc::clone(&self.hits)) })
    }
}

impl Struck {
    /// Counts when it happened: what comes after a request, when that was done.
    pub(super) fn count(&self, done: bool) {
        if done == matches!(self.fault, Fault::ResetAfter | Fault::StallAfter) {
            self.hits.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Steps {
    /// What the next request is; the path is without the service's prefix.
    pub fn next(&mut self, method: &str, target: &str, path: &str) -> Step {
        let step = match self.last.take() {
            Some((last, step)) if method == "GET" && last == target => Step { look: step.look + 1, ..step },
            _ => {
                let parts: Vec<&str> = path.split('/').map(|part| if part.len() > 30 { "*" } else { part }).collect();
                let request = format!("{method} {}", parts.join("/"));
                let seen = self.seen.entry(request.clone()).or_default();
                *seen += 1;
                Step { request, nth: *seen, look: 1 }
            }
        };
        self.last = (method == "GET").then(|| (target.to_owned(), step.clone()));
        step
    }
}

impl Hits {
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn fits(pattern: &str, path: &str) -> bool {
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

    #[test]
    fn patterns_fit_paths() {
        for (pattern, path, fit) in [
            ("/servers", "/servers", true),
            ("/servers", "/servers/a", false),
            ("/servers/*", "/servers/a", true),
            ("/servers/*", "/servers", false),
            ("/servers/*/action", "/servers/a/action", true),
            ("/servers/**", "/servers/a/action", true),
            ("/servers/**", "/servers", false),
        ] {
            assert_eq!(fits(pattern, path), fit, "{pattern} {path}");
        }
    }

    #[test]
    fn a_get_that_is_repeated_is_another_look_and_all_else_is_a_step() {
        let id = "5f0e7d9a-6f0c-4f9d-9d53-0c9a5c0b7a11";
        let one = format!("/servers/{id}");
        let mut steps = Steps::default();
        for (method, target, request, nth, look) in [
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
            let step = Step { request: request.to_owned(), nth, look };
            assert_eq!(steps.next(method, target, target), step, "{method} {target}");
        }
        let step = Step { request: "GET /b".to_owned(), nth: 1, look: 2 };
        let (planned, hits) = Planned::new(Rule::step(&step), Fault::ResetBefore);
        for (target, struck) in [("/a", false), ("/b", false), ("/b", true), ("/b", false), ("/a", false)] {
            let request = Request::new("GET", &format!("/v2.1{target}"), Vec::new());
            let one = planned.strike(Service::Compute, &request);
            assert_eq!(one.is_some(), struck, "{target}");
            one.iter().for_each(|one| one.count(false));
        }
        assert_eq!(hits.count(), 1);
    }

    #[test]
    fn a_rule_strikes_the_requests_that_it_counts_to() {
        let request = |method: &str, target: &str| Request::new(method, target, Vec::new());
        let rule = Rule::on(Service::Compute, "GET", "/servers/*").nth(2).times(2);
        let (planned, hits) = Planned::new(rule, Fault::ResetBefore);
        let mut struck = Vec::new();
        for (service, method, target) in [
            (Service::Compute, "GET", "/v2.1/servers/a"),
            (Service::Compute, "POST", "/v2.1/servers/a"),
            (Service::Network, "GET", "/v2.0/servers/a"),
            (Service::Compute, "GET", "/v2.1/servers/a?x=y"),
            (Service::Compute, "GET", "/v2.1/servers/b"),
            (Service::Compute, "GET", "/v2.1/servers/c"),
        ] {
            struck.push(planned.strike(service, &request(method, target)).is_some());
        }
        assert_eq!(struck, [false, false, false, true, true, false]);
        assert_eq!(hits.count(), 0);
    }

    #[test]
    fn a_fault_counts_when_it_happens() {
        for (fault, early, late) in [(Fault::StallBefore, 1, 1), (Fault::StallAfter, 0, 1), (Fault::ResetAfter, 0, 1)] {
            let (planned, hits) = Planned::new(Rule::any(), fault);
            let struck = planned.strike(Service::Compute, &Request::new("GET", "/v2.1/servers", Vec::new()));
            struck.iter().for_each(|struck| struck.count(false));
            assert_eq!(hits.count(), early);
            struck.iter().for_each(|struck| struck.count(true));
            assert_eq!(hits.count(), late);
        }
    }
}
