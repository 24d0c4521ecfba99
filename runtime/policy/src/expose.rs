//! Which properties a guest may read; for all others it gets a seal in place of the value.
//!
//! The operator lists the properties, or writes `"declared"` to leave the choice to the
//! pinned guest. In the second case nothing that looks like a credential is shown.

use serde_json::Value;

use super::needs::Needs;
use super::object_reader::{ObjectReader, kind};
use super::template::is_property_path;
use wasm_cpi_checks::Check;

/// The properties whose values the operator shows to the guest. The default shows none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expose {
    /// The dotted paths that the operator lists. A path also shows what is below it, except
    /// values that look like credentials and are not listed themselves.
    Listed(Vec<String>),
    /// The properties that the guest's needs declare, except what looks like a credential.
    Declared,
}

impl Default for Expose {
    fn default() -> Self {
        Expose::Listed(Vec::new())
    }
}

impl Expose {
    pub(super) fn read(reader: &mut ObjectReader<'_>) -> Expose {
        match reader.value("expose") {
            Some(Value::String(word)) if word == "declared" => Expose::Declared,
            None => Expose::default(),
            Some(Value::Array(_)) => {
                let mut listed = Vec::new();
                for (at, path) in reader.texts("expose") {
                    if is_property_path(path) {
                        listed.push(path.to_owned());
                    } else {
                        reader.problems().add(
                            at,
                            "is not a valid name of a property",
                            "write it like `region` or `network.zone`",
                        );
                    }
                }
                Expose::Listed(listed)
            }
            Some(other) => {
                let what = format!("is {}", kind(other));
                reader.problem("expose", what, "list the properties the guest may see, or write \"declared\"");
                Expose::default()
            }
        }
    }

    /// Adds the paths that a preset lists. Has no effect if either side is `"declared"`, which
    /// only the operator's own policy can choose.
    pub(super) fn extend(&mut self, preset: Expose) {
        if let (Expose::Listed(listed), Expose::Listed(more)) = (self, preset) {
            listed.extend(more);
        }
    }

    /// Returns true if the guest may read this leaf. `path` is the dotted path of the leaf; an
    /// element of a list has the path of the list.
    pub(super) fn shows(&self, path: &str, value: &Value, needs: Option<&Needs>) -> bool {
        let below = |listed: &String| path.strip_prefix(listed.as_str()).is_some_and(|rest| rest.starts_with('.'));
        let named = |list: &[String]| list.iter().any(|listed| listed == path);
        let credential = Check::ExposedCredential.refuses(looks_like_a_credential(path, value));
        match (self, needs) {
            (Expose::Listed(list), _) => named(list) || (!credential && list.iter().any(below)),
            (Expose::Declared, Some(needs)) => !credential && (named(&needs.expose) || needs.expose.iter().any(below)),
            (Expose::Declared, None) => false,
        }
    }
}

/// Returns true if the name says so, or if the value holds `name:password@` or a private key.
/// Rather finds too much than too little: the operator can list a property by its full path.
fn looks_like_a_credential(path: &str, value: &Value) -> bool {
    let path = path.to_lowercase();
    let userinfo = |text: &str| matches!((text.find(':'), text.rfind('@')), (Some(colon), Some(at)) if colon < at);
    NAMES.iter().any(|name| path.contains(name))
        || value.as_str().is_some_and(|text| userinfo(text) || is_private_key(text))
}

/// The parts of names that credentials have.
const NAMES: [&str; 6] = ["pass", "pwd", "secret", "token", "key", "credential"];

fn is_private_key(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
}

/// Returns true if a property or field of this name holds a credential. A name or an ID of a
/// credential is none: responses of a cloud repeat the name of a key pair.
///
/// ```
/// use wasm_cpi_policy::is_credential_name;
///
/// assert!(is_credential_name("auth.password") && is_credential_name("apiKey"));
/// assert!(!is_credential_name("default_key_name") && !is_credential_name("password.user.name"));
/// ```
pub fn is_credential_name(path: &str) -> bool {
    let path = path.to_lowercase();
    let mut parts = path.rsplit('.');
    // The element of a list has the name of the list.
    let last = parts.find(|part| part.parse::<usize>().is_err()).unwrap_or_default();
    let describes = ["name", "id", "public_key", "url", "path", "type"].iter().any(|end| last.ends_with(end));
    let above = parts.next().unwrap_or_default();
    !describes && [last, above].iter().any(|part| NAMES.iter().any(|name| part.contains(name)))
}

/// Returns true if a property holds a credential, by its name or because it is a private key.
pub fn looks_like_credential(path: &str, value: &str) -> bool {
    is_credential_name(path) || is_private_key(value)
}
