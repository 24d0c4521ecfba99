//! Which properties a guest may see as they are; all others reach it as seals.
//!
//! The operator lists them, or leaves the choice to the pinned module
//! (`"declared"`), and then nothing that looks like a credential is shown.

use serde_json::Value;

use super::fields::{Fields, kind};
use super::needs::Needs;
use super::template::is_property_path;
use crate::holes::Check;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expose {
    /// Dotted paths; one shows what is below it, except what looks like a
    /// credential and is not listed itself.
    Listed(Vec<String>),
    /// What the module's needs declare.
    Declared,
}

impl Default for Expose {
    fn default() -> Self {
        Expose::Listed(Vec::new())
    }
}

impl Expose {
    pub(super) fn read(fields: &mut Fields<'_>) -> Expose {
        match fields.value("expose") {
            Some(Value::String(word)) if word == "declared" => Expose::Declared,
            None => Expose::default(),
            Some(Value::Array(_)) => {
                let mut listed = Vec::new();
                for (at, path) in fields.texts("expose") {
                    if is_property_path(path) {
                        listed.push(path.to_owned());
                    } else {
                        fields.problems().add(
                            at,
                            "is no name of a property",
                            "write it like `region` or `network.zone`",
                        );
                    }
                }
                Expose::Listed(listed)
            }
            Some(other) => {
                let what = format!("is {}", kind(other));
                fields.problem("expose", what, "list the properties the guest may see, or write \"declared\"");
                Expose::default()
            }
        }
    }

    /// Also what a preset lists. `"declared"` is the operator's word, and stays.
    pub(super) fn extend(&mut self, preset: Expose) {
        if let (Expose::Listed(listed), Expose::Listed(more)) = (self, preset) {
            listed.extend(more);
        }
    }

    /// `path` is the dotted path of a leaf; elements of lists have the list's.
    pub(super) fn shows(&self, path: &str, value: &Value, needs: Option<&Needs>) -> bool {
        let below = |listed: &String| path.strip_prefix(listed.as_str()).is_some_and(|rest| rest.starts_with('.'));
        let named = |list: &[String]| list.iter().any(|listed| listed == path);
        let credential = Check::ExposedCredential.on() && looks_like_a_credential(path, value);
        match (self, needs) {
            (Expose::Listed(list), _) => named(list) || (!credential && list.iter().any(below)),
            (Expose::Declared, Some(needs)) => !credential && (named(&needs.expose) || needs.expose.iter().any(below)),
            (Expose::Declared, None) => false,
        }
    }
}

/// By its name, as `name:password@` within a string, or as a private key. Too wide rather than too
/// narrow: the operator can always list a property by its full name.
fn looks_like_a_credential(path: &str, value: &Value) -> bool {
    const NAMES: [&str; 6] = ["pass", "pwd", "secret", "token", "key", "credential"];
    let path = path.to_lowercase();
    let userinfo = |text: &str| matches!((text.find(':'), text.rfind('@')), (Some(colon), Some(at)) if colon < at);
    let private_key = |text: &str| text.contains("PRIVATE KEY-----");
    NAMES.iter().any(|name| path.contains(name))
        || value.as_str().is_some_and(|text| userinfo(text) || private_key(text))
}
