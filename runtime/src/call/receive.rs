//! First step: reads the request from stdin.

use crate::call::CallError;
use crate::config::EarlySettings;
use crate::failure::{Failure, Who};
use crate::rpc::request::Request;
use crate::signals;
use std::io::Read;

/// Reads and parses the request. Stdin is always read to its end, because the Director writes
/// its whole request before it reads.
pub fn receive(settings: &EarlySettings) -> Result<Request, CallError> {
    let bytes = read(settings.request_mib);
    signals::watch();
    Ok(Request::parse(&bytes?, settings.api_version)?)
}

fn read(request_mib: u64) -> Result<Vec<u8>, Failure> {
    let max = request_mib << 20;
    let mut stdin = std::io::stdin().lock();
    let mut bytes = Vec::new();
    let unreadable = |error: std::io::Error| Failure::request(format!("stdin cannot be read: {error}"));
    Read::by_ref(&mut stdin).take(max + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max {
        // Otherwise a caller that is still writing would get EPIPE instead of a response.
        std::io::copy(&mut stdin, &mut std::io::sink()).map_err(unreadable)?;
        return Err(Failure { who: Who::Request, ..Failure::limit("request_mib", request_mib, "the request's size") });
    }
    Ok(bytes)
}
