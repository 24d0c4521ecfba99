//! Errors of an exchange: translates the client's nested errors into one kind, one
//! message for the guest and one detail for operators.
//!
//! The message has fixed words only. The detail quotes the client's errors, but only the
//! innermost ones, because the others name whole URLs with their queries.

use super::request_body::Progress;
use crate::failure::{RESOURCE_REMEDY, Who};
use crate::net::connection::ConnectError;
use crate::net::error::{HttpError, HttpErrorKind};
use crate::net::proxy::Proxy;
use crate::net::tls::refusing_check;
use reqwest::Method;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;
use wasm_cpi_checks::{Check, RefusedBy};
use wasm_cpi_policy::destination::{Destination, Scheme};

/// Builds the errors of one exchange, which name its method, origin and path.
pub(in crate::net) struct ErrorContext {
    target: String,
    https: bool,
}

impl fmt::Display for ErrorContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target)
    }
}

impl ErrorContext {
    pub(in crate::net) fn new(method: &Method, destination: &Destination) -> Self {
        ErrorContext { target: format!("{method} {destination}"), https: destination.scheme() == Scheme::Https }
    }

    fn error(&self, kind: HttpErrorKind, who: Who, what: impl fmt::Display) -> HttpError {
        HttpError::failed(who, kind, format_args!("{self}: {what}"))
    }

    pub(in crate::net) fn no_time_left(&self) -> HttpError {
        self.error(HttpErrorKind::Cancelled, Who::Runtime, "the call has no time left for requests")
    }

    pub(in crate::net) fn client_not_built(&self, error: &reqwest::Error) -> HttpError {
        let what = format!("the HTTP client could not be built; {RESOURCE_REMEDY}");
        self.error(HttpErrorKind::Protocol, Who::Runtime, what).with_detail(innermost(error))
    }

    pub(super) fn deadline_reached(&self) -> HttpError {
        let what = "the server sent no complete response within the time of the request or the rest of the call; \
                    raise the request's timeout or `limits.wall_seconds`";
        self.error(HttpErrorKind::Timeout, Who::Iaas, what)
    }

    fn too_slow(&self, what: &str, limit: &str, allowed: Duration) -> HttpError {
        let seconds = allowed.as_secs();
        let what = format!("{what} for {seconds} s; check the server, or raise `limits.{limit}` in the CPI's config");
        self.error(HttpErrorKind::Timeout, Who::Iaas, what)
    }

    pub(super) fn stalled(&self, progress: &Progress) -> HttpError {
        let (limit, allowed) = progress.limit();
        let what = if limit == "idle_seconds" {
            "the server accepted no data of the request body"
        } else {
            "the server sent no response"
        };
        self.too_slow(what, limit, allowed)
    }

    pub(super) fn idle_timed_out(&self, allowed: Duration) -> HttpError {
        self.too_slow("the server stopped sending in the middle of its response", "idle_seconds", allowed)
    }

    pub(super) fn protocol(&self, what: impl fmt::Display) -> HttpError {
        self.error(
            HttpErrorKind::Protocol,
            Who::Iaas,
            format_args!("the response is not valid HTTP/1.1: {what}; check the server, and proxies in front of it"),
        )
    }

    pub(super) fn too_many_interim_responses(&self, most: u32) -> HttpError {
        self.protocol(format_args!("more than {most} interim responses (1xx) came before it"))
    }

    pub(super) fn accepted_too_early(&self) -> HttpError {
        let what = "the server accepted the image before it had received all of it; look at the server's log";
        self.error(HttpErrorKind::Protocol, Who::Iaas, what).after_sending()
    }

    pub(super) fn unwritable(&self) -> HttpError {
        let what = "the request cannot be written as HTTP/1.1; correct its URL and headers";
        self.error(HttpErrorKind::InvalidRequest, Who::Guest, what)
    }

    /// Returns the error of a connection that was not opened. Nothing was sent.
    pub(super) fn connect_failed(&self, error: &ConnectError) -> HttpError {
        match error {
            ConnectError::Tcp(error) if error.kind() == io::ErrorKind::TimedOut => self.connect_timed_out(None),
            ConnectError::Tcp(error) => self.not_connected(error),
            ConnectError::Proxy(what) => {
                let message =
                    "no connection through the proxy that `proxy` in the CPI's config names; the log says why";
                self.error(HttpErrorKind::Connect, Who::Iaas, message).with_detail(what)
            }
            ConnectError::Handshake(error) => match tls_error(error) {
                Some(error) => self.tls_error(error),
                None => self.tls("the connection ended during the handshake"),
            },
            ConnectError::ServerName => {
                let what = "no certificate can be valid for this host; correct the host of the URL";
                self.error(HttpErrorKind::InvalidRequest, Who::Guest, what)
            }
        }
    }

    pub(super) fn connect_timed_out(&self, proxy: Option<&Proxy>) -> HttpError {
        let Some(proxy) = proxy else {
            let what = "no connection within `limits.connect_seconds` or the rest of the request's time; \
                        check routes and firewalls between this machine and the server";
            return self.error(HttpErrorKind::Timeout, Who::Iaas, what);
        };
        let what = "no connection through the proxy within `limits.connect_seconds` or the rest of the request's time; \
                    check the proxy, and the network between it and the server";
        self.error(HttpErrorKind::Timeout, Who::Iaas, what).with_detail(format!("the proxy is {proxy}"))
    }

