//! The judged request as the host sends it.

use serde_json::Value;
use url::form_urlencoded::byte_serialize;

use crate::place::write_form;

/// What was judged of a request, in the host's own serialisation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgedRequest {
    /// The query, if it was judged; empty if there is none.
    pub query: Option<String>,
    /// The body, if it was judged and there is one.
    pub body: Option<JudgedBody>,
}

/// A body that was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedBody {
    /// The value of the Content-Type header.
    pub content_type: &'static str,
    /// The serialised body.
    pub bytes: Vec<u8>,
    /// True if it has no field that the rules do not list.
    pub is_listed: bool,
}

impl JudgedRequest {
    /// Returns what either of two rules judged of one request. What both judged is the same.
    pub(crate) fn and(self, other: JudgedRequest) -> JudgedRequest {
        let listed_by = |one: &JudgedRequest| one.body.as_ref().is_some_and(|body| body.is_listed);
        let is_listed = listed_by(&self) || listed_by(&other);
        let body = self.body.or(other.body).map(|body| JudgedBody { is_listed, ..body });
        JudgedRequest { query: self.query.or(other.query), body }
    }
}

impl JudgedBody {
    pub(super) fn json(document: &Value, is_listed: bool) -> JudgedBody {
        JudgedBody { content_type: "application/json", bytes: document.to_string().into_bytes(), is_listed }
    }

    pub(super) fn form(pairs: &[(String, String)], is_listed: bool) -> JudgedBody {
        let text = write_form(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        JudgedBody { content_type: "application/x-www-form-urlencoded", bytes: text.into_bytes(), is_listed }
    }
}

/// Returns the text of a query. A space becomes `%20`, because not every server reads `+` as one.
pub(super) fn query_text(pairs: &[(String, String)]) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20");
    let each: Vec<String> = pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    each.join("&")
}
