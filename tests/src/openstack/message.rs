//! Requests and responses without sockets and framing, as the simulator handles them.

use serde_json::{Value, json};

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
pub(super) type Answer = Result<Response, Response>;

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
    pub(super) fn query_value(&self, name: &str) -> Option<&str> {
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

/// Returns an error response of Nova or Cinder: an object whose only key is the kind
/// of the error.
pub(super) fn fault(status: u16, message: &str) -> Response {
    let kind = match status {
        400 => "badRequest",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "itemNotFound",
        405 => "badMethod",
        409 => "conflictingRequest",
        413 | 429 => "overLimit",
        415 => "badMediaType",
        501 => "notImplemented",
        503 => "serviceUnavailable",
        _ => "computeFault",
    };
    Response::json(status, &json!({kind: {"code": status, "message": message}}))
}

/// Returns an error response of Neutron.
pub(super) fn neutron_error(status: u16, kind: &str, message: &str) -> Response {
    Response::json(status, &json!({"NeutronError": {"type": kind, "message": message, "detail": ""}}))
}

/// Returns an error response of a service's web framework: plain text, unless the
/// client accepts HTML or JSON.
pub(super) fn error_page(request: &Request, status: u16, title: &str, message: &str) -> Response {
    let accepts = |kind: &str| request.header("accept").is_some_and(|accept| accept.contains(kind));
    let text = |body: String, kind: &str| {
        Response { body: body.into_bytes(), ..Response::new(status) }.with("Content-Type", kind)
    };
    if accepts("text/html") || accepts("*/*") {
        let title = format!("{status} {title}");
        let head = format!("<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n  <h1>{title}</h1>");
        return text(format!("{head}\n  {message}<br /><br />\n\n\n </body>\n</html>"), "text/html; charset=UTF-8");
    }
    if accepts("application/json") {
        let body = json!({
            "message": format!("{message}<br /><br />\n\n\n"), "code": format!("{status} {title}"), "title": title,
        });
        return Response::json(status, &body);
    }
    text(format!("{status} {title}\n\n{message}\n\n   "), "text/plain; charset=UTF-8")
}

/// Returns the answer to an unknown path.
pub(super) fn not_found(request: &Request) -> Response {
    error_page(request, 404, "Not Found", "The resource could not be found.")
}

pub(super) fn unauthorized() -> Response {
    let message = "The request you have made requires authentication.";
    Response::json(401, &json!({"error": {"code": 401, "title": "Unauthorized", "message": message}}))
}

fn percent_decode(text: &str) -> String {
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
