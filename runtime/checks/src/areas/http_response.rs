//! Responses of servers.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const Redirects: Entry =
    safeguard("redirects", "The host follows no redirect; the guest gets it as a response.");
pub(crate) const SwitchedProtocol: Entry = refusal(
    "switched-protocol",
    "The server switched to another protocol, which the host cannot judge.",
    "The operator looks at the server: nothing asks it to switch.",
);
pub(crate) const Truncation: Entry = refusal(
    "truncation",
    "The response ended before it was complete, so its meaning is unknown.",
    "The operator looks at the server's log and at the network between here and there.",
);
pub(crate) const EncodedResponse: Entry = refusal(
    "encoded-response",
    "The response is compressed or otherwise encoded, where the grant sends secrets, and it cannot be searched for them.",
    "The operator configures the server to answer without encoding.",
);
pub(crate) const CredentialHeaders: Entry =
    safeguard("credential-headers", "Set-Cookie and other headers with credentials are removed from responses.");
pub(crate) const CredentialFields: Entry =
    safeguard("credential-fields", "The values of `adminPass` and similar fields are removed from responses.");
pub(crate) const CredentialsHandedOut: Entry = safeguard(
    "credentials-handed-out",
    "Where a request was made with credentials, other credentials are removed from its response.",
);
pub(crate) const CredentialUnreadable: Entry = refusal(
    "credential-unreadable",
    "The response names a field that carries credentials and cannot be parsed, so they cannot be removed.",
    "The operator looks at the server: it sends malformed JSON or XML.",
);
