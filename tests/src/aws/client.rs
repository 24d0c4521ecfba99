//! A client that signs its requests, for tests: what is signed can be changed before the
//! request is sent.

use super::clock;
use super::model;
use super::service::{Api, Service};
use super::signature::{self, Authorization, Scope};
use crate::gateway::{self, Request, Response};
use serde_json::Value;
use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Credentials and settings of a client, and the cloud it talks to.
#[derive(Clone, Debug)]
pub struct Client {
    pub cloud: Value,
    pub region: String,
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: Option<String>,
    /// The seconds by which the client's clock is ahead.
    pub clock_ahead: i64,
    /// The service in the signature's scope; by default the right one.
    pub signing_name: Option<&'static str>,
    /// Headers that are sent and not signed.
    pub unsigned: Vec<&'static str>,
}

impl Client {
    /// Returns a client with the credentials of the cloud's first account.
    pub fn new(cloud: &Value) -> Client {
        let text = |key: &str| cloud[key].as_str().unwrap_or_default().to_owned();
        Client {
            cloud: cloud.clone(),
            region: text("region"),
            access_key_id: text("access_key_id"),
            secret_access_key: text("secret_access_key"),
            session_token: None,
            clock_ahead: 0,
            signing_name: None,
            unsigned: Vec::new(),
        }
    }

    /// Returns a signed request. Host, date and session token are added.
    pub fn signed(
        &self,
        service: Service,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Request {
        let now = clock::now(self.clock_ahead);
        let origin = service.origin(&self.cloud).unwrap_or_default();
        let host = origin.split_once("://").map_or(origin.as_str(), |(_, host)| host).to_owned();
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut all: Vec<(String, String)> = headers.iter().map(owned).collect();
        all.push(("Host".to_owned(), host));
        all.push(("X-Amz-Date".to_owned(), clock::format_basic(now)));
        if let Some(token) = &self.session_token {
            all.push(("X-Amz-Security-Token".to_owned(), token.clone()));
        }
        let mut request = Request::new(method, target, all);
        let mut signed: Vec<String> = request.headers.iter().map(|(name, _)| name.to_lowercase()).collect();
        signed.retain(|name| !self.unsigned.contains(&name.as_str()));
        signed.sort_unstable();
        signed.dedup();
        let announced = request.header("x-amz-content-sha256").map(str::to_owned);
        let payload = announced.unwrap_or_else(|| signature::sha256(body));
        let scope = Scope::new(now, &self.region, self.signing_name.unwrap_or(service.signing_name()));
        let canonical = signature::canonical_request(&request, &signed, &payload);
        let text = signature::string_to_sign(&clock::format_basic(now), &scope, &canonical);
        let signature = signature::sign(&self.secret_access_key, &scope, &text);
        let authorization = Authorization { key: self.access_key_id.clone(), scope, signed, signature };
        request.headers.push(("Authorization".to_owned(), authorization.text()));
        request
    }

    /// Returns a signed request for an operation of EC2, STS or load balancing, and its form.
    pub fn form(&self, service: Service, operation: &str, parameters: &[(&str, &str)]) -> (Request, Vec<u8>) {
        let api = match service {
            Service::Elb if model::operation(Api::ElbV2, operation).is_some() => Api::ElbV2,
            Service::Elb => Api::Elb,
            Service::Sts => Api::Sts,
            _ => Api::Ec2,
        };
        let mut text = format!("Action={operation}&Version={}", model::version(api));
        for (name, value) in parameters {
            let _ = write!(text, "&{name}={}", escape(value));
        }
        let kind = "application/x-www-form-urlencoded; charset=utf-8";
        let request = self.signed(service, "POST", "/", &[("Content-Type", kind)], text.as_bytes());
        (request, text.into_bytes())
    }

    /// Sends a request to the service, which may be behind TLS.
    pub fn send(&self, service: Service, request: &Request, body: &[u8]) -> Result<Response, Box<dyn Error>> {
        let origin = service.origin(&self.cloud).ok_or("cloud.json does not have the service")?;
        let mut request = request.clone();
        request.headers.push(("Content-Length".to_owned(), body.len().to_string()));
        gateway::send(&origin, self.cloud["ca"].as_str(), &request, body, TIMEOUT)
    }

    /// Calls an operation of EC2, STS or load balancing over the network.
    #[track_caller]
    pub fn call(&self, service: Service, operation: &str, parameters: &[(&str, &str)]) -> Response {
        let (request, body) = self.form(service, operation, parameters);
        self.send(service, &request, &body).unwrap_or_else(|error| panic!("{operation}: {error}"))
    }
}

/// Escapes a value for a form.
pub fn escape(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

/// Returns the text of the first element with this name in an XML response.
pub fn element(response: &Response, name: &str) -> Option<String> {
    let text = String::from_utf8_lossy(&response.body).into_owned();
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner.to_owned())
}
