//! A login described as data: the request, the places of the token and its expiry in the
//! response, how the token is sent, and which values of the response the guest may see.
//!
//! With it the host can log in to any API of this shape without knowing the API. A value that
//! is shown to the guest must not contain the token.

use serde_json::Value;

use super::auth::{check_header_name, header_name};
use super::body::{BodySpec, LoginBody, resolve_all, templates};
use super::object_reader::{IDENT, ObjectReader, is_ident};
use super::origin::Origin;
use super::path::PathPattern;
use super::problem::{PolicyProblem, Problems};
use super::properties::Properties;
use super::regions::Regions;
use super::slots::{method, place};
use super::target::TargetSpec;
use super::template::{ResolvedText, Template};
use super::tls::Tls;
use crate::addresses::Addresses;
use crate::destination::Destination;
use crate::place::Place;
use crate::secret::Layer;
use wasm_cpi_checks::Check;

/// One entry of the policy's `logins`, with all properties filled in.
#[derive(Clone, Debug)]
pub struct Login {
    /// The name by which the `auth` of grants refers to the login.
    pub name: String,
    /// The URL that the login's request is sent to.
    pub destination: Destination,
    /// The scheme, host and port of that URL.
    pub origin: Origin,
    /// The layer that chose the origin: `Context` if a cpi-config had any part in it.
    pub layer: Layer,
    /// The method of the login's request, in upper case; `POST` by default.
    pub method: String,
    /// The headers of the login's request, with names in lower case.
    pub headers: Vec<(String, ResolvedText)>,
    /// The body of the login's request.
    pub body: LoginBody,
    /// The names of the properties in the body and the headers, for errors about a refused login.
    pub properties: Vec<String>,
    /// The IP addresses that the name in `origin` may resolve to.
    pub addresses: Addresses,
    /// The certificates and pins of the connection.
    pub tls: Tls,
    /// The place of the token in the response.
    pub token: Place,
    /// The place of the token's expiry in the response; `None` if the response has none.
    pub expires: Option<Expires>,
    /// The header in which requests send the token.
    pub send: SendToken,
    /// The values that the guest may ask for: their names, and their places in the response.
    pub show: Vec<(String, Place)>,
    /// The layer of the token: `Job` if any credential of the login's request is the job's.
    pub token_layer: Layer,
}

/// The place in a login's response that says when the token expires, and its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expires {
    /// The place holds a point in time in the format of RFC 3339.
    At(Place),
    /// The place holds a number of seconds, counted from the response.
    InSeconds(Place),
}

/// The header in which requests send a login's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendToken {
    /// The name of the header in lower case.
    pub header: String,
    /// The text before the token, such as `Bearer `; empty for the token alone.
    pub prefix: String,
}

/// A login as it is written in the file.
#[derive(Clone, Debug)]
pub(super) struct LoginSpec {
    at: String,
    name: String,
    target: TargetSpec,
    method: String,
    path: String,
    headers: Vec<(String, Template)>,
    body: BodySpec,
    token: Place,
    expires: Option<Expires>,
    send: SendToken,
    show: Vec<(String, Place)>,
    alternatives: Option<String>,
}

/// What messages name as the reason why secrets are sent.
const SECRETS: &str = "login";
const MAX_BYTES: u64 = 8192;

impl LoginSpec {
    pub(super) fn read(name: &str, value: &Value, at: String, problems: &Problems) -> Option<LoginSpec> {
        let mut reader = ObjectReader::open(value, at.clone(), problems)?;
        if !is_ident(name) {
            problems.add(&at, "is not a valid name for a login", IDENT);
        }
        let target = TargetSpec::read(&mut reader);
        let method =
            reader.text("method").map_or(Some("POST".to_owned()), |text| method(text, &reader.at("method"), problems));
        let path = fixed_path(&mut reader);
        let headers = headers(&mut reader);
        let body = BodySpec::read(&mut reader);
        let token = place(&mut reader, "token");
        let expires = expires(&mut reader);
        let send = send(&mut reader);
        let show = show(&mut reader, token.as_ref());
        let alternatives = reader.text("alternatives").map(str::to_owned);
        reader.close();
        let target = target?;
        target.check(Some(SECRETS), &at, problems);
        Some(LoginSpec {
            at,
            name: name.to_owned(),
            target,
            method: method?,
            path: path?,
            headers,
            body,
            token: token?,
            expires,
            send: send?,
            show,
            alternatives,
        })
    }

