//! Named credentials with which the host signs requests: the keys of an account, those of the machine from its
//! metadata service, or those of a role that is assumed with one of these.
//!
//! The secret parts are never sent: a signature is. So credentials have a layer of their own, and the rule that
//! keeps secrets of the job from origins of a cpi-config is applied where requests are signed.

use std::collections::BTreeMap;

use serde_json::Value;

use super::auth::credential;
use super::object_reader::{IDENT, ObjectReader, is_ident};
use super::origin::Origin;
use super::problem::{PolicyProblem, Problems};
use super::properties::Properties;
use super::regions::Regions;
use super::roles::RoleNameSpec;
use super::sigv4::RegionSpec;
use super::target::TargetSpec;
use super::template::{ResolvedText, Template};
use super::tls::Tls;
use crate::addresses::Addresses;
use crate::destination::Destination;
use crate::secret::Layer;
use wasm_cpi_checks::Check;

/// One entry of the policy's `credentials`, with all properties filled in.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The name by which grants and other credentials refer to it.
    pub name: String,
    /// Where the keys come from.
    pub source: CredentialSource,
    /// The layer of the credentials: `Context` only if all of them come from a cpi-config.
    pub layer: Layer,
    /// The names of the properties in it, for messages.
    pub properties: Vec<String>,
}

/// Where keys come from.
#[derive(Clone, Debug)]
pub enum CredentialSource {
    /// Properties hold the keys.
    Static {
        /// The identifier of the keys, which requests name.
        access_key_id: ResolvedText,
        /// The key that signs.
        secret_access_key: ResolvedText,
        /// The token that temporary keys are sent with; `None` if no property sets it.
        session_token: Option<ResolvedText>,
    },
    /// The metadata service of the machine returns the keys of its role.
    Metadata {
        /// True if the service is asked at its IPv6 address.
        ipv6: bool,
    },
    /// A security token service returns the keys of a role.
    AssumedRole(Box<AssumedRole>),
}

/// A role, and how the host assumes it.
#[derive(Clone, Debug)]
pub struct AssumedRole {
    /// The full name of the role.
    pub role: String,
    /// The name of the credentials that assume it: static ones, or those of the machine.
    pub with: String,
    /// The URL of the security token service.
    pub destination: Destination,
    /// The scheme, host and port of that URL.
    pub origin: Origin,
    /// The region for which the request is signed.
    pub region: String,
    /// The name of the session, by which the cloud's log shows who assumed the role.
    pub session_name: String,
    /// The IP addresses that the name in `origin` may resolve to.
    pub addresses: Addresses,
    /// The certificates and pins of the connection.
    pub tls: Tls,
}

impl Credentials {
    /// Returns true if the keys expire and are asked for in a call.
    pub fn are_temporary(&self) -> bool {
        !matches!(self.source, CredentialSource::Static { .. })
    }

    /// Returns the role that is assumed, if one is.
    pub fn assumed_role(&self) -> Option<&AssumedRole> {
        match &self.source {
            CredentialSource::AssumedRole(role) => Some(role),
            CredentialSource::Static { .. } | CredentialSource::Metadata { .. } => None,
        }
    }
}

/// Credentials as they are written in the file.
#[derive(Clone, Debug)]
pub(super) struct CredentialsSpec {
    at: String,
    source: SourceSpec,
}

#[derive(Clone, Debug)]
enum SourceSpec {
    Static { access_key_id: Template, secret_access_key: Template, session_token: Option<Template> },
    Metadata { ipv6: bool },
    AssumeRole(Box<RoleSpec>),
}

#[derive(Clone, Debug)]
struct RoleSpec {
    role: RoleNameSpec,
    with: String,
    target: TargetSpec,
    region: RegionSpec,
    session_name: String,
}

/// What messages name as the reason why secrets are sent.
const SECRETS: &str = "assume_role";
const MAX_BYTES: u64 = 8192;
/// The name of a session that the policy does not name.
const SESSION: &str = "wasm-cpi";

impl CredentialsSpec {
    pub(super) fn read(name: &str, value: &Value, at: String, problems: &Problems) -> Option<CredentialsSpec> {
        let mut reader = ObjectReader::open(value, at.clone(), problems)?;
        if !is_ident(name) {
            problems.add(&at, "is not a valid name for credentials", IDENT);
        }
        let mut found = Vec::new();
        if let Some(value) = reader.value("static") {
            found.push(static_keys(value, reader.at("static"), problems));
        }
        if let Some(value) = reader.value("metadata")
            && let Some(mut metadata) = ObjectReader::open(value, reader.at("metadata"), problems)
        {
            found.push(Some(SourceSpec::Metadata { ipv6: metadata.flag("ipv6") }));
            metadata.close();
        }
        if let Some(value) = reader.value("assume_role") {
            found.push(RoleSpec::read(value, reader.at("assume_role"), problems));
        }
        if value.as_object().is_some_and(|map| map.len() != 1) {
            problems.add(&at, "does not have exactly one source", "write one of static, metadata, assume_role");
        }
        reader.close();
        Some(CredentialsSpec { at, source: found.pop()?? })
    }

