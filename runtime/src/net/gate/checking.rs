//! Checks a request of the guest, and fills its slots: form and size, the policy's verdict, headers and body, and
//! then the seals. Only the check on addresses comes later, in `sending`.

use super::bodies::BoundedBody;
use super::message::{Block, GuestRequest, ImageContent, ParsedRequest};
use super::sending::CheckedRequest;
use super::{Gate, GrantedRequest, HttpEvent, filters, judged_fields};
use crate::failure::Who;
use crate::limits::Limits;
use crate::net::error::{HttpError, HttpErrorKind, quoted};
use crate::net::exposure::Exposure;
use crate::net::headers;
use crate::net::slots::{self, RequestToFill};
use reqwest::Method;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::destination::{Destination, InvalidUrl};
use wasm_cpi_policy::place::{Message, is_read_as_form, set_missing_type};
use wasm_cpi_policy::{Blocks, Denial, DenialReason, Grant, JudgedRequest, Operation, Verdict, normalize_header_name};

/// The grant that allows a request, what `fields` judged of the request, and its operation.
struct Permission {
    grant: Arc<Grant>,
    rewritten: Option<JudgedRequest>,
    operation: Option<Operation>,
}

impl Gate {
    /// Makes all checks of a request except the one on addresses, and fills its slots. Records in the event what
    /// is known of the request so far.
    pub(super) fn check(
        &self,
        request: GuestRequest,
        deadline: Instant,
        event: &mut HttpEvent,
    ) -> Result<CheckedRequest, HttpError> {
        self.start_request()?;
        self.check_uncounted(request, deadline, event)
    }

    /// Makes the same checks without counting a request. Blocks have a count of their own.
    pub(super) fn check_uncounted(
        &self,
        request: GuestRequest,
        deadline: Instant,
        event: &mut HttpEvent,
    ) -> Result<CheckedRequest, HttpError> {
        let method = headers::method(&request.method)?;
        method.as_str().clone_into(&mut event.method);
        headers::check(&request.headers, &self.limits)?;
        let destination =
            destination(&request.url, &self.limits).map_err(|error| self.sealed_url(error, &request.url))?;
        event.target = destination.to_string();
        let mut parsed = self.parse(request, method, destination, deadline)?;
        let Permission { grant, rewritten, operation } = self.judge(&parsed).map_err(|denial| {
            event.operation.clone_from(&denial.operation);
            error_of_denial(denial)
        })?;
        event.grant = Some(grant.id.clone());
        event.operation = operation.as_ref().and_then(Operation::plain_name).map(str::to_owned);
        parsed.operation = operation;
        if let Some(judged) = rewritten {
            judged_fields::rewrite(&mut parsed, judged, &grant)?;
        }
        self.check_message(&parsed, &grant)?;
        let checked = self.fill_slots(parsed, grant)?;
        event.seals.clone_from(&checked.secrets.names);
        Ok(checked)
    }

    /// Checks the time and the size of a request, whose method, headers and URL are valid.
    fn parse(
        &self,
        request: GuestRequest,
        method: Method,
        destination: Destination,
        deadline: Instant,
    ) -> Result<ParsedRequest, HttpError> {
        let deadline = request_deadline(request.timeout_ms, deadline)?;
        let BoundedBody { bytes: body, image, reserved } = self.reserve_body(request.body)?;
        let headers = request.headers;
        let (body_is_listed, operation) = (false, None);
        Ok(ParsedRequest { method, destination, headers, body, image, reserved, body_is_listed, operation, deadline })
    }

    /// Returns the grant that allows the request.
    fn judge(&self, request: &ParsedRequest) -> Result<Permission, Denial> {
        let ParsedRequest { destination, method, headers, body, image, .. } = request;
        let verdict = match image {
            None => self.policy.judge(destination, method.as_str(), &Message { headers, body }),
            Some(image) => {
                let block_headers = image.block().map(|block| block.computed_headers.as_slice());
                self.policy.judge_image(destination, method.as_str(), headers, block_headers)
            }
        };
        match verdict {
            Verdict::Allowed { grant, rewritten, operation } => Ok(Permission { grant, rewritten, operation }),
            Verdict::Denied(denial) => Err(denial),
        }
    }

    /// Checks headers, query and body of a request that the grant allows.
    fn check_message(&self, request: &ParsedRequest, grant: &Grant) -> Result<(), HttpError> {
        let ParsedRequest { method, destination, headers, image, .. } = request;
        if let Some(image) = image {
            check_image(image, method, headers)?;
        }
        let exposure = Exposure::of(grant, &self.policy.hidden_places(destination));
        let rules = self.header_rules(request.granted_by(grant), exposure);
        let (path, query) = (destination.path(), destination.query());
        headers::check_credentials(headers, query, path, &request.guest_bytes(), &rules, &self.vault)?;
        if let Some(block) = image.as_ref().and_then(ImageContent::block) {
            check_block(block, grant)?;
        }
        filters::check(request, grant, exposure)
    }

