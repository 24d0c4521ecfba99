//! The limits of one exchange.

use crate::limits::{Limits, NamedLimit};
use crate::net::error::HttpError;
use std::fmt;
use std::time::Duration;
use wasm_cpi_checks::Check;

/// The most additional bytes of a response, because a server may echo the request. Bounds the memory of a call.
const MAX_ECHO: u64 = 64 * 1024 * 1024;
/// The additional bytes for agent settings in a response, in the longest encoding of their bytes.
const ECHOED_SETTINGS: u64 = 1024 * 1024;
/// The additional bytes for a secret in the headers of a response: the largest token of a login.
const ECHOED_SECRET: usize = 64 * 1024;

/// The limits of one exchange.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    pub connect: Duration,
    pub first_byte: Duration,
    pub idle: Duration,
    /// The most bytes of the response's body.
    pub max_body_bytes: u64,
    /// The limit in the config that `max_body_bytes` comes from.
    pub body_limit: NamedLimit,
    /// The number of requests that are sent at once and share this limit.
    pub concurrent_requests: u64,
    /// The most headers of the response.
    pub max_headers: usize,
    /// The most bytes of all names and values of the headers.
    pub max_header_bytes: usize,
    /// What body and headers may have beyond their limits, because a server may echo the request. The caller applies
    /// the limits to what is left of the response when it has removed what the guest must not see.
    pub echo_allowance: EchoAllowance,
}

/// The bytes that a response may have beyond its limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct EchoAllowance {
    pub body: u64,
    pub headers: usize,
}

impl Caps {
    pub fn of(limits: &Limits) -> Self {
        // Adding a configured duration to a time must not overflow.
        let seconds = |seconds: u64| Duration::from_secs(seconds.min(24 * 3600));
        Caps {
            connect: seconds(limits.connect_seconds),
            first_byte: seconds(limits.first_byte_seconds),
            idle: seconds(limits.idle_seconds),
            max_body_bytes: limits.http_response_mib.saturating_mul(1024 * 1024),
            body_limit: NamedLimit { name: "http_response_mib", value: limits.http_response_mib },
            concurrent_requests: 1,
            max_headers: usize::try_from(limits.http_headers).unwrap_or(usize::MAX),
            max_header_bytes: usize::try_from(limits.header_kib.saturating_mul(1024)).unwrap_or(usize::MAX),
            echo_allowance: EchoAllowance::default(),
        }
    }

    /// Returns the same limits for a response of which a part will be removed. A server may send
    /// back all that a request holds, with its secrets, and that must not reach a limit.
    pub fn with_echo_allowance(self, limits: &Limits) -> Self {
        let request = limits.http_request_mib.saturating_mul(1024 * 1024);
        let body = request.saturating_mul(2).min(MAX_ECHO).saturating_add(ECHOED_SETTINGS);
        let allowance = EchoAllowance { body, headers: self.max_header_bytes.saturating_add(ECHOED_SECRET) };
        Caps { echo_allowance: Check::ResponseRoom.choose(allowance, EchoAllowance::default()), ..self }
    }

    /// Returns the limits of one of several requests that are sent at once, whose responses share the limit for
    /// bodies.
    pub fn shared_by(self, concurrent_requests: u64) -> Self {
        let EchoAllowance { body, headers } = self.echo_allowance;
        let echo_allowance = EchoAllowance { body: body / concurrent_requests, headers };
        Caps { max_body_bytes: self.max_body_bytes / concurrent_requests, concurrent_requests, echo_allowance, ..self }
    }

    /// Returns the error of a response whose body is larger than its limit.
    pub fn body_too_long(&self, target: impl fmt::Display) -> HttpError {
        let NamedLimit { name, value } = self.body_limit;
        match self.concurrent_requests {
            1 => HttpError::limit(name, value, format_args!("the response to {target}")),
            requests => HttpError::limit(
                name,
                value,
                format_args!("the response to {target}, which may use one of {requests} equal parts of it"),
            ),
        }
    }

    /// Returns the error of a response whose headers are larger than their limit.
    pub fn headers_too_long(&self, target: impl fmt::Display) -> HttpError {
        let what = format_args!("the headers of the response to {target}");
        HttpError::limit("header_kib", self.max_header_bytes / 1024, what)
    }
}