    /// Returns the path of the credentials within the policy file, such as `credentials.main`.
    pub(super) fn at(&self) -> &str {
        &self.at
    }

    /// Returns true if the operator accepts that the request for a role is sent unencrypted.
    pub(super) fn plain_http(&self) -> bool {
        matches!(&self.source, SourceSpec::AssumeRole(role) if role.target.plain_http)
    }
}

/// Fills in the properties of all credentials. Those that cannot be filled in are problems and left out.
pub(super) fn resolve_all(
    specs: &BTreeMap<String, CredentialsSpec>,
    properties: &Properties,
    regions: &Regions,
    problems: &Problems,
) -> BTreeMap<String, Credentials> {
    let mut resolved = BTreeMap::new();
    for (name, spec) in specs {
        let credentials = match &spec.source {
            SourceSpec::Static { access_key_id, secret_access_key, session_token } => {
                let parts = [Some(access_key_id), Some(secret_access_key), session_token.as_ref()];
                resolve_static(name, parts, &format!("{}.static", spec.at), properties, problems)
            }
            SourceSpec::Metadata { ipv6 } => {
                let source = CredentialSource::Metadata { ipv6: *ipv6 };
                Some(Credentials { name: name.clone(), source, layer: Layer::Job, properties: Vec::new() })
            }
            SourceSpec::AssumeRole(_) => None,
        };
        resolved.extend(credentials.map(|credentials| (name.clone(), credentials)));
    }
    for (name, spec) in specs {
        let SourceSpec::AssumeRole(role) = &spec.source else { continue };
        // Without the credentials that it is assumed with, there is a problem by now.
        let Some(with) = resolved.get(&role.with).filter(|with| with.assumed_role().is_none()) else { continue };
        let at = format!("{}.assume_role", spec.at);
        let assumed = role.resolve(name, with, &at, (properties, regions), problems);
        resolved.extend(assumed.map(|credentials| (name.clone(), credentials)));
    }
    resolved
}

/// Checks that all credentials are defined and used, in the JSON as it is written. `used` are the names in grants, with
/// their paths.
pub(super) fn check_names(credentials: &[(String, &String, &Value)], used: Vec<(String, &str)>, problems: &Problems) {
    let with = |(at, _, value): &(String, &String, &Value)| {
        let with = value.get("assume_role")?.get("with")?.as_str()?.to_owned();
        Some((format!("{at}.assume_role.with"), with))
    };
    let with: Vec<(String, String)> = credentials.iter().filter_map(with).collect();
    let find = |name: &str| credentials.iter().find(|(_, known, _)| *known == name);
    for (at, name) in used.iter().map(|(at, name)| (at, *name)).chain(with.iter().map(|(at, name)| (at, name.as_str())))
    {
        problems.ensure(Check::UnusedCredentials, find(name).is_some(), || {
            let what = format!("names the credentials `{name}`, which are not there");
            PolicyProblem::new(at, what, "describe them under `credentials`")
        });
    }
    for (at, name) in &with {
        if find(name).is_some_and(|(_, _, value)| value.get("assume_role").is_some()) {
            let what = format!("names `{name}`, which is a role, too");
            problems.add(at, what, "name static credentials, or those of the metadata service");
        }
    }
    for (at, name, _) in credentials {
        let is_used = used.iter().any(|(_, used)| used == name) || with.iter().any(|(_, with)| with == *name);
        problems.ensure(Check::UnusedCredentials, is_used, || {
            PolicyProblem::new(at, "are used by no grant", "name them in a grant's `auth.sigv4`, or remove them")
        });
    }
}

fn static_keys(value: &Value, at: String, problems: &Problems) -> Option<SourceSpec> {
    let mut reader = ObjectReader::open(value, at, problems)?;
    let access_key_id = credential(&mut reader, "access_key_id", true);
    let secret_access_key = credential(&mut reader, "secret_access_key", true);
    let session_token =
        reader.value("session_token").is_some().then(|| credential(&mut reader, "session_token", true)).flatten();
    reader.close();
    Some(SourceSpec::Static { access_key_id: access_key_id?, secret_access_key: secret_access_key?, session_token })
}

