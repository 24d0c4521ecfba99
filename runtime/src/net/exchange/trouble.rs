//! What went wrong with an exchange, in words: from the client's nested errors
//! to one kind and one sentence.
//!
//! The client's own errors name whole URLs, queries included, so that none of
//! them is ever passed on as it is.

use super::sending::Progress;
use crate::net::error::{HttpError, HttpErrorKind, quoted};
use crate::net::proxy::Proxy;
use crate::net::proxy::tunnel::Unanswered;
use reqwest::Method;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;
use wasm_cpi_policy::destination::{Destination, Scheme};

/// The exchange's name in messages: method, origin and path.
pub(super) struct Trouble {
    target: String,
    https: bool,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.target)
    }
}

impl Trouble {
    pub(super) fn new(method: &Method, destination: &Destination) -> Self {
        Trouble { target: format!("{method} {destination}"), https: destination.scheme() == Scheme::Https }
    }

    fn error(&self, kind: HttpErrorKind, who: &str, what: impl fmt::Display) -> HttpError {
        HttpError::new(kind, format!("{who}: {self}: {what}"))
    }

    pub(super) fn no_time(&self) -> HttpError {
        self.error(HttpErrorKind::Cancelled, "runtime", "the call has no time left for requests")
    }

    pub(super) fn setup(&self, error: &reqwest::Error) -> HttpError {
        self.error(HttpErrorKind::Protocol, "runtime", format_args!("no client could be made: {}", innermost(error)))
    }

    pub(super) fn out_of_time(&self) -> HttpError {
        let what = "no complete answer in the time that the request, or what is left of the call, allows; \
                    raise the request's timeout or `limits.wall_seconds`";
        self.error(HttpErrorKind::Timeout, "iaas", what)
    }

    fn too_slow(&self, what: &str, limit: &str, allowed: Duration) -> HttpError {
        let seconds = allowed.as_secs();
        let what = format!("{what} for {seconds} s; look at the server, or raise `limits.{limit}` in the CPI's config");
        self.error(HttpErrorKind::Timeout, "iaas", what)
    }

    pub(super) fn stalled(&self, progress: &Progress) -> HttpError {
        let (limit, allowed) = progress.limit();
        let what =
            if limit == "idle_seconds" { "the server took none of the body" } else { "the server sent no answer" };
        self.too_slow(what, limit, allowed)
    }

    pub(super) fn idle(&self, allowed: Duration) -> HttpError {
        self.too_slow("the server stopped in the middle of its answer", "idle_seconds", allowed)
    }

    pub(super) fn protocol(&self, what: impl fmt::Display) -> HttpError {
        self.error(
            HttpErrorKind::Protocol,
            "iaas",
            format_args!("the answer is not the HTTP/1.1 that was asked for: {what}"),
        )
    }

    /// Before the response's head was complete.
    pub(super) fn sending(&self, error: &reqwest::Error, progress: &Progress) -> HttpError {
        if error.is_connect() && progress.failure().is_none() {
            return self.connecting(error);
        }
        self.unanswered(error, progress)
    }

    /// No connection came about, so that nothing was sent.
    pub(super) fn tunnel(&self, error: &Unanswered) -> HttpError {
        match error {
            Unanswered::Refused(what) => self.error(HttpErrorKind::Connect, "iaas", what),
            Unanswered::Request(what) => self.error(HttpErrorKind::InvalidRequest, "request", what),
            Unanswered::Handshake(error) => match tls_error(error) {
                Some(tls) => self.tls(&tls),
                None => self.tls("the server, or the proxy before it, ended the connection during the handshake"),
            },
            Unanswered::Exchange(error) => {
                self.error(HttpErrorKind::Connect, "iaas", format_args!("no connection: {}", innermost(error)))
            }
        }
    }

    pub(super) fn no_tunnel(&self, proxy: &Proxy) -> HttpError {
        let what = format!(
            "no connection through the proxy {proxy} in `limits.connect_seconds`, or in what was left of the request's time"
        );
        self.error(HttpErrorKind::Timeout, "iaas", what)
    }

