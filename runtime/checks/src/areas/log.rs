//! The log, the audit log and the trace of HTTP.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const EscapeLog: Entry =
    safeguard("escape-log", "Control and bidirectional characters are escaped in lines of the log.");
pub(crate) const GuestLines: Entry =
    safeguard("guest-lines", "Line ends are escaped in a guest's error and in the names of its functions.");
pub(crate) const AuditLink: Entry = refusal(
    "audit-link",
    "The audit file is a symbolic link, through which another user could redirect what is written.",
    "The operator sets `audit.path` in the config to the file itself.",
);
pub(crate) const AuditTrust: Entry = refusal(
    "audit-trust",
    "Other users can write the audit file, so its lines prove nothing.",
    "The operator runs `chown` or `chmod go-w` on the file, as the message says.",
);
pub(crate) const AuditLines: Entry =
    safeguard("audit-lines", "A call writes at most 10,000 audit lines for each operation.");
pub(crate) const TraceCredentials: Entry =
    safeguard("trace-credentials", "The trace of HTTP does not show values that are credentials by their names.");
pub(crate) const TraceBounds: Entry = safeguard("trace-bounds", "The trace of HTTP is bounded for each call.");
pub(crate) const AuditTarget: Entry =
    safeguard("audit-target", "A value that a server chose hides nothing in any field of an audit line.");
