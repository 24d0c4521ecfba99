//! Requests and responses without sockets and framing, as the simulators handle them.

use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Decoded names and values, in their order.
    pub query: Vec<(String, String)>,
    pub headers: Vec<(String, String)>,
    /// Path and query as received.
    pub target: String,
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// The result of a handler: both variants are answers, `Err` an error response.
pub(crate) type Answer = Result<Response, Response>;

impl Request {
    pub fn new(method: &str, target: &str, headers: Vec<(String, String)>) -> Request {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(name), percent_decode(value))
        };
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect();
        Request { method: method.to_owned(), path: percent_decode(path), query, headers, target: target.to_owned() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the first value of a query parameter.
    pub(crate) fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl Response {
    pub fn new(status: u16) -> Response {
        Response { status, headers: Vec::new(), body: Vec::new() }
    }

    pub fn json(status: u16, body: &Value) -> Response {
        Response { body: body.to_string().into_bytes(), ..Response::new(status) }
            .with("Content-Type", "application/json")
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Response {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Returns the body if it is JSON, and null otherwise.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Decodes `%XX` and `+`; leaves other text as it is.
pub(crate) fn percent_decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(code)) => {
                plain.push(code);
                at += 3;
            }
            (b'+', _) => {
                plain.push(b' ');
                at += 1;
            }
            (byte, _) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_and_its_order_kept() {
        let request = Request::new("GET", "/v2/images?name=a%20b+c&tag=x&tag=%zz&bare", Vec::new());
        assert_eq!(request.path, "/v2/images");
        let pairs: Vec<(&str, &str)> = request.query.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(pairs, [("name", "a b c"), ("tag", "x"), ("tag", "%zz"), ("bare", "")]);
    }
}
