//! Answers one request, with the same answers as the Ruby bosh-registry.
//!
//! The credentials are checked before anything else of a request.

use super::auth::Credentials;
use super::store::Store;
use crate::registry::check_id;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use wasm_cpi_policy::strict_json;

const MAX_DEPTH: usize = 64;
/// The bytes of a body that is too large that are read.
const MAX_DROPPED: usize = 4 << 20;

/// The API on one store.
pub(super) struct Api {
    store: Arc<Store>,
    credentials: Credentials,
    max_bytes: usize,
}

pub(super) type ApiResponse = Response<Full<Bytes>>;

impl Api {
    pub(super) fn new(store: Store, credentials: Credentials, max_kib: u64) -> Self {
        let max_bytes = usize::try_from(max_kib.saturating_mul(1024)).unwrap_or(usize::MAX);
        Api { store: Arc::new(store), credentials, max_bytes }
    }

    /// Answers a request. `body_time` limits the time for reading its whole body.
    pub(super) async fn answer(&self, request: Request<Incoming>, body_time: Duration) -> ApiResponse {
        if !self.credentials.allow(request.headers()) {
            let mut answer = closing(StatusCode::UNAUTHORIZED, json!({"status": "access_denied"}));
            let realm = HeaderValue::from_static("Basic realm=\"Bosh Registry\"");
            answer.headers_mut().insert(WWW_AUTHENTICATE, realm);
            return answer;
        }
        let path = request.uri().path();
        let id = path.strip_prefix("/instances/").and_then(|rest| rest.strip_suffix("/settings"));
        let Some(id) = id.map(str::to_owned) else {
            return closing(StatusCode::NOT_FOUND, json!({"status": "not_found"}));
        };
        if let Err(error) = check_id(&id) {
            return bad(StatusCode::BAD_REQUEST, &error.to_string());
        }
        match *request.method() {
            Method::GET => self.get(id).await,
            Method::PUT => match self.settings(request, body_time).await {
                Ok(settings) => self.put(id, settings).await,
                Err(answer) => answer,
            },
            Method::DELETE => self.delete(id).await,
            _ => {
                let mut answer = bad(StatusCode::METHOD_NOT_ALLOWED, "use GET, PUT or DELETE");
                answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, PUT, DELETE"));
                answer
            }
        }
    }

    async fn get(&self, id: String) -> ApiResponse {
        match self.on_store(move |store| store.get(&id)).await {
            Ok(Some(settings)) => plain(StatusCode::OK, json!({"status": "ok", "settings": settings})),
            Ok(None) => plain(StatusCode::NOT_FOUND, json!({"status": "not_found"})),
            Err(answer) => answer,
        }
    }

    async fn put(&self, id: String, settings: String) -> ApiResponse {
        match self.on_store(move |store| store.put(&id, &settings)).await {
            Ok(()) => plain(StatusCode::OK, json!({"status": "ok"})),
            Err(answer) => answer,
        }
    }

    async fn delete(&self, id: String) -> ApiResponse {
        match self.on_store(move |store| store.delete(&id)).await {
            Ok(()) => plain(StatusCode::OK, json!({"status": "ok"})),
            Err(answer) => answer,
        }
    }

    async fn settings(&self, request: Request<Incoming>, body_time: Duration) -> Result<String, ApiResponse> {
        let too_large = || {
            bad(
                StatusCode::PAYLOAD_TOO_LARGE,
                &format!("the settings are too large; the limit is {} bytes", self.max_bytes),
            )
        };
        let body = match tokio::time::timeout(body_time, read_body(request.into_body(), self.max_bytes)).await {
            Err(_) => return Err(bad(StatusCode::REQUEST_TIMEOUT, "the body took too long to arrive; send it again")),
            Ok(Err(_)) => return Err(bad(StatusCode::BAD_REQUEST, "the body is incomplete; send it again")),
            Ok(Ok(body)) => body.ok_or_else(too_large)?,
        };
        let not_settings =
            || bad(StatusCode::BAD_REQUEST, "settings must be a JSON object in UTF-8 without duplicate keys");
        let text = String::from_utf8(body).map_err(|_| not_settings())?;
        match strict_json::parse(&text, MAX_DEPTH) {
            Ok(Value::Object(_)) => Ok(text),
            _ => Err(not_settings()),
        }
    }

    /// Runs `work` on another thread, because syncing to disk blocks.
    async fn on_store<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Store) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, ApiResponse> {
        let store = self.store.clone();
        let result = tokio::task::spawn_blocking(move || work(&store)).await;
        let problem = match result {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        let _ = writeln!(std::io::stderr(), "registry: the store failed: {problem}; check the disk");
        Err(plain(StatusCode::INTERNAL_SERVER_ERROR, json!({"status": "error"})))
    }
}

/// Reads a body; returns `None` if it is larger than `most`. The rest of such a body is read and dropped,
/// because a client that is still sending when the connection is closed may not get the response.
async fn read_body(mut body: Incoming, most: usize) -> Result<Option<Vec<u8>>, hyper::Error> {
    let (mut bytes, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let data = frame?.into_data().unwrap_or_default();
        length += data.len();
        if length <= most {
            bytes.extend_from_slice(&data);
        } else if length > most + MAX_DROPPED {
            break;
        }
    }
    Ok((length <= most).then_some(bytes))
}

fn plain(status: StatusCode, body: Value) -> ApiResponse {
    let mut answer = Response::new(Full::new(Bytes::from(body.to_string())));
    *answer.status_mut() = status;
    let headers: &mut HeaderMap = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// Returns an answer that closes the connection. It is for requests whose body was not read: the
/// rest of the body would be parsed as the next request.
fn closing(status: StatusCode, body: Value) -> ApiResponse {
    let mut answer = plain(status, body);
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

fn bad(status: StatusCode, message: &str) -> ApiResponse {
    closing(status, json!({"status": "error", "message": message}))
}
