//! Traces a guest's requests for `http_trace`.

use super::sending::CheckedRequest;
use super::{Gate, GrantedRequest, GuestResponse};
use crate::net::error::HttpError;
use crate::net::http_trace::{Headers, Shown};
use reqwest::header::HeaderName;
use wasm_cpi_policy::{Grant, Operation};

/// A request as the trace shows it, with seals instead of secrets.
pub(super) struct TracedRequest {
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Gate {
    /// Returns the request as it will be sent, but with seals in its slots. The seals are
    /// written as the secrets will be, so that everything else is what the server gets.
    pub(super) fn request_to_trace(
        &self,
        request: GrantedRequest<'_>,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Option<TracedRequest> {
        self.trace.as_ref()?;
        let (mut headers, mut body) = (headers.to_vec(), body.to_vec());
        for slot in request.slots() {
            // An error is reported when the slots are filled.
            let mut keep = |value: &str| self.vault.open(value).map(|_| value.to_owned());
            let _ = slot.place.replace(&mut headers, &mut body, &mut keep);
        }
        Some(TracedRequest { headers, body })
    }

    /// Traces a request. `auth` are the headers that authenticate it.
    pub(super) fn trace_sending(&self, checked: &CheckedRequest, auth: &[HeaderName], length: u64) {
        let (Some(trace), Some(TracedRequest { headers, body })) = (&self.trace, &checked.traced) else { return };
        let mut shown = borrowed(headers);
        shown.extend(auth.iter().map(|name| (name.as_str(), "<redacted>")));
        let body = if checked.image.is_some() { Shown::Image(length) } else { Shown::Bytes(body) };
        let GrantedRequest { grant, method, destination, operation } = checked.granted();
        let operation = operation.and_then(Operation::plain_name).map(|name| format!(", {name}"));
        let whose = format!("{}{}", named(grant), operation.unwrap_or_default());
        trace.request(&whose, method.as_str(), &destination.to_url(), &shown, &body);
    }

    pub(super) fn trace_response(&self, grant: &Grant, response: &Result<GuestResponse, HttpError>) {
        match (&self.trace, response) {
            (None, _) => {}
            (Some(trace), Ok(response)) => {
                trace.response(
                    &named(grant),
                    response.status,
                    &borrowed(&response.headers),
                    &Shown::Bytes(&response.body),
                );
            }
            (Some(trace), Err(error)) => trace.no_response(&named(grant), &format!("withheld: {}", error.kind)),
        }
    }

    pub(super) fn trace_failure(&self, grant: &Grant, error: &HttpError) {
        if let Some(trace) = &self.trace {
            trace.no_response(&named(grant), &error.kind.to_string());
        }
    }

    /// Traces a response after which the request is sent again in this way.
    pub(super) fn trace_second_try(&self, grant: &Grant, status: u16, how: &str) {
        if let Some(trace) = &self.trace {
            trace.no_response(&named(grant), &format!("{status}, {how}"));
        }
    }
}

fn named(grant: &Grant) -> String {
    format!("grant `{}`", grant.id)
}

fn borrowed(headers: &[(String, String)]) -> Headers<'_> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}
