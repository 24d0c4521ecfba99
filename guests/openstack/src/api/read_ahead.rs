//! Reads objects ahead: sends the requests at once that a method needs before it decides
//! anything. The code that needs an object asks for it as usual, and gets the answer that
//! is already there. Every answer is used once, so a later question is asked again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use wasm_cpi_sdk::http::{self, Request, RequestError, Response};

use super::service::prepared;

/// Answers that were read ahead, by their URLs.
#[derive(Clone, Default)]
pub(crate) struct ReadAhead(Rc<RefCell<BTreeMap<String, Result<Response, RequestError>>>>);

impl ReadAhead {
    /// Sends these GET requests at once, each URL only once, and keeps their answers.
    pub(crate) fn read(&self, requests: impl IntoIterator<Item = Option<Request>>) {
        let mut wanted: Vec<Request> = vec![];
        for request in requests.into_iter().flatten() {
            if wanted.iter().all(|other| other.url() != request.url()) {
                wanted.push(prepared(request));
            }
        }
        let urls: Vec<String> = wanted.iter().map(|request| request.url().to_owned()).collect();
        self.0.borrow_mut().extend(urls.into_iter().zip(http::send_all(wanted)));
    }

    /// Discards the answers that were not used yet. Call it before waiting for the cloud: they
    /// are outdated after that.
    pub(crate) fn discard(&self) {
        self.0.borrow_mut().clear();
    }

    /// Returns the answer to this request, if it was read ahead and not used yet.
    pub(super) fn take(&self, request: &Request) -> Option<Result<Response, RequestError>> {
        if request.method() != "GET" {
            return None;
        }
        self.0.borrow_mut().remove(request.url())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasm_cpi_sdk::fake::{Answer, Fake};
    use wasm_cpi_sdk::http::{TransportError, get, post};

    const ONE: &str = "https://nova.test/one";
    const TWO: &str = "https://nova.test/two";

    fn fake() -> Fake {
        let any = r#"{"version": 1, "http": [{"id": "any", "to": "*", "methods": ["*"], "paths": ["/**"]}]}"#;
        Fake::new().needs(any)
    }

    #[test]
    fn every_answer_is_used_once_and_every_url_is_sent_once() {
        let host = fake().on("GET", ONE, Answer::text(200, "1")).on("GET", TWO, Answer::text(404, "2")).install();
        let ahead = ReadAhead::default();
        ahead.read([Some(get(ONE)), None, Some(get(TWO)), Some(get(ONE))]);
        let sent: Vec<String> = host.requests().iter().map(|request| request.url.clone()).collect();
        assert_eq!(sent, [ONE, TWO]);
        assert!(ahead.take(&post(ONE)).is_none());
        assert!(ahead.take(&get("https://nova.test/one?more=1")).is_none());
        for (url, status) in [(TWO, 404), (ONE, 200)] {
            assert_eq!(ahead.take(&get(url)).map(|answer| answer.map(|answer| answer.status)), Some(Ok(status)));
            assert!(ahead.take(&get(url)).is_none());
        }
        assert_eq!(host.requests().len(), 2);
    }

    #[test]
    fn a_failure_is_returned_to_the_code_that_asks_for_the_object() {
        let lost = Answer::fail(TransportError::Tls, "wrong certificate", false);
        let _host = fake().on("GET", ONE, lost).on("GET", TWO, Answer::text(200, "2")).install();
        let ahead = ReadAhead::default();
        ahead.read([Some(get(ONE)), Some(get(TWO))]);
        assert!(ahead.take(&get(ONE)).is_some_and(|answer| answer.is_err()));
        assert!(ahead.take(&get(TWO)).is_some_and(|answer| answer.is_ok()));
    }

    #[test]
    fn discarded_answers_are_not_used() {
        let _host = fake().on("GET", ONE, Answer::text(200, "1")).install();
        let ahead = ReadAhead::default();
        ahead.read([Some(get(ONE))]);
        ahead.discard();
        assert!(ahead.take(&get(ONE)).is_none());
    }
}
