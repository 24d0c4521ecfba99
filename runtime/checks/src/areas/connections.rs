//! Connections that are kept for further requests of a call.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const KeptIdentity: Entry =
    safeguard("kept-identity", "Requests with the credentials of different logins or grants never share a connection.");
pub(crate) const KeptTls: Entry =
    safeguard("kept-tls", "Requests with different TLS settings never share a connection or a TLS session.");
pub(crate) const KeptAddress: Entry =
    safeguard("kept-address", "A kept connection is used only if its address is allowed for the new request.");
pub(crate) const KeptFraming: Entry = safeguard(
    "kept-framing",
    "A connection is kept only after a strictly framed response that began when the request was complete.",
);
pub(crate) const KeptBody: Entry =
    safeguard("kept-body", "A connection on which the server may have left a body unread is not used again.");
pub(crate) const InterimResponses: Entry = refusal(
    "interim-responses",
    "The server sent more interim responses (1xx) than a client has to wait for.",
    "The operator looks at the server, and at proxies in front of it.",
);
