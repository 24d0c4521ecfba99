//! How the host authenticates the requests of a grant.
//!
//! Values come from properties (`${password}`, `Token ${token}`); a credential
//! written into the policy itself is refused, so that there is one place for
//! secrets and everything in it is known to the redaction.

use super::fields::Fields;
use super::head::{is_of_connection, plain};
use super::problem::Problems;
use super::properties::Properties;
use super::template::{SecretRef, Template};
use crate::holes::Check;
use crate::secret::Layer;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    Basic {
        user: SecretRef,
        password: SecretRef,
    },
    Bearer(SecretRef),
    /// The name is in lower case.
    Header {
        name: String,
        value: SecretRef,
    },
    /// The token of the policy's login of this name.
    Login(String),
}

#[derive(Clone, Debug)]
pub(super) enum AuthSpec {
    Basic { user: Template, password: Template },
    Bearer(Template),
    Header { name: String, value: Template },
    Login(String),
}

impl AuthSpec {
    pub(super) fn read(parent: &mut Fields<'_>) -> Option<AuthSpec> {
        let value = parent.value("auth")?;
        let mut fields = Fields::open(value, parent.at("auth"), parent.problems())?;
        let mut found = Vec::new();
        if let Some(value) = fields.value("basic")
            && let Some(mut basic) = Fields::open(value, fields.at("basic"), fields.problems())
        {
            let user = template(&mut basic, "user", false);
            let password = template(&mut basic, "password", true);
            basic.close();
            found.push(user.zip(password).map(|(user, password)| AuthSpec::Basic { user, password }));
        }
        if fields.value("bearer").is_some() {
            found.push(template(&mut fields, "bearer", true).map(AuthSpec::Bearer));
        }
        if let Some(value) = fields.value("header")
            && let Some(mut header) = Fields::open(value, fields.at("header"), fields.problems())
        {
            let name = header_name(&mut header, "name");
            let value = template(&mut header, "value", true);
            header.close();
            found.push(name.zip(value).map(|(name, value)| AuthSpec::Header { name, value }));
        }
        if let Some(name) = fields.text("login") {
            found.push(Some(AuthSpec::Login(name.to_owned())));
        }
        if value.as_object().is_some_and(|map| map.len() != 1) {
            parent.problem("auth", "does not say exactly one way", "write one of basic, bearer, header, login");
        }
        fields.close();
        found.pop()?
    }

    /// For an origin of the layer `to`. Whether a login's token may go there is
    /// the login's to say.
    pub(super) fn resolve(&self, properties: &Properties, to: Layer, at: &str, problems: &Problems) -> Option<Auth> {
        let fill = |template: &Template, key: &str| template.resolve(properties, to, &format!("{at}.{key}"), problems);
        Some(match self {
            AuthSpec::Basic { user, password } => {
                let (user, password) = (fill(user, "basic.user"), fill(password, "basic.password"));
                Auth::Basic { user: user?, password: password? }
            }
            AuthSpec::Bearer(token) => Auth::Bearer(fill(token, "bearer")?),
            AuthSpec::Header { name, value } => {
                Auth::Header { name: name.clone(), value: fill(value, "header.value")? }
            }
            AuthSpec::Login(name) => Auth::Login(name.clone()),
        })
    }
}

fn template(fields: &mut Fields<'_>, key: &'static str, secret: bool) -> Option<Template> {
    let text = fields.required_text(key, "${property}")?;
    match Template::parse(text) {
        Ok(template) if secret && !template.has_property() && Check::LiteralCredential.on() => {
            let remedy = "put the value into the CPI's properties and write `${property}` here";
            fields.problem(key, "is a credential written into the policy", remedy);
            None
        }
        Ok(template) => Some(template),
        Err(what) => {
            fields.problem(key, what, "write it like `${property}`");
            None
        }
    }
}

/// A header that the host may set for a grant, in lower case.
pub(super) fn header_name(fields: &mut Fields<'_>, key: &'static str) -> Option<String> {
    let name = fields.required_text(key, "X-Auth-Token")?;
    match check_header_name(name) {
        Ok(name) => Some(name),
        Err((what, remedy)) => {
            fields.problem(key, what, remedy);
            None
        }
    }
}

pub(super) fn check_header_name(name: &str) -> Result<String, (&'static str, &'static str)> {
    /// It would have the server answer in a form that cannot be searched.
    const DISGUISE: &str = "accept-encoding";
    let plain = plain(name);
    let token = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    if !token {
        Err(("is no name of a header", "write it like `X-Auth-Token`"))
    } else if Check::ConnectionHeader.on() && (is_of_connection(&plain) || plain == DISGUISE) {
        Err(("is a header of the connection, which only the host sets", "name another header"))
    } else {
        Ok(name.to_ascii_lowercase())
    }
}