    /// Returns the error of a request of the host for which no complete response head arrived.
    pub(super) fn client_failed(&self, error: &reqwest::Error, progress: &Progress) -> HttpError {
        if !error.is_connect() || progress.failure().is_some() {
            return self.no_response(error, progress);
        }
        if let Some(error) = tls_error(error) {
            return self.tls_error(error);
        }
        if error.is_timeout() {
            return self.connect_timed_out(None);
        }
        // A connection that breaks while it is opened broke during the TLS handshake.
        let breaks = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
        if self.https && io_error(error).is_some_and(|kind| breaks.contains(&kind)) {
            return self.tls("the connection ended during the handshake");
        }
        self.not_connected(error)
    }

    /// Returns the error of a request for which no complete response head arrived.
    pub(super) fn no_response(&self, error: &(dyn Error + 'static), progress: &Progress) -> HttpError {
        if let Some((why, check)) = progress.failure() {
            // The host itself says so about the image: no server had a part in it.
            let what = format!("the request body could not be sent completely: {why}");
            return HttpError { check, ..self.error(HttpErrorKind::Truncated, Who::Runtime, what) }.after_sending();
        }
        if let Some(error) = tls_error(error) {
            return self.tls_error(error).after_sending();
        }
        let what = innermost(error);
        if io_error(error).is_some() || any_hyper_error(error, hyper::Error::is_incomplete_message) {
            let message = "the connection ended before the server responded; check the server's log";
            return self.error(HttpErrorKind::Protocol, Who::Iaas, message).with_detail(what).after_sending();
        }
        if any_hyper_error(error, hyper::Error::is_parse_too_large) {
            let what = "its head is larger than `limits.header_kib` or `limits.http_headers` allows";
            return self.protocol(what).after_sending();
        }
        self.protocol(UNPARSABLE).with_detail(what).after_sending()
    }

    fn not_connected(&self, error: &(dyn Error + 'static)) -> HttpError {
        let what = match io_error(error) {
            Some(io::ErrorKind::ConnectionRefused) => "the server refuses connections",
            Some(io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {
                "there is no route to the server"
            }
            _ => "the server cannot be reached",
        };
        let what = format!("no connection: {what}; check that the server runs and that this machine can reach it");
        self.error(HttpErrorKind::Connect, Who::Iaas, what).with_detail(innermost(error))
    }

    fn tls(&self, what: &str) -> HttpError {
        let what = format!("TLS failed: {what}; check the server's certificate, and `tls` in the grant");
        self.error(HttpErrorKind::Tls, Who::Iaas, what)
    }

    fn tls_error(&self, error: &rustls::Error) -> HttpError {
        use rustls::{CertificateError, Error};
        match error {
            Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
                self.tls("`pin_sha256` does not list the server's key").refused_by(Check::TlsPin)
            }
            Error::InvalidCertificate(why) => {
                let what = match refusing_check(why) {
                    Some(Check::TlsIssuer) => "no trusted authority has issued the server's certificate",
                    Some(Check::TlsName) => "the server's certificate is for another name",
                    Some(Check::TlsTime) => "the server's certificate has expired or is not yet valid",
                    _ => "the server's certificate is not valid",
                };
                HttpError { check: refusing_check(why), ..self.tls(what).with_detail(error.to_string()) }
            }
            other => self.tls("the handshake with the server failed").with_detail(other.to_string()),
        }
    }

    /// Returns the error of a response whose body did not arrive completely.
    pub(super) fn receive_failed(&self, error: &reqwest::Error) -> HttpError {
        let what = innermost(error);
        if let Some(error) = tls_error(error) {
            return self.tls_error(error);
        }
        let cut = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionAborted];
        if any_hyper_error(error, hyper::Error::is_incomplete_message)
            || io_error(error).is_some_and(|kind| cut.contains(&kind))
        {
            let what = "the connection ended before the response was complete, so the response was discarded; \
                        check the server's log";
            return self.error(HttpErrorKind::Truncated, Who::Iaas, what);
        }
        self.protocol(UNPARSABLE).with_detail(what)
    }
}

const UNPARSABLE: &str = "the HTTP library rejects it, and the log says why";

/// Returns the causes of the error, starting with the error itself if it does not name a URL.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let first = if error.is::<reqwest::Error>() { error.source() } else { Some(error) };
    std::iter::successors(first, |&error| {
        // `source` of an I/O error skips the error that it wraps.
        let content = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        content.map(|content| content as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

/// Returns the text of the last cause, which is the most precise one. Outer errors name the URL.
fn innermost(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map_or_else(|| "unknown cause".to_owned(), |cause| cause.to_string())
}

fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    chain(error).find_map(|cause| cause.downcast_ref())
}

/// Searches all causes, because hyper wraps its own errors, for example of queued requests.
fn any_hyper_error(error: &(dyn Error + 'static), is: fn(&hyper::Error) -> bool) -> bool {
    chain(error).filter_map(|cause| cause.downcast_ref()).any(is)
}

fn io_error(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).last().map(io::Error::kind)
}
