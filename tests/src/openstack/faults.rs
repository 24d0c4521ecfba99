//! Misbehaviour on demand: which requests, and what happens to them.

use super::message::{Request, Response};
use super::service::Service;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
}

/// A fault that waits for its requests.
pub(super) struct Planned {
    rule: Rule,
    fault: Fault,
    seen: AtomicUsize,
    hits: Arc<AtomicUsize>,
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

    fn matches(&self, service: Service, request: &Request) -> bool {
        self.service.is_none_or(|wanted| wanted == service)
            && self.method.as_ref().is_none_or(|method| *method == request.method)
            && self.path.as_ref().is_none_or(|path| fits(path, &service.relative(&request.path)))
    }
}

impl Planned {
    pub(super) fn new(rule: Rule, fault: Fault) -> (Planned, Hits) {
        let hits = Arc::new(AtomicUsize::new(0));
        (Planned { rule, fault, seen: AtomicUsize::new(0), hits: Arc::clone(&hits) }, Hits(hits))
    }

    /// The fault, if this request is one of those meant.
    pub(super) fn strike(&self, service: Service, request: &Request) -> Option<Fault> {
        if !self.rule.matches(service, request) {
            return None;
        }
        let number = self.seen.fetch_add(1, Ordering::SeqCst);
        let end = self.rule.skip.saturating_add(self.rule.times.unwrap_or(1));
        if !(self.rule.skip..end).contains(&number) {
            return None;
        }
        self.hits.fetch_add(1, Ordering::SeqCst);
        Some(self.fault.clone())
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
        assert_eq!(hits.count(), 2);
    }
}
