//! The methods and header names of HTTP requests.
//!
//! The policy names headers for its credentials, and a guest names headers for its requests.
//! Both are checked with the same list and the same comparison of names, so that neither can
//! set a header that only the host may set.

use wasm_cpi_checks::Check;

/// The methods that a policy can grant. No other method is ever sent.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Headers of framing and routing, beside all that begin with `proxy-`. Programs that a server runs
/// take `Proxy` for the address of their own proxy.
const CONNECTION: [&str; 11] = [
    "host",
    "proxy",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
    "expect",
];

/// Returns a header's name in the form in which names are compared: in lower case and with `-` for
/// everything except letters and digits, because servers that pass headers on as variables do not
/// distinguish `-`, `_`, `.` and the like.
pub fn normalize_header_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let same = |c: char| c.is_alphanumeric() || Check::HeaderUnderscore.choose(false, true);
    lower.chars().map(|c| if same(c) { c } else { '-' }).collect()
}

/// Returns the name of a form's field or of a query parameter in the form in which names are
/// compared. Servers end a name at a zero byte or at `[`, remove what is around it, ignore case, and
/// write other characters as `_`.
pub fn normalize_parameter_name(name: &str) -> String {
    let around = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '[' | ']');
    let name = name.split('\0').next().unwrap_or_default().trim_start_matches(around);
    let name = name.split('[').next().unwrap_or_default().trim_matches(around);
    folded(name).map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

/// Returns true if servers could take two names of fields for the same one: they differ only in case, and in what is
/// not a letter or a digit. Readers of one format accept `serviceAccounts`, `service_accounts` and `service-accounts`.
pub(crate) fn is_alike(one: &str, other: &str) -> bool {
    let letters = |name: &str| folded(name).filter(|c| c.is_alphanumeric()).collect::<String>();
    let (one_letters, other_letters) = (letters(one), letters(other));
    if one_letters.is_empty() { folded(one).eq(folded(other)) } else { one_letters == other_letters }
}

/// Returns true if a server that splits names at other characters than letters and digits could read a name as the
/// field, or as something below it: `User_Role.1` begins like `UserRole`.
pub(crate) fn begins_alike(name: &str, field: &str) -> bool {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let beginnings = words.scan(String::new(), |beginning, word| {
        beginning.push_str(word);
        Some(beginning.clone())
    });
    // No longer beginning has the same letters.
    beginnings.take_while(|beginning| beginning.len() <= 4 * field.len()).any(|beginning| is_alike(&beginning, field))
}

/// Returns a name without regard to case. To upper case and back, the long s becomes an s, as in servers that fold.
fn folded(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

/// Returns true if a header, by its normalized name, controls the framing or routing of a request.
/// Only the host sets such headers.
pub fn is_connection_header(normalized: &str) -> bool {
    CONNECTION.contains(&normalized) || normalized.starts_with("proxy-")
}
