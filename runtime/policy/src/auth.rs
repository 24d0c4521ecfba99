//! How the host authenticates the requests of a grant.
//!
//! Values come from properties (`${password}`, `Token ${token}`). A credential that is
//! written into the policy itself is rejected: secrets have one place, the properties,
//! and the redaction of logs knows everything that is there.

use super::object_reader::ObjectReader;
use super::problem::Problems;
use super::properties::Properties;
use super::regions::Regions;
use super::request_head::{is_connection_header, normalize_header_name};
use super::sigv4::{SigV4, SigV4Spec};
use super::template::{ResolvedText, Template};
use crate::secret::Layer;
use wasm_cpi_checks::Check;

/// The credentials that the host adds to every request of a grant. The guest never sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// HTTP Basic authentication (RFC 7617).
    Basic {
        /// The user name, which may be written into the policy as plain text.
        user: ResolvedText,
        /// The password, which always comes from a property.
        password: ResolvedText,
    },
    /// The token that is sent as `Authorization: Bearer …`.
    Bearer(ResolvedText),
    /// A header that the operator chose.
    Header {
        /// The name of the header in lower case. It is never a header of the connection.
        name: String,
        /// The whole value of the header.
        value: ResolvedText,
    },
    /// The token that the policy's login of this name obtains.
    Login(String),
    /// A signature of the request.
    SigV4(SigV4),
}

/// `auth` as it is written in the policy, before properties are known.
#[derive(Clone, Debug)]
pub(super) enum AuthSpec {
    Basic { user: Template, password: Template },
    Bearer(Template),
    Header { name: String, value: Template },
    Login(String),
    SigV4(SigV4Spec),
}

impl AuthSpec {
    pub(super) fn read(parent: &mut ObjectReader<'_>) -> Option<AuthSpec> {
        let value = parent.value("auth")?;
        let mut reader = ObjectReader::open(value, parent.at("auth"), parent.problems())?;
        let mut found = Vec::new();
        if let Some(value) = reader.value("basic")
            && let Some(mut basic) = ObjectReader::open(value, reader.at("basic"), reader.problems())
        {
            let user = credential(&mut basic, "user", false);
            let password = credential(&mut basic, "password", true);
            basic.close();
            found.push(user.zip(password).map(|(user, password)| AuthSpec::Basic { user, password }));
        }
        if reader.value("bearer").is_some() {
            found.push(credential(&mut reader, "bearer", true).map(AuthSpec::Bearer));
        }
        if let Some(value) = reader.value("header")
            && let Some(mut header) = ObjectReader::open(value, reader.at("header"), reader.problems())
        {
            let name = header_name(&mut header, "name");
            let value = credential(&mut header, "value", true);
            header.close();
            found.push(name.zip(value).map(|(name, value)| AuthSpec::Header { name, value }));
        }
        if let Some(name) = reader.text("login") {
            found.push(Some(AuthSpec::Login(name.to_owned())));
        }
        if let Some(value) = reader.value("sigv4")
            && let Some(mut sigv4) = ObjectReader::open(value, reader.at("sigv4"), reader.problems())
        {
            found.push(SigV4Spec::read(&mut sigv4).map(AuthSpec::SigV4));
            sigv4.close();
        }
        if value.as_object().is_some_and(|map| map.len() != 1) {
            parent.problem(
                "auth",
                "does not have exactly one kind of auth",
                "write one of basic, bearer, header, login, sigv4",
            );
        }
        reader.close();
        found.pop()?
    }

    /// Fills in the properties for an origin that comes from the layer `to`. Whether the token of a login or a
    /// signature may be sent there is checked where the login or the credentials are known.
    pub(super) fn resolve(
        &self,
        properties: &Properties,
        regions: &Regions,
        to: Layer,
        at: &str,
        problems: &Problems,
    ) -> Option<Auth> {
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
            AuthSpec::SigV4(sigv4) => {
                Auth::SigV4(sigv4.resolve(properties, regions, &format!("{at}.sigv4"), problems)?)
            }
        })
    }
}

/// Reads a template. A `secret` one must take a property.
pub(super) fn credential(reader: &mut ObjectReader<'_>, key: &'static str, secret: bool) -> Option<Template> {
    let text = reader.required_text(key, "${property}")?;
    match Template::parse(text) {
        Ok(template) => {
            let remedy = "put the value into the CPI's properties and write `${property}` here";
            let fine = reader.ensure(Check::LiteralCredential, !secret || template.has_property(), key, || {
                ("is a credential written into the policy", remedy)
            });
            fine.then_some(template)
        }
        Err(what) => {
            reader.problem(key, what.to_string(), "write it like `${property}`");
            None
        }
    }
}

/// Reads the name of a header that the host may set, and returns it in lower case.
pub(super) fn header_name(reader: &mut ObjectReader<'_>, key: &'static str) -> Option<String> {
    let name = reader.required_text(key, "X-Auth-Token")?;
    match check_header_name(name) {
        Ok(name) => Some(name),
        Err(error) => {
            reader.refused(error.check(), key, error.to_string(), error.remedy());
            None
        }
    }
}

/// The reason why the policy cannot set a header. The messages follow the key of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderNameError {
    /// The text has characters that names of headers do not have, or is empty.
    #[error("is not a valid header name")]
    Form,
    /// Only the host sets this header.
    #[error("is a header of the connection, which only the host sets")]
    Connection,
}

impl HeaderNameError {
    /// Returns what the author of the policy should do.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            HeaderNameError::Form => "write it like `X-Auth-Token`",
            HeaderNameError::Connection => "name another header",
        }
    }

    /// Returns the check that refuses the name, if it is a named one.
    pub(super) fn check(self) -> Option<Check> {
        match self {
            HeaderNameError::Form => None,
            HeaderNameError::Connection => Some(Check::ConnectionHeader),
        }
    }
}

/// Returns the name in lower case. Rejects what is not a header name, and headers that only the
/// host sets.
pub(super) fn check_header_name(name: &str) -> Result<String, HeaderNameError> {
    /// With this header a server could answer in an encoding that the host cannot search for secrets.
    const DISGUISE: &str = "accept-encoding";
    let normalized = normalize_header_name(name);
    let token = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    if !token {
        Err(HeaderNameError::Form)
    } else if Check::ConnectionHeader.refuses(is_connection_header(&normalized) || normalized == DISGUISE) {
        Err(HeaderNameError::Connection)
    } else {
        Ok(name.to_ascii_lowercase())
    }
}
