//! A login described as data: the request, where the token and its expiry are in
//! the answer, how the token is sent, and what of the answer the guest may see.
//!
//! So the host can log in to any API of this shape without knowing its name.
//! What is shown to the guest must not contain the token.

use serde_json::Value;

use super::auth::{check_header_name, header_name};
use super::body::{BodySpec, LoginBody, resolve_all, templates};
use super::fields::{Fields, IDENT, is_ident};
use super::origin::Origin;
use super::path::PathPattern;
use super::problem::Problems;
use super::properties::Properties;
use super::reach::ReachSpec;
use super::slots::{method, place};
use super::template::{SecretRef, Template};
use super::tls::Tls;
use crate::holes::Check;
use crate::net::addresses::Addresses;
use crate::net::destination::Destination;
use crate::place::Place;
use crate::secret::Layer;

#[derive(Clone, Debug)]
pub struct Login {
    pub name: String,
    pub destination: Destination,
    pub origin: Origin,
    /// Of the origin.
    pub layer: Layer,
    pub method: String,
    /// Names in lower case.
    pub headers: Vec<(String, SecretRef)>,
    pub body: LoginBody,
    pub addresses: Addresses,
    pub tls: Tls,
    /// In the response.
    pub token: Place,
    pub expires: Option<Expires>,
    /// The header that sends the token, in lower case, and what stands before it.
    pub send: SendToken,
    /// What `session` answers: names, and where their values are in the response.
    pub show: Vec<(String, Place)>,
    /// `Job` if any credential in the request is the job's.
    pub token_layer: Layer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expires {
    /// A time as RFC 3339 writes it.
    At(Place),
    InSeconds(Place),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendToken {
    pub header: String,
    pub prefix: String,
}

/// As written in the file.
#[derive(Clone, Debug)]
pub(super) struct LoginSpec {
    at: String,
    name: String,
    reach: ReachSpec,
    method: String,
    path: String,
    headers: Vec<(String, Template)>,
    body: BodySpec,
    token: Place,
    expires: Option<Expires>,
    send: SendToken,
    show: Vec<(String, Place)>,
}

const SECRETS: &str = "login";
const MAX_BYTES: u64 = 8192;

impl LoginSpec {
    pub(super) fn read(name: &str, value: &Value, at: String, problems: &Problems) -> Option<LoginSpec> {
        let mut fields = Fields::open(value, at.clone(), problems)?;
        if !is_ident(name) {
            problems.add(&at, "is no name for a login", IDENT);
        }
        let reach = ReachSpec::read(&mut fields);
        let method =
            fields.text("method").map_or(Some("POST".to_owned()), |text| method(text, &fields.at("method"), problems));
        let path = fixed_path(&mut fields);
        let headers = headers(&mut fields);
        let body = BodySpec::read(&mut fields);
        let token = place(&mut fields, "token");
        let expires = expires(&mut fields);
        let send = send(&mut fields);
        let show = show(&mut fields, token.as_ref());
        fields.close();
        let reach = reach?;
        reach.check(Some(SECRETS), &at, problems);
        Some(LoginSpec {
            at,
            name: name.to_owned(),
            reach,
            method: method?,
            path: path?,
            headers,
            body,
            token: token?,
            expires,
            send: send?,
            show,
        })
    }

    pub(super) fn at(&self) -> &str {
        &self.at
    }

    pub(super) fn plain_http(&self) -> bool {
        self.reach.plain_http
    }

    pub(super) fn resolve(&self, properties: &Properties, problems: &Problems) -> Option<Login> {
        let reach = self.reach.resolve(properties, Some(SECRETS), &self.at, problems)?;
        let headers = resolve_all(&self.headers, properties, reach.layer, &format!("{}.headers", self.at), problems);
        let (body, mut layers) = self.body.resolve(properties, reach.layer, &self.at, problems)?;
        layers.extend(headers.iter().filter(|(_, value)| !value.name.is_empty()).map(|(_, value)| value.layer));
        if reach.tls.client.is_some() {
            layers.push(reach.layer);
        }
        let from_context = !layers.is_empty() && layers.iter().all(|layer| *layer == Layer::Context);
        let url = format!("{}{}{}", reach.origin, reach.base, self.path);
        let destination = match Destination::parse(&url, MAX_BYTES) {
            Ok(destination) => destination,
            Err(invalid) => {
                problems.add(format!("{}.path", self.at), invalid.to_string(), "write a shorter, plain path");
                return None;
            }
        };
        Some(Login {
            name: self.name.clone(),
            destination,
            origin: reach.origin,
            layer: reach.layer,
            method: self.method.clone(),
            headers,
            body,
            addresses: self.reach.addresses.clone(),
            tls: reach.tls,
            token: self.token.clone(),
            expires: self.expires.clone(),
            send: self.send.clone(),
            show: self.show.clone(),
            token_layer: if from_context { Layer::Context } else { Layer::Job },
        })
    }
}

fn fixed_path(fields: &mut Fields<'_>) -> Option<String> {
    let text = fields.required_text("path", "/v1/sessions")?;
    match PathPattern::parse(text) {
        Ok(_) if text.contains('*') => {
            fields.problem("path", "has a `*`", "write the one path that the login is sent to");
            None
        }
        Ok(_) => Some(text.to_owned()),
        Err((what, remedy)) => {
            fields.problem("path", what, remedy);
            None
        }
    }
}

fn headers(fields: &mut Fields<'_>) -> Vec<(String, Template)> {
    let at = fields.at("headers");
    let mut headers: Vec<(String, Template)> = Vec::new();
    for (name, template) in templates(fields, "headers") {
        match check_header_name(&name) {
            Ok(name) if headers.iter().any(|(known, _)| *known == name) => {
                fields.problems().add(format!("{at}.{name}"), "stands there twice, as case does not count", "keep one");
            }
            Ok(name) => headers.push((name, template)),
            Err((what, remedy)) => fields.problems().add(format!("{at}.{name}"), what, remedy),
        }
    }
    headers
}

fn expires(parent: &mut Fields<'_>) -> Option<Expires> {
    let value = parent.value("expires")?;
    let mut fields = Fields::open(value, parent.at("expires"), parent.problems())?;
    let at = fields.value("at").is_some().then(|| place(&mut fields, "at")).flatten();
    let seconds = fields.value("in_seconds").is_some().then(|| place(&mut fields, "in_seconds")).flatten();
    if value.as_object().is_some_and(|map| map.len() != 1) {
        parent.problem("expires", "does not say exactly one way", "write either `at` or `in_seconds`");
    }
    fields.close();
    at.map(Expires::At).or(seconds.map(Expires::InSeconds))
}

fn send(parent: &mut Fields<'_>) -> Option<SendToken> {
    let Some(value) = parent.value("send") else {
        parent.problem("send", "is missing", "say which header sends the token, like {\"header\": \"X-Auth-Token\"}");
        return None;
    };
    let mut fields = Fields::open(value, parent.at("send"), parent.problems())?;
    let header = header_name(&mut fields, "header");
    let prefix = fields.text("prefix").unwrap_or_default();
    if !prefix.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        fields.problem("prefix", "holds characters that headers do not have", "write it like `Bearer `");
    }
    fields.close();
    Some(SendToken { header: header?, prefix: prefix.to_owned() })
}

fn show(fields: &mut Fields<'_>, token: Option<&Place>) -> Vec<(String, Place)> {
    let mut show = Vec::new();
    for (at, name, value) in fields.members("show") {
        match value.as_str().map(str::parse::<Place>) {
            Some(Ok(place)) if Check::ShownToken.on() && token.is_some_and(|token| reveals(&place, token)) => {
                fields.problems().add(at, "would show the token to the guest", "name a part of the answer without it");
            }
            Some(Ok(place)) => show.push((name.clone(), place)),
            Some(Err(error)) => {
                fields.problems().add(at, format!("is no place: {error}"), "write it like `json:/catalog`")
            }
            None => fields.problems().add(at, "is no string", "write a place like `json:/catalog`"),
        }
    }
    show
}

/// Whether showing one place shows the other.
fn reveals(shown: &Place, token: &Place) -> bool {
    match (shown, token) {
        (Place::Json(shown), Place::Json(token)) => token.starts_with(shown) || shown.starts_with(token),
        (Place::Header(name), Place::Cookie(_)) | (Place::Cookie(_), Place::Header(name)) => name == "set-cookie",
        (Place::Header(_) | Place::Cookie(_), _) => shown == token,
        (Place::Body, Place::Header(_) | Place::Cookie(_)) => false,
        (Place::Body, _) | (_, Place::Body) => true,
        _ => shown == token,
    }
}
