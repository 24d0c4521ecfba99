//! Secrets in responses, results, logs and messages, and how logins get tokens.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const Tripwire: Entry = refusal(
    "tripwire",
    "The response holds a credential of this call, so the guest must not see it, and the call was ended.",
    "The operator hides the place with `drop` or `captures` of the grant, and then runs `wasm-cpi forget-leaks --config CPI.json`.",
);
pub(crate) const TripwireCredentials: Entry =
    safeguard("tripwire-credentials", "Only credentials are searched for in responses, not every property.");
pub(crate) const TripwireBatch: Entry = safeguard(
    "tripwire-batch",
    "Of requests that are sent at once, the guest gets no response after the first one that held a credential.",
);
pub(crate) const TripwireTwice: Entry =
    safeguard("tripwire-twice", "A guest that gets a second credential while it cleans up is stopped at once.");
pub(crate) const TripwireUnseen: Entry = safeguard(
    "tripwire-unseen",
    "What a guest does not get is not searched for captured values, which the guest may have chosen.",
);
pub(crate) const TripwireShown: Entry = refusal(
    "tripwire-shown",
    "What a login would show the guest holds a secret.",
    "The operator narrows `show` of the login.",
);
pub(crate) const ResultWithheld: Entry = refusal(
    "result-withheld",
    "The guest's result holds a credential, which would be stored and logged by the Director.",
    "The operator hides the place with `drop` or `captures` of the grant, and then runs `wasm-cpi forget-leaks --config CPI.json`.",
);
pub(crate) const EndingWords: Entry =
    safeguard("ending-words", "A guest gets the same words at every early ending, whatever the reason is.");
pub(crate) const LeakLatched: Entry = refusal(
    "leak-latched",
    "A response or a result of an earlier call of this guest held a credential, so its calls are refused.",
    "The operator looks at the guest's requests in the audit log, and then runs the command in the message, `wasm-cpi forget-leaks`.",
);
pub(crate) const LatchTrust: Entry = refusal(
    "latch-trust",
    "The file that remembers leaks is a link, or other users can write it.",
    "The operator runs `chown` or `chmod go-w` on the file, or looks for leaks in the audit log before deleting it.",
);
pub(crate) const FormBase64: Entry = safeguard("form-base64", "Secrets and seals are recognised in base64.");
pub(crate) const FormHex: Entry = safeguard("form-hex", "Secrets and seals are recognised as hexadecimal digits.");
pub(crate) const FormJson: Entry = safeguard("form-json", "Secrets and seals are recognised with JSON escapes.");
pub(crate) const FormPercent: Entry =
    safeguard("form-percent", "Secrets and seals are recognised when they are percent-encoded.");
pub(crate) const FormXml: Entry = safeguard("form-xml", "Secrets and seals are recognised with XML entities.");
pub(crate) const FormLines: Entry =
    safeguard("form-lines", "Secrets and seals are recognised with line breaks in them.");
pub(crate) const FormWide: Entry = safeguard("form-wide", "Secrets and seals are recognised in UTF-16 and UTF-32.");
pub(crate) const SecretLines: Entry =
    safeguard("secret-lines", "Single lines of a secret with many lines are recognised.");
pub(crate) const RedactLog: Entry = safeguard("redact-log", "Secrets are redacted in lines of the log.");
pub(crate) const RedactResponse: Entry =
    safeguard("redact-response", "Secrets are redacted in the message of a response.");
pub(crate) const RedactCut: Entry =
    safeguard("redact-cut", "A long text for operators is cut before a secret that the cut would divide.");
pub(crate) const GuestText: Entry =
    safeguard("guest-text", "The guest gets the text of an error as it is, so it cannot ask which words are secrets.");
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
pub(crate) const LoginFailures: Entry = refusal(
    "login-failures",
    "The login failed three times in one call, and more attempts could lock the account.",
    "The operator corrects the login's credentials, or looks at the server's log.",
);
pub(crate) const LoginRenewal: Entry = refusal(
    "login-renewal",
    "A server refuses a token that is less than a minute old, so another login would not help.",
    "The operator looks at the server's log and at the rights of the login's user.",
);
pub(crate) const TokenKnown: Entry =
    safeguard("token-known", "A token that an earlier call kept is a secret in calls that do not use its login, too.");
pub(crate) const TokenRecord: Entry =
    safeguard("token-record", "A kept token is used only if its record is authentic and complete.");
pub(crate) const TokenTrust: Entry =
    safeguard("token-trust", "Tokens are kept only in files of this user that no one else can read.");
pub(crate) const LoginTokenForm: Entry = refusal(
    "login-token-form",
    "The token of the login has characters that no header can hold.",
    "The operator corrects `token` of the login, or looks at what the server sends.",
);
pub(crate) const LoginTokenSize: Entry = refusal(
    "login-token-size",
    "The token of the login is longer than 64 KiB, which no header can hold.",
    "The operator corrects `token` of the login, or looks at what the server sends.",
);