fn resolve_static(
    name: &str,
    parts: [Option<&Template>; 3],
    at: &str,
    properties: &Properties,
    problems: &Problems,
) -> Option<Credentials> {
    const KEYS: [&str; 3] = ["access_key_id", "secret_access_key", "session_token"];
    let mut resolved = Vec::new();
    for (key, template) in KEYS.iter().zip(parts) {
        // The token is the only part that may be missing.
        let absent = |template: &&Template| *key == KEYS[2] && template.is_unset(properties);
        let Some(template) = template.filter(|template| !absent(template)) else { continue };
        let at = format!("{at}.{key}");
        let part = template.resolve(properties, Layer::Job, &at, problems)?;
        if part.secret.reveal().is_empty() {
            problems.add(
                at,
                format!("takes the property `{}`, which is empty", part.name),
                "set it, or name other credentials",
            );
            return None;
        }
        resolved.push(part);
    }
    let mut parts = resolved.into_iter();
    let (access_key_id, secret_access_key, session_token) = (parts.next()?, parts.next()?, parts.next());
    let all = || [&access_key_id, &secret_access_key].into_iter().chain(&session_token);
    let layer = access_key_id.layer;
    if all().any(|part| part.layer != layer) {
        let what =
            "takes some parts from the context (a cpi-config) and others from the job, which do not belong together";
        problems.add(at, what, "set all of them in one place; an empty `session_token` means none");
        return None;
    }
    let properties = all().map(|part| part.name.clone()).collect();
    let source = CredentialSource::Static { access_key_id, secret_access_key, session_token };
    Some(Credentials { name: name.to_owned(), source, layer, properties })
}

impl RoleSpec {
    fn read(value: &Value, at: String, problems: &Problems) -> Option<SourceSpec> {
        let mut reader = ObjectReader::open(value, at.clone(), problems)?;
        let role = RoleNameSpec::read(&mut reader);
        let with = reader.required_text("with", "main").map(str::to_owned);
        let target = TargetSpec::read(&mut reader);
        let region = RegionSpec::read(&mut reader);
        let session_name = reader.text("session_name").unwrap_or(SESSION).to_owned();
        if !is_session_name(&session_name) {
            reader.problem("session_name", "is not the name of a session", "use 2 to 64 letters, digits and `+=,.@_-`");
        }
        reader.close();
        let target = target?;
        target.check(Some(SECRETS), &at, problems);
        Some(SourceSpec::AssumeRole(Box::new(RoleSpec {
            role: role?,
            with: with?,
            target,
            region: region?,
            session_name,
        })))
    }

    fn resolve(
        &self,
        name: &str,
        with: &Credentials,
        at: &str,
        (properties, regions): (&Properties, &Regions),
        problems: &Problems,
    ) -> Option<Credentials> {
        let target = self.target.resolve(properties, regions, Some(SECRETS), at, problems);
        let region = self.region.resolve(properties, regions, at, problems);
        let role = self.role.resolve(properties, at, problems);
        let (target, region, role) = (target?, region?, role?);
        let may_sign = with.layer.may_be_sent_to(target.layer);
        problems.ensure(Check::LayerSignature, may_sign, || refused_origin(&format!("{at}.to"), &with.name));
        let url = format!("{}{}/", target.origin, target.base);
        let destination = match Destination::parse(&url, MAX_BYTES) {
            Ok(destination) => destination,
            Err(invalid) => {
                let problem = PolicyProblem::new(
                    format!("{at}.to"),
                    invalid.to_string(),
                    "write it like `https://sts.example.com`",
                );
                problems.push(PolicyProblem { check: invalid.check(), ..problem });
                return None;
            }
        };
        let properties = with.properties.iter().cloned().chain(self.role.property().map(str::to_owned)).collect();
        let source = CredentialSource::AssumedRole(Box::new(AssumedRole {
            role,
            with: self.with.clone(),
            destination,
            origin: target.origin,
            region,
            session_name: self.session_name.clone(),
            addresses: self.target.addresses.clone(),
            tls: target.tls,
        }));
        Some(Credentials { name: name.to_owned(), source, layer: with.layer, properties })
    }
}

/// Returns the problem with an origin that must not get signatures of these credentials.
pub(super) fn refused_origin(at: &str, credentials: &str) -> PolicyProblem {
    let what = format!(
        "would send requests that are signed with the credentials `{credentials}`, which are the job's, to an origin that \
         the context (a cpi-config) chose"
    );
    let remedy = "set the origin in the job's properties, set the credentials in the cpi-config too, or let the \
                  context choose only a region that the policy's `regions` list";
    PolicyProblem::new(at, what, remedy)
}

fn is_session_name(text: &str) -> bool {
    (2..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+=,.@_-".contains(&b))
}
