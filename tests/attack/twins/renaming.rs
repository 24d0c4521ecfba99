//! Gives the secrets of an ordinary row other values, for its twins. In rows, every
//! secret contains the canary.

use super::plants::replace_in_texts;
use serde_json::Value;
use std::collections::BTreeMap;
use tests::dist::sha256;
use tests::response::CANARY;

/// The values that a twin gives to the secrets of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// Those of the row.
    Same,
    /// Another value for each, of another length.
    Distinct,
    /// One value for all.
    Equal,
}

impl Values {
    /// Returns the document with these values instead of its secrets.
    pub(super) fn in_document(self, document: &Value) -> Value {
        replace_in_texts(document, &|text| self.in_text(text))
    }

    fn in_text(self, text: &str) -> String {
        // A secret that is partly encoded stays as it is, because only its plain part would change.
        let is_encoded =
            |(start, _): (usize, &str)| text[start + length_of_secret(&text[start..])..].starts_with(['\\', '%', '&']);
        if text.match_indices(CANARY).any(is_encoded) {
            return text.to_owned();
        }
        let mut changed = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(CANARY) {
            let end = start + length_of_secret(&rest[start..]);
            changed.push_str(&rest[..start]);
            changed.push_str(&self.value(&rest[start..end]));
            rest = &rest[end..];
        }
        changed + rest
    }

    fn value(self, secret: &str) -> String {
        match self {
            Values::Same => secret.to_owned(),
            Values::Equal => "Zwillings0geheimnis".to_owned(),
            Values::Distinct => {
                let digest = sha256(secret.as_bytes());
                // Long enough for the tripwire, like the secrets of rows.
                let length = 13 + usize::from(digest.as_bytes()[0] % 50);
                format!("Z{}", &digest[..length])
            }
        }
    }
}

/// Returns the length of the secret at the start of the text.
fn length_of_secret(text: &str) -> usize {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    text.find(|c: char| !part(c)).unwrap_or(text.len())
}

/// Returns the secrets of a document.
pub(super) fn secrets_in(document: &Value) -> Vec<String> {
    let text = document.to_string();
    let found = text.match_indices(CANARY).map(|(start, _)| &text[start..]);
    let secrets: BTreeMap<String, ()> = found.map(|rest| (rest[..length_of_secret(rest)].to_owned(), ())).collect();
    secrets.into_keys().collect()
}
