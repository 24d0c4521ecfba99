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
    /// Sends these GET requests at once, and keeps their answers.
    pub(crate) fn read(&self, requests: impl IntoIterator<Item = Option<Request>>) {
        let requests: Vec<Request> = requests.into_iter().flatten().map(prepared).collect();
        let urls: Vec<String> = requests.iter().map(|request| request.url().to_owned()).collect();
        self.0.borrow_mut().extend(urls.into_iter().zip(http::send_all(requests)));
    }

    /// Returns the answer to this request, if it was read ahead and not used yet.
    pub(super) fn take(&self, request: &Request) -> Option<Result<Response, RequestError>> {
        if request.method() != "GET" {
            return None;
        }
        self.0.borrow_mut().remove(request.url())
    }
}
