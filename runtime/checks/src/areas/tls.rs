//! How a server proves its identity.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const TlsIssuer: Entry = refusal(
    "tls-issuer",
    "No authority that the grant or login trusts has issued the server's certificate.",
    "The operator sets `tls.ca` of the grant, login or entry in `presets` to the server's CA, or corrects the server's certificate.",
);
pub(crate) const TlsName: Entry = refusal(
    "tls-name",
    "The server's certificate is for another name than the one in the URL.",
    "The operator uses a name that the certificate has, or corrects the server's certificate.",
);
pub(crate) const TlsTime: Entry = refusal(
    "tls-time",
    "The server's certificate is expired or not valid yet.",
    "The operator renews the server's certificate, or corrects the clock of this machine.",
);
pub(crate) const TlsPin: Entry = refusal(
    "tls-pin",
    "Neither the server's key nor its certificate has a digest that the grant pins.",
    "The operator adds the digest of the new key to `tls.pin_sha256`, if the server's key was changed on purpose.",
);
pub(crate) const TlsEnvironment: Entry =
    safeguard("tls-environment", "The variable SSL_CERT_FILE does not decide which authorities are trusted.");
pub(crate) const TlsKeyLog: Entry =
    safeguard("tls-key-log", "The keys of a session are not written to the file in SSLKEYLOGFILE.");
