//! Error responses of the services.

pub(super) use crate::gateway::{Answer, Request, Response};

use serde_json::json;

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
