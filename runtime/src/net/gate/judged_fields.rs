//! Replaces what the policy judged of a request by the host's own serialisation, where the grant's
//! `fields` apply. So the server reads the same fields as the policy.

use crate::net::error::HttpError;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::destination::Destination;
use wasm_cpi_policy::{DenialReason, Grant, JudgedRequest, normalize_header_name};

/// Rewrites a request that the grant allows, if `fields` judged it. Rejects an image as its body,
/// which cannot be judged.
pub(super) fn serialise(
    grant: &Grant,
    judged: Option<JudgedRequest>,
    has_image: bool,
    destination: &mut Destination,
    headers: &mut Vec<(String, String)>,
    body: &mut Vec<u8>,
) -> Result<(), HttpError> {
    let Some(judged) = judged else { return Ok(()) };
    Check::FieldBody.ensure(!has_image, || {
        let what = format!("the grant `{}` limits the fields of the request, and an image has none", grant.id);
        HttpError::denied(DenialReason::Operation, format!("policy: {what}; send it where no `fields` apply"))
    })?;
    Check::FieldSerialised.perform(|| {
        if let Some(query) = &judged.query {
            *destination = destination.with_query(query);
        }
        if let Some(judged) = judged.body {
            headers.retain(|(name, _)| normalize_header_name(name) != "content-type");
            headers.push(("content-type".to_owned(), judged.content_type.to_owned()));
            *body = judged.bytes;
        }
    });
    Ok(())
}
