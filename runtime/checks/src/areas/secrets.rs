//! Secrets in responses, results, logs and messages, and how logins get tokens.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const Tripwire: Entry = refusal(
    "tripwire",
    "The response holds a secret of this call, so the guest must not see it.",
    "The operator looks at what the server sends back, or lists the property under `expose` if it is not secret.",
);
pub(crate) const TripwireTwice: Entry = refusal(
    "tripwire-twice",
    "Two responses of the call held secrets, so the guest may be looking for them, and the call was ended.",
    "The operator looks at the guest's requests in the audit log before the guest is used again.",
);
pub(crate) const TripwireShown: Entry = refusal(
    "tripwire-shown",
    "What a login would show the guest holds a secret.",
    "The operator narrows `show` of the login.",
);
pub(crate) const ResultWithheld: Entry = refusal(
    "result-withheld",
    "The guest's result holds a secret, which would be stored and logged by the Director.",
    "The operator lists the property under `expose` if it is not secret; otherwise the guest has a bug.",
);
pub(crate) const FormBase64: Entry = safeguard("form-base64", "Secrets and seals are recognised in base64.");
pub(crate) const FormHex: Entry = safeguard("form-hex", "Secrets and seals are recognised as hexadecimal digits.");
pub(crate) const FormJson: Entry = safeguard("form-json", "Secrets and seals are recognised with JSON escapes.");
pub(crate) const FormPercent: Entry =
    safeguard("form-percent", "Secrets and seals are recognised when they are percent-encoded.");
pub(crate) const FormXml: Entry = safeguard("form-xml", "Secrets and seals are recognised with XML entities.");
pub(crate) const FormLines: Entry =
    safeguard("form-lines", "Secrets and seals are recognised with line breaks in them.");
pub(crate) const SecretLines: Entry =
    safeguard("secret-lines", "Single lines of a secret with many lines are recognised.");
pub(crate) const RedactLog: Entry = safeguard("redact-log", "Secrets are redacted in lines of the log.");
pub(crate) const RedactAnswer: Entry = safeguard("redact-answer", "Secrets are redacted in the message of a response.");
pub(crate) const RedactGuestError: Entry =
    safeguard("redact-guest-error", "Secrets are redacted in the message of a failed request that the guest gets.");
pub(crate) const SealPrinted: Entry =
    safeguard("seal-printed", "Seals are replaced by their names in the log and in messages.");
pub(crate) const LoginPlace: Entry =
    safeguard("login-place", "The guest does not learn where a login goes when the login fails.");
pub(crate) const LoginStatus: Entry = refusal(
    "login-status",
    "The server refused the login or redirected it, so there is no token.",
    "The operator checks the properties that the login takes its credentials from, and the server's log.",
);
pub(crate) const LoginCount: Entry = refusal(
    "login-count",
    "The login was repeated 100 times in one call, because the servers accept none of its tokens.",
    "The operator looks at the servers' logs.",
);
pub(crate) const LoginTokenSize: Entry = refusal(
    "login-token-size",
    "The token of the login is longer than 64 KiB, which no header can hold.",
    "The operator corrects `token` of the login, or looks at what the server sends.",
);
