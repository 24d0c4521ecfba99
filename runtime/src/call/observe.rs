//! Reports what a guest asks for to the log, the audit log and `wasm-cpi call`.

use crate::audit::Audit;
use crate::host::{HostCall, HostCallObserver};
use crate::log::{GuestLog, Level};
use crate::net::gate::{HttpEvent, HttpObserver, HttpOutcome};
use std::sync::Arc;

/// Sees everything that a guest asks for.
pub type Observer = Arc<dyn Fn(Observed<'_>) + Send + Sync>;

/// One thing that a guest asked for.
pub enum Observed<'a> {
    Http(&'a HttpEvent),
    Host(&'a HostCall<'a>),
}

/// Returns an observer of host calls, or `None` if there is neither an audit log nor an observer.
pub(super) fn host_calls(audit: &Arc<Audit>, observer: Option<Observer>) -> Option<HostCallObserver> {
    if observer.is_none() && !audit.is_on() {
        return None;
    }
    let audit = Arc::clone(audit);
    Some(Arc::new(move |call: &HostCall<'_>| {
        audit.host(call);
        if let Some(observer) = &observer {
            observer(Observed::Host(call));
        }
    }))
}

/// Returns an observer of HTTP requests. Requests are logged at debug level, refused and failed
/// ones as warnings. They count as the guest's lines, because the guest decides how many there
/// are.
pub(super) fn http(audit: &Arc<Audit>, log: &Arc<GuestLog>, observer: Option<Observer>) -> HttpObserver {
    let (audit, log) = (Arc::clone(audit), Arc::clone(log));
    Box::new(move |event| {
        audit.http(event);
        // A request of the host that was redirected or failed is always a warning, and so is an error that the guest
        // did not see.
        let explained = !event.detail.is_empty() || !event.hidden.is_empty();
        let is_of_host = event.login.is_some() || event.credentials.is_some();
        let is_fine = match event.outcome {
            HttpOutcome::Status(status) => !is_of_host || status < 300,
            HttpOutcome::NothingToSend => true,
            HttpOutcome::Failed(_) => false,
        };
        let level = if is_fine && !explained { Level::Debug } else { Level::Warn };
        log.write_runtime_line(level, &event.to_string());
        if let Some(observer) = &observer {
            observer(Observed::Http(event));
        }
    })
}
