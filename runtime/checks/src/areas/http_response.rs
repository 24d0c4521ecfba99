//! Responses of servers.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const Redirects: Entry =
    safeguard("redirects", "The host follows no redirect; the guest gets it as a response.");
pub(crate) const SwitchedProtocol: Entry = refusal(
    "switched-protocol",
    "The server switched to another protocol, which the host cannot judge.",
    "The operator looks at the server: nothing asks it to switch.",
);
pub(crate) const FramingTwice: Entry = refusal(
    "framing-twice",
    "The response has both Content-Length and Transfer-Encoding, so two readers could disagree about its end.",
    "The operator looks at the server and at proxies in front of it: one of them writes a wrong header.",
);
pub(crate) const Truncation: Entry = refusal(
    "truncation",
    "The response ended before it was complete, so its meaning is unknown.",
    "The operator looks at the server's log and at the network between here and there.",
);
pub(crate) const EncodedResponse: Entry = refusal(
    "encoded-response",
    "The response to a guarded request is compressed or otherwise encoded, so it cannot be searched for secrets.",
    "The operator configures the server to answer without encoding.",
);
pub(crate) const CharsetResponse: Entry = refusal(
    "charset-response",
    "The response to a guarded request is text in another charset than UTF-8, so it cannot be searched for secrets.",
    "The operator makes the server answer in UTF-8, and send other files with a type such as `application/octet-stream`.",
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
    "The response names a field that carries credentials and is not readable JSON or XML, so they cannot be removed.",
    "The guest's author asks for JSON or XML; the operator looks at what the server sends.",
);
pub(crate) const ResponseRoom: Entry = safeguard(
    "response-room",
    "A response may exceed its limit by what the guest does not see of it, so that the limit does not measure that.",
);
pub(crate) const ShownPlaces: Entry = safeguard(
    "shown-places",
    "The guest sees the status and the shown places of a response to a request that held a secret.",
);
pub(crate) const DroppedPlaces: Entry =
    safeguard("dropped-places", "The places that a grant drops are removed from responses of its origin.");
pub(crate) const DropUnreadable: Entry = refusal(
    "drop-unreadable",
    "The grants drop places of the origin's responses, and the response is not readable JSON or XML without duplicates.",
    "The operator looks at what the server sends, or gives this request an origin of its own.",
);
pub(crate) const ResponseDigests: Entry = safeguard(
    "response-digests",
    "Validators, digests and lengths are removed from responses where the guest does not see everything.",
);
pub(crate) const SettingsMarker: Entry =
    safeguard("settings-marker", "Values of responses that hold the marker of agent settings are replaced.");
pub(crate) const SettingsShape: Entry =
    safeguard("settings-shape", "Values of responses that read as agent settings of other CPIs are replaced.");
pub(crate) const SettingsDivided: Entry =
    safeguard("settings-divided", "A response that shows agent settings in pieces, one value each, is withheld.");
pub(crate) const SettingsWithheld: Entry = refusal(
    "settings-withheld",
    "The response holds agent settings in pieces, or is neither JSON nor XML, so they cannot be removed.",
    "The operator lists the places that show them under `drop`; the guest's author asks for another resource.",
);
pub(crate) const SignatureQuoted: Entry = safeguard(
    "signature-quoted",
    "Texts of error responses that quote what the host signed are replaced, because they hold a token and digests.",
);
pub(crate) const TunnelHead: Entry =
    safeguard("tunnel-head", "A proxy's response to CONNECT is at most 16 KiB long, and nothing follows its head.");