    fn property_names(&self) -> Vec<String> {
        let headers = self.headers.iter().flat_map(|(_, template)| template.property_names());
        let mut names: Vec<String> = Vec::new();
        for name in self.body.property_names().into_iter().chain(headers) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Returns the path of the login within the policy file, such as `logins.cloud`.
    pub(super) fn at(&self) -> &str {
        &self.at
    }

    /// Returns true if the operator accepts that the login is sent unencrypted.
    pub(super) fn plain_http(&self) -> bool {
        self.target.plain_http
    }

    pub(super) fn resolve(&self, properties: &Properties, regions: &Regions, problems: &Problems) -> Option<Login> {
        let target = self.target.resolve(properties, regions, Some(SECRETS), &self.at, problems)?;
        let own = Problems::default();
        let headers = resolve_all(&self.headers, properties, target.layer, &format!("{}.headers", self.at), &own);
        let body = self.body.resolve(properties, target.layer, &self.at, &own);
        own.into_vec().into_iter().for_each(|problem| problems.push(self.with_alternatives(problem)));
        let (body, mut layers) = body?;
        layers.extend(headers.iter().filter(|(_, value)| !value.name.is_empty()).map(|(_, value)| value.layer));
        if target.tls.client.is_some() {
            layers.push(target.layer);
        }
        let from_context = !layers.is_empty() && layers.iter().all(|layer| *layer == Layer::Context);
        let url = format!("{}{}{}", target.origin, target.base, self.path);
        let destination = match Destination::parse(&url, MAX_BYTES) {
            Ok(destination) => destination,
            Err(invalid) => {
                let at = format!("{}.path", self.at);
                let problem = PolicyProblem::new(at, invalid.to_string(), "write a shorter, plain path");
                problems.push(PolicyProblem { check: invalid.check(), ..problem });
                return None;
            }
        };
        Some(Login {
            name: self.name.clone(),
            destination,
            origin: target.origin,
            layer: target.layer,
            method: self.method.clone(),
            headers,
            body,
            properties: self.property_names(),
            addresses: self.target.addresses.clone(),
            tls: target.tls,
            token: self.token.clone(),
            expires: self.expires.clone(),
            send: self.send.clone(),
            show: self.show.clone(),
            token_layer: if from_context { Layer::Context } else { Layer::Job },
        })
    }
}

impl LoginSpec {
    /// Adds the alternatives to a problem with a property of the login, which no check refused: the
    /// property is not set, for example because the operator set those of another login.
    fn with_alternatives(&self, mut problem: PolicyProblem) -> PolicyProblem {
        if let (Some(alternatives), None) = (&self.alternatives, problem.check) {
            problem.remedy.push_str(&format!("; {alternatives}"));
        }
        problem
    }
}

fn fixed_path(reader: &mut ObjectReader<'_>) -> Option<String> {
    let text = reader.required_text("path", "/v1/sessions")?;
    match PathPattern::parse(text) {
        Ok(_) if text.contains('*') => {
            reader.problem("path", "has a `*`", "write the one path that the login is sent to");
            None
        }
        Ok(_) => Some(text.to_owned()),
        Err(error) => {
            reader.refused(error.check(), "path", error.to_string(), error.remedy());
            None
        }
    }
}

fn headers(reader: &mut ObjectReader<'_>) -> Vec<(String, Template)> {
    let at = reader.at("headers");
    let mut headers: Vec<(String, Template)> = Vec::new();
    for (name, template) in templates(reader, "headers") {
        match check_header_name(&name) {
            Ok(name) if headers.iter().any(|(known, _)| *known == name) => {
                reader.problems().add(
                    format!("{at}.{name}"),
                    "is listed twice; upper and lower case do not differ",
                    "keep one",
                );
            }
            Ok(name) => headers.push((name, template)),
            Err(error) => {
                let problem = PolicyProblem::new(format!("{at}.{name}"), error.to_string(), error.remedy());
                reader.problems().push(PolicyProblem { check: error.check(), ..problem });
            }
        }
    }
    headers
}

fn expires(parent: &mut ObjectReader<'_>) -> Option<Expires> {
    let value = parent.value("expires")?;
    let mut reader = ObjectReader::open(value, parent.at("expires"), parent.problems())?;
    let at = reader.value("at").is_some().then(|| place(&mut reader, "at")).flatten();
    let seconds = reader.value("in_seconds").is_some().then(|| place(&mut reader, "in_seconds")).flatten();
    if value.as_object().is_some_and(|map| map.len() != 1) {
        parent.problem("expires", "does not have exactly one key", "write either `at` or `in_seconds`");
    }
    reader.close();
    at.map(Expires::At).or(seconds.map(Expires::InSeconds))
}

fn send(parent: &mut ObjectReader<'_>) -> Option<SendToken> {
    let Some(value) = parent.value("send") else {
        parent.problem("send", "is missing", "say which header sends the token, like {\"header\": \"X-Auth-Token\"}");
        return None;
    };
    let mut reader = ObjectReader::open(value, parent.at("send"), parent.problems())?;
    let header = header_name(&mut reader, "header");
    let prefix = reader.text("prefix").unwrap_or_default();
    if !prefix.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        reader.problem("prefix", "holds characters that headers do not have", "write it like `Bearer `");
    }
    reader.close();
    Some(SendToken { header: header?, prefix: prefix.to_owned() })
}

fn show(reader: &mut ObjectReader<'_>, token: Option<&Place>) -> Vec<(String, Place)> {
    let mut show = Vec::new();
    for (at, name, value) in reader.members("show") {
        match value.as_str().map(str::parse::<Place>) {
            Some(Ok(place)) => {
                let fine = !token.is_some_and(|token| reveals(&place, token));
                let remedy = "name a part of the response without it";
                let problem = || PolicyProblem::new(at, "would show the token to the guest", remedy);
                if reader.problems().ensure(Check::ShownToken, fine, problem) {
                    show.push((name.clone(), place));
                }
            }
            Some(Err(error)) => {
                let problem =
                    PolicyProblem::new(at, format!("is not a place: {error}"), "write it like `json:/catalog`");
                reader.problems().push(PolicyProblem { check: error.check(), ..problem });
            }
            None => reader.problems().add(at, "is not a string", "write a place like `json:/catalog`"),
        }
    }
    show
}

/// Returns true if the value at `shown` contains the token, or the token contains it.
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