    /// Replaces the seals of a request by secrets.
    fn fill_slots(&self, mut request: ParsedRequest, grant: Arc<Grant>) -> Result<CheckedRequest, HttpError> {
        let traced = self.request_to_trace(request.granted_by(&grant), &request.headers, &request.body);
        // As the guest wrote them: what a call created must not depend on a secret.
        let url = request.destination.to_url();
        let headers = request.headers.iter().map(|(_, value)| value.as_bytes());
        let bytes = request.guest_bytes();
        let parts = [url.query().unwrap_or_default().as_bytes(), &bytes];
        let named = self.creations.words_of_request(headers.chain(parts));
        if let Some(image) = &request.image {
            // No slot is for the bytes around an image, so a seal in them is refused.
            let (method, path) = (request.method.as_str(), request.destination.path());
            slots::reject_seals(&self.vault, method, path, url.as_str(), &image.guest_bytes())
                .map_err(|error| self.refused_seal(error, request.granted_by(&grant)))?;
        }
        let to_fill = RequestToFill {
            method: request.method.as_str(),
            path: request.destination.path(),
            operation: request.operation.as_ref().map(|operation| operation.name.as_str()),
            url: url.as_str(),
            headers: &mut request.headers,
            body: &mut request.body,
        };
        let secrets = slots::fill(&self.vault, &grant.slots, grant.layer, to_fill)
            .map_err(|error| self.refused_seal(error, request.granted_by(&grant)))?;
        headers::check_encoding(&request.headers, &request.guest_bytes())?;
        if request.image.is_some() {
            Check::ImageType.perform(|| set_missing_type(&mut request.headers));
        }
        let ParsedRequest { method, destination, headers, body, image, reserved, operation, deadline, .. } = request;
        let body = body.into();
        Ok(CheckedRequest {
            grant,
            method,
            destination,
            operation,
            headers,
            body,
            named,
            image,
            reserved,
            secrets,
            traced,
            deadline,
        })
    }
}

impl ParsedRequest {
    /// Returns the request as the given grant allows it.
    fn granted_by<'a>(&'a self, grant: &'a Grant) -> GrantedRequest<'a> {
        let operation = self.operation.as_ref();
        GrantedRequest { grant, method: &self.method, destination: &self.destination, operation }
    }
}

fn error_of_denial(denial: Denial) -> HttpError {
    let Denial { reason, check, message, hint, detail, .. } = denial;
    let error = HttpError::denied(reason, message).with_detail(detail);
    HttpError { hint, ..error.refused_by(check) }
}

/// Rejects an image where a server could read it as something else than a file: as parameters, or not at all.
fn check_image(image: &ImageContent, method: &Method, headers: &[(String, String)]) -> Result<(), HttpError> {
    Check::ImageMethod.ensure(reads_body(method), || {
        let what = "an image can be sent with POST, PUT and PATCH only, because servers leave other bodies unread";
        HttpError::denied(DenialReason::Method, what)
    })?;
    let mut types = headers.iter().filter(|(name, _)| normalize_header_name(name) == "content-type").peekable();
    let is_typed = types.peek().is_some();
    let is_json = types.clone().any(|(_, value)| value.to_ascii_lowercase().contains("json"));
    let is_multipart = types.any(|(_, value)| value.to_ascii_lowercase().contains("multipart"));
    let is_in_parts = matches!(image, ImageContent::Parts(_));
    let has_fields = is_typed && (is_read_as_form(headers) || is_json || (is_multipart && !is_in_parts));
    Check::ImageType.ensure(!has_fields, || {
        let what =
            "a server would look for parameters in the image, because its Content-Type is that of a form or of JSON";
        HttpError::denied(DenialReason::Header, format_args!("{what}; send `application/octet-stream`"))
    })
}

/// Returns true for the methods whose bodies servers read.
pub(super) fn reads_body(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH].contains(method)
}

/// Rejects a block that the grant does not allow.
fn check_block(block: &Block, grant: &Grant) -> Result<(), HttpError> {
    let hint = || Some(Blocks::missing_in(grant, &block.computed_headers));
    Check::GrantBlocks.ensure(grant.blocks.is_some(), || HttpError {
        hint: hint(),
        ..HttpError::denied(
            DenialReason::Operation,
            format_args!(
                "grant `{}` does not allow uploads in blocks; the operator can add \"blocks\": true to it",
                grant.id
            ),
        )
    })?;
    let listed = |name: &&String| grant.blocks.as_ref().is_some_and(|blocks| blocks.computes_header(name));
    let unlisted = block.computed_headers.iter().find(|name| !listed(name));
    Check::BlockHeader.reject(unlisted, |name| {
        let what = format!("`block_headers` of the grant `{}` does not list the header `{}`", grant.id, quoted(name));
        let what = format!("{what}, which holds the digest or the length of a block; the operator can add it there");
        HttpError { hint: hint(), ..HttpError::denied(DenialReason::Header, what) }
    })
}

/// Returns true for the safe methods of HTTP: their requests change nothing.
pub(super) fn is_safe_method(method: &Method) -> bool {
    [Method::GET, Method::HEAD, Method::OPTIONS].contains(method)
}

/// Returns the end of a request's time: that of the call, or an earlier one if the guest set a timeout.
fn request_deadline(timeout_ms: Option<u32>, call_deadline: Instant) -> Result<Instant, HttpError> {
    let guest_deadline = timeout_ms.map(|ms| Instant::now() + Duration::from_millis(u64::from(ms.max(1))));
    let deadline = guest_deadline.map_or(call_deadline, |guest_deadline| guest_deadline.min(call_deadline));
    if deadline <= Instant::now() {
        let what = "the call has no time left for requests";
        return Err(HttpError::failed(Who::Runtime, HttpErrorKind::Cancelled, what));
    }
    Ok(deadline)
}

fn destination(url: &str, limits: &Limits) -> Result<Destination, HttpError> {
    Destination::from_guest(url, limits.url_bytes).map_err(|invalid| {
        let error = match invalid {
            InvalidUrl::TooLong { .. } => HttpError::limit("url_bytes", limits.url_bytes, "the URL of a request"),
            InvalidUrl::Scheme(_) => HttpError::denied(DenialReason::Scheme, &invalid),
            InvalidUrl::Form { .. } => HttpError::invalid(quoted(&invalid.to_string())),
        };
        HttpError { check: invalid.check(), ..error }
    })
}
