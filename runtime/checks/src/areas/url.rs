//! URLs of a guest's requests. What two parsers could read differently is refused.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const UrlCharacters: Entry = refusal(
    "url-characters",
    "The URL holds a space, a control character or a backslash, which URL parsers repair in different ways.",
    "The guest's author percent-encodes such characters.",
);
pub(crate) const UrlScheme: Entry = refusal(
    "url-scheme",
    "The URL has a scheme other than http and https, and no other scheme can be granted.",
    "The guest's author uses an https URL.",
);
pub(crate) const UrlSlashes: Entry = refusal(
    "url-slashes",
    "The URL does not have the form `https://host[:port]/path`, so parsers disagree about its host.",
    "The guest's author writes the URL with a scheme, two slashes and a host.",
);
pub(crate) const UrlUserinfo: Entry = refusal(
    "url-userinfo",
    "The URL holds a user name or a password, which would send credentials past the policy.",
    "The guest's author removes it, and the operator sets `auth` in the grant if the server wants credentials.",
);
pub(crate) const UrlPercentHost: Entry = refusal(
    "url-percent-host",
    "The host of the URL is percent-encoded or has a zone ID, and parsers decode such hosts differently.",
    "The guest's author writes the plain host.",
);
pub(crate) const UrlHostAscii: Entry = refusal(
    "url-host-ascii",
    "The host of the URL has characters outside of ASCII, which parsers convert to different names.",
    "The guest's author writes an international name in its ASCII form, `xn--…`.",
);
pub(crate) const UrlPort: Entry = refusal(
    "url-port",
    "The port of the URL is not a plain number from 1 to 65535, so parsers could connect to different ports.",
    "The guest's author writes the port as a number without leading zeros, or leaves it out.",
);
pub(crate) const UrlNameLength: Entry = refusal(
    "url-name-length",
    "The host name of the URL, or one of its labels, is longer than DNS allows.",
    "The guest's author checks where the host name comes from.",
);
pub(crate) const UrlNameCharacters: Entry = refusal(
    "url-name-characters",
    "The host name of the URL has characters that DNS names do not have.",
    "The guest's author checks where the host name comes from.",
);
pub(crate) const PathBrokenEscape: Entry = refusal(
    "path-broken-escape",
    "The path of the URL has a `%` without two hexadecimal digits, which servers read differently.",
    "The guest's author writes a percent sign as `%25`.",
);
pub(crate) const PathEncodedSlash: Entry = refusal(
    "path-encoded-slash",
    "The path of the URL has an encoded slash or backslash, which some servers decode, so they see another path.",
    "The guest's author sends the value in the query or the body.",
);
pub(crate) const PathEncodedControl: Entry = refusal(
    "path-encoded-control",
    "The path of the URL has an encoded control character, which servers cut or remove.",
    "The guest's author removes it from the path.",
);
pub(crate) const PathDoubleEncoding: Entry = refusal(
    "path-double-encoding",
    "The path of the URL has a separator that is encoded twice; a server that decodes twice sees another path.",
    "The guest's author encodes each value once.",
);
pub(crate) const PathUnreserved: Entry =
    safeguard("path-unreserved", "Needless escapes in a path are decoded, so the policy judges what is sent.");
pub(crate) const PathText: Entry = refusal(
    "path-text",
    "The escapes in the path of the URL are not UTF-8, and lenient decoders read such bytes as dots or slashes.",
    "The guest's author encodes text as UTF-8.",
);
pub(crate) const PathDotParameters: Entry = refusal(
    "path-dot-parameters",
    "A path segment is dots or nothing, followed by `;`, and servers that remove parameters see another path.",
    "The guest's author removes the segment.",
);
