//! Replaces what the policy judged of a request by the host's own serialisation, where the grant's
//! `fields` apply. So the server reads the same fields as the policy.

use super::message::ParsedRequest;
use crate::net::error::HttpError;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::{DenialReason, Grant, JudgedRequest, normalize_header_name};

/// Rewrites a request of which `fields` judged a part. Rejects an image as its body, which cannot be
/// judged.
pub(super) fn rewrite(request: &mut ParsedRequest, judged: JudgedRequest, grant: &Grant) -> Result<(), HttpError> {
    Check::FieldBody.ensure(request.image.is_none(), || {
        let what = format!("the grant `{}` limits the fields of the request, and an image has none", grant.id);
        HttpError::denied(DenialReason::Operation, format_args!("{what}; send it where no `fields` apply"))
    })?;
    request.body_is_listed = judged.body.as_ref().is_some_and(|body| body.is_listed);
    Check::FieldSerialised.perform(|| {
        if let Some(query) = &judged.query {
            request.destination = request.destination.with_query(query);
        }
        if let Some(judged) = judged.body {
            request.headers.retain(|(name, _)| normalize_header_name(name) != "content-type");
            request.headers.push(("content-type".to_owned(), judged.content_type.to_owned()));
            request.body = judged.bytes;
        }
    });
    Ok(())
}