    /// The same as `sending`, once a proxy's tunnel stood.
    pub(super) fn tunnelled(&self, error: &Unanswered, progress: &Progress) -> HttpError {
        match error {
            Unanswered::Exchange(error) => self.unanswered(error, progress),
            other => self.tunnel(other),
        }
    }

    fn unanswered(&self, error: &(dyn Error + 'static), progress: &Progress) -> HttpError {
        if let Some(failure) = progress.failure() {
            let what = format!("the body could not be sent to its end: {failure}");
            return self.error(HttpErrorKind::Truncated, "runtime", what).after_sending();
        }
        if let Some(tls) = tls_error(error) {
            return self.tls(&tls).after_sending();
        }
        let what = innermost(error);
        if io_error(error).is_some() || any_hyper_error(error, hyper::Error::is_incomplete_message) {
            let what = format!("the connection ended before an answer came ({what}); look at the server's log");
            return self.error(HttpErrorKind::Protocol, "iaas", what).after_sending();
        }
        if any_hyper_error(error, hyper::Error::is_parse_too_large) {
            let what = "its head is too large or has too many headers (`limits.http_headers`, `limits.header_kib`)";
            return self.protocol(what).after_sending();
        }
        self.protocol(what).after_sending()
    }

    fn connecting(&self, error: &reqwest::Error) -> HttpError {
        if let Some(tls) = tls_error(error) {
            return self.tls(&tls);
        }
        if error.is_timeout() {
            let what = "no connection in `limits.connect_seconds`, or in what was left of the request's time; \
                        check routes and firewalls from here to there";
            return self.error(HttpErrorKind::Timeout, "iaas", what);
        }
        // A connection that opens and then breaks is TLS that did not come about.
        let breaks = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
        if self.https && io_error(error).is_some_and(|kind| breaks.contains(&kind)) {
            return self.tls("the server ended the connection during the handshake");
        }
        let what =
            format!("no connection: {}; check that the server runs and can be reached from here", innermost(error));
        self.error(HttpErrorKind::Connect, "iaas", what)
    }

    fn tls(&self, what: &str) -> HttpError {
        let what = format!("TLS failed: {what}; check the server's certificate, and `tls` in the grant");
        self.error(HttpErrorKind::Tls, "iaas", what)
    }

    /// In the middle of the response's body.
    pub(super) fn receiving(&self, error: &reqwest::Error) -> HttpError {
        let what = innermost(error);
        if let Some(tls) = tls_error(error) {
            return self.tls(&tls);
        }
        let cut = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionAborted];
        if any_hyper_error(error, hyper::Error::is_incomplete_message)
            || io_error(error).is_some_and(|kind| cut.contains(&kind))
        {
            let what = "the connection ended before the answer was complete; what came was thrown away";
            return self.error(HttpErrorKind::Truncated, "iaas", what);
        }
        self.protocol(what)
    }
}

/// From what the error came of, or the error itself where it names no URL.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let first = if error.is::<reqwest::Error>() { error.source() } else { Some(error) };
    std::iter::successors(first, |&error| {
        // The source of an I/O error is its content's source: do not skip the content.
        let content = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        content.map(|content| content as &(dyn Error + 'static)).or_else(|| error.source())
    })
}

/// The cause, which is where the useful words are; outer layers know the URL.
fn innermost(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map_or_else(|| "unknown cause".to_owned(), |cause| quoted(&cause.to_string()))
}

fn tls_error(error: &(dyn Error + 'static)) -> Option<String> {
    let tls = chain(error).find_map(|cause| cause.downcast_ref::<rustls::Error>())?;
    Some(match tls {
        rustls::Error::InvalidCertificate(rustls::CertificateError::ApplicationVerificationFailure) => {
            "the server's key is none of `pin_sha256`".to_owned()
        }
        other => quoted(&other.to_string()),
    })
}

/// hyper wraps its own errors, for example where a request was still queued.
fn any_hyper_error(error: &(dyn Error + 'static), is: fn(&hyper::Error) -> bool) -> bool {
    chain(error).filter_map(|cause| cause.downcast_ref()).any(is)
}

fn io_error(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).last().map(io::Error::kind)
}
