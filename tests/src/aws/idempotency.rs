//! Client tokens: the same request with the same token has one effect.

use super::ec2::Call;
use super::error::{Error, invalid};
use super::parameters::text;
use super::state::{Remembered, State};
use serde_json::Value;

const MAX_TOKEN: usize = 64;

/// Returns the result of the first request with this token; `create` runs only for that
/// one. A request without token always runs.
pub(super) fn once(
    state: &mut State,
    call: &Call<'_>,
    create: impl FnOnce(&mut State) -> Result<Value, Error>,
) -> Result<Value, Error> {
    let Some(token) = text(call.parameters, "ClientToken") else {
        return create(state);
    };
    if token.is_empty() || token.len() > MAX_TOKEN || !token.is_ascii() {
        return Err(invalid("clientToken", token, "It must have 1 to 64 ASCII characters."));
    }
    let key = (call.account.to_owned(), call.operation, token.to_owned());
    if let Some(known) = state.tokens.get(&key) {
        if known.parameters == *call.parameters {
            return Ok(known.result.clone());
        }
        let message =
            "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).";
        return Err(Error::new("IdempotentParameterMismatch", message));
    }
    let result = create(state)?;
    let parameters = call.parameters.clone();
    state.tokens.insert(key, Remembered { parameters, result: result.clone() });
    Ok(result)
}
