//! A grant: one origin that the operator lets the guest reach, and the secrets that go there.
//!
//! A grant is parsed from the policy file (`GrantSpec`), and its properties are filled in for
//! every call (`Grant`). This module checks that secrets go only to exact hosts over https,
//! and the other rules of the file about them. The module `judge` compares requests with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::auth::{Auth, AuthSpec};
use super::blocks::Blocks;
use super::body_fields::FieldRules;
use super::credentials::{Credentials, refused_origin};
use super::login::Login;
use super::object_reader::{IDENT, ObjectReader, is_ident};
use super::operations::Operations;
use super::origin::Origin;
use super::path::PathPattern;
use super::problem::{PolicyProblem, Problems};
use super::properties::Properties;
use super::regions::Regions;
use super::request_head::normalize_header_name;
use super::slots::{AGENT, Capture, Slot, method, path};
use super::suggested_grant::SharedSettings;
use super::target::TargetSpec;
use super::template::check_layer;
use super::tls::Tls;
use super::{query, responses};
use crate::addresses::Addresses;
use crate::place::Place;
use crate::secret::Layer;
use wasm_cpi_checks::Check;

/// One entry of the policy's `http`, with all properties filled in.
#[derive(Clone, Debug)]
pub struct Grant {
    /// The name of the grant, which messages and the audit log show. It is unique in a policy.
    pub id: String,
    /// The scheme, host and port that requests may go to.
    pub origin: Origin,
    /// The layer that chose the origin: `Context` if a cpi-config had any part in it.
    pub layer: Layer,
    /// The allowed methods, in upper case.
    pub methods: Vec<String>,
    /// The allowed paths, complete with the path of the URL in `to`.
    pub paths: Vec<PathPattern>,
    /// The allowed operations, for an API that has one path for all of them.
    pub operations: Option<Operations>,
    /// What the bodies, queries and headers of requests may hold.
    pub fields: Vec<FieldRules>,
    /// The IP addresses that the name in `origin` may resolve to.
    pub addresses: Addresses,
    /// The credentials that the host adds to each request.
    pub auth: Option<Auth>,
    /// The slots that both the operator grants and the guest declares.
    pub slots: Vec<Slot>,
    /// The values of responses that the guest gets as seals.
    pub captures: Vec<Capture>,
    /// The places of responses that the guest does not see. They apply to every response of the
    /// origin; see [`Policy::hidden_places`](crate::Policy::hidden_places).
    pub drop: Vec<Place>,
    /// The query parameters that requests may have. `None` allows all of them, unless the origin's
    /// responses hide values: then it allows none.
    pub query: Option<Vec<String>>,
    /// True if the grant has slots, captures or `drop`, even if the guest does not declare them.
    pub hides_values: bool,
    /// True if the grant has a slot for agent settings, even if the guest does not declare it.
    pub writes_settings: bool,
    /// The right to upload the image in blocks; `None` if the guest has none.
    pub blocks: Option<Blocks>,
    /// The certificates and pins of the connection.
    pub tls: Tls,
    /// What a grant that a denial suggests for the same origin has in common with this one.
    pub(super) shared: Arc<SharedSettings>,
}

/// How the names of the headers begin with which a request is signed.
const SIGNING_HEADERS: &str = "x-amz-";

/// A grant as it is written in the file.
#[derive(Clone, Debug)]
pub(super) struct GrantSpec {
    at: String,
    pub(super) id: String,
    pub(super) target: TargetSpec,
    methods: Vec<String>,
    paths: Vec<PathPattern>,
    operations: Option<Operations>,
    fields: Vec<FieldRules>,
    auth: Option<AuthSpec>,
    slots: Vec<Slot>,
    pub(super) captures: Vec<Capture>,
    drop: Vec<Place>,
    query: Option<Vec<String>>,
    blocks: Option<Blocks>,
    shared: Arc<SharedSettings>,
}

impl GrantSpec {
    pub(super) fn read(value: &Value, at: String, problems: &Problems) -> Option<GrantSpec> {
        let mut reader = ObjectReader::open(value, at.clone(), problems)?;
        let id = reader.required_text("id", "compute");
        if id.is_some_and(|id| !is_ident(id)) {
            reader.problem("id", "is not a valid name for a grant", IDENT);
        }
        let target = TargetSpec::read(&mut reader);
        let methods = reader.required_texts("methods", "GET");
        let methods = methods.iter().filter_map(|(at, text)| method(text, at, problems)).collect();
        let paths = reader.required_texts("paths", "/v1/**");
        let paths: Vec<PathPattern> = paths.iter().filter_map(|(at, text)| path(text, at, problems)).collect();
        let operations = Operations::of_grant(&mut reader);
        let fields = FieldRules::read_all(&mut reader);
        let auth = AuthSpec::read(&mut reader);
        let slots = Slot::of_grant(&mut reader);
        let captures = Capture::read_all(&mut reader);
        let drop = responses::read_places(&mut reader, "drop");
        let query = query::read_query(&mut reader);
        let blocks = Blocks::read(&mut reader);
        reader.close();
        let (id, target) = (id?.to_owned(), target?);
        let shared = Arc::new(SharedSettings::of(value, &target.to, &paths));
        let grant = GrantSpec {
            at,
            id,
            target,
            methods,
            paths,
            operations,
            fields,
            auth,
            slots,
            captures,
            drop,
            query,
            blocks,
            shared,
        };
        grant.check(problems);
        Some(grant)
    }

    /// Reports the problems that can be found before properties are known.
    fn check(&self, problems: &Problems) {
        self.target.check(self.secrets(), &self.at, problems);
        let spots = self.slots.iter().enumerate().map(|(i, slot)| (format!("slots[{i}]"), &slot.method, &slot.path));
        let captured = self.captures.iter().enumerate().map(|(i, c)| (format!("captures[{i}]"), &c.method, &c.path));
        let judged = self.fields.iter().enumerate().map(|(i, f)| (format!("fields[{i}]"), &f.method, &f.path));
        for (key, method, path) in spots.chain(captured).chain(judged) {
            let granted = self.methods.is_empty() || self.methods.contains(method);
            problems.ensure(Check::EntryOutsideGrant, granted, || {
                let what = format!("is {method}, which the grant's `methods` do not list");
                PolicyProblem::new(
                    format!("{}.{key}.method", self.at),
                    what,
                    "add the method to the grant, or remove this",
                )
            });
            let granted = self.paths.is_empty() || self.paths.iter().any(|granted| granted.covers(path));
            problems.ensure(Check::EntryOutsideGrant, granted, || {
                let what = format!("is `{path}`, which is not within the grant's `paths`");
                PolicyProblem::new(format!("{}.{key}.path", self.at), what, "narrow it, or widen the grant's `paths`")
            });
        }
        let judged = self.fields.iter().enumerate().map(|(i, rules)| (format!("fields[{i}]"), &rules.operation));
        let filled = self.slots.iter().enumerate().map(|(i, slot)| (format!("slots[{i}]"), &slot.operation));
        for (key, operation) in judged.chain(filled) {
            let Some(operation) = operation else { continue };
            let listed = self.operations.as_ref().is_some_and(|listed| listed.allow.contains(operation));
            problems.ensure(Check::EntryOutsideGrant, listed, || {
                let at = format!("{}.{key}.operation", self.at);
                let what = "is not one of the grant's `operations`";
                PolicyProblem::new(at, what, "add it to `operations.allow`, or remove this")
            });
        }
        let in_form = self.operations.as_ref().is_some_and(Operations::is_in_form);
        if in_form && self.query.as_ref().is_some_and(|names| !names.is_empty()) {
            let what = "lists parameters, and a request whose operation is in a form has no query";
            problems.add(format!("{}.query", self.at), what, "remove it");
        }
        if self.blocks.is_some() {
            self.check_blocks(problems);
        }
        let header = match &self.auth {
            Some(AuthSpec::Basic { .. } | AuthSpec::Bearer(_) | AuthSpec::SigV4(_)) => "authorization",
            Some(AuthSpec::Header { name, .. }) => name,
            // Known when the login is.
            Some(AuthSpec::Login(_)) | None => return,
        };
        self.check_slots(header, problems);
    }

    /// Reports what a grant with `blocks` must not have. Blocks have no slots, so that a secret is
    /// never computed into thousands of requests.
    fn check_blocks(&self, problems: &Problems) {
        let at = format!("{}.blocks", self.at);
        problems.ensure(Check::BlocksBesideSlots, self.slots.is_empty(), || {
            let remedy = "write a grant of its own for the upload in blocks, without slots";
            PolicyProblem::new(&at, "is used together with `slots`", remedy)
        });
        let puts = self.methods.is_empty() || self.methods.iter().any(|method| method == "PUT");
        problems.ensure(Check::EntryOutsideGrant, puts, || {
            let what = "is for PUT, which the grant's `methods` do not list";
            PolicyProblem::new(&at, what, "add PUT to `methods`, or remove this")
        });
    }

    /// Reports slots in the header that the host itself sets.
    fn check_slots(&self, header: &str, problems: &Problems) {
        let signs = matches!(self.auth, Some(AuthSpec::SigV4(_)));
        let header = normalize_header_name(header);
        for (index, slot) in self.slots.iter().enumerate() {
            let name = match &slot.place {
                Place::Header(name) => normalize_header_name(name),
                _ => continue,
            };
            let is_set = name == header || (signs && name.starts_with(SIGNING_HEADERS));
            problems.ensure(Check::SlotBesideAuth, !is_set, || {
                let at = format!("{}.slots[{index}].place", self.at);
                PolicyProblem::new(at, "is the header that the grant's `auth` sets", "remove the slot or the `auth`")
            });
        }
    }

    /// Returns the key because of which secrets are sent or received, if there is one.
    fn secrets(&self) -> Option<&'static str> {
        if self.auth.is_some() {
            Some("auth")
        } else if !self.slots.is_empty() {
            Some("slots")
        } else if !self.captures.is_empty() {
            Some("captures")
        } else if self.target.tls.has_client() {
            Some("tls.client")
        } else {
            None
        }
    }

    /// Returns the path of the grant within the policy file, such as `http[2]`.
    pub(super) fn at(&self) -> &str {
        &self.at
    }

    /// Returns true if the operator accepts that secrets travel unencrypted.
    pub(super) fn secret_over_plain_http(&self) -> bool {
        self.target.plain_http && self.secrets().is_some()
    }

    /// Fills in the properties. `captures` are the names of all captures of the policy, which
    /// slots may take. Returns `None`, with a problem, if the origin or TLS cannot be resolved.
    pub(super) fn resolve(
        &self,
        properties: &Properties,
        regions: &Regions,
        logins: &BTreeMap<String, Login>,
        credentials: &BTreeMap<String, Credentials>,
        captures: &[&str],
        problems: &Problems,
    ) -> Option<Grant> {
        let target = self.target.resolve(properties, regions, self.secrets(), &self.at, problems)?;
        // A failed part is a problem by now, which fails the whole policy: go on and find the others.
        let at = format!("{}.auth", self.at);
        let auth = self.auth.as_ref().and_then(|spec| spec.resolve(properties, regions, target.layer, &at, problems));
        if let Some(Auth::SigV4(sigv4)) = &auth
            && let Some(credentials) = credentials.get(&sigv4.credentials)
        {
            let may_sign = credentials.layer.may_be_sent_to(target.layer);
            problems.ensure(Check::LayerSignature, may_sign, || {
                refused_origin(&format!("{at}.sigv4.credentials"), &sigv4.credentials)
            });
        }
        if let Some(Auth::Login(name)) = &auth
            && let Some(login) = logins.get(name)
        {
            self.check_slots(&login.send.header, problems);
            problems.ensure(Check::LayerToken, login.token_layer.may_be_sent_to(target.layer), || {
                let what = format!(
                    "would send the token of the login `{name}`, obtained with the job's credentials, to an origin that the context (a cpi-config) chose"
                );
                let remedy = "set the login's properties in the cpi-config too, or the origin in the job's properties";
                PolicyProblem::new(format!("{}.auth.login", self.at), what, remedy)
            });
        }
        for (index, slot) in self.slots.iter().enumerate() {
            let at = format!("{}.slots[{index}].takes", self.at);
            for name in slot.takes.iter().filter(|name| captures.contains(&name.as_str())) {
                let property = properties.get(name).is_some_and(|(value, _)| !value.is_object() && !value.is_array());
                problems.ensure(Check::SlotNameTwice, !property, || {
                    let what = format!("names `{name}`, which is both a capture and a property");
                    PolicyProblem::new(&at, what, "give the capture another name, and let the slot take one of them")
                });
            }
            for name in slot.takes.iter().filter(|name| *name != AGENT && !captures.contains(&name.as_str())) {
                match properties.get(name) {
                    Some((_, layer)) => {
                        check_layer(name, layer, target.layer, &at, problems);
                    }
                    None => problems.add(
                        &at,
                        format!("names `{name}`, which is neither a capture nor a property that is set"),
                        "name a property, a capture or `agent`",
                    ),
                }
            }
        }
        Some(Grant {
            id: self.id.clone(),
            origin: target.origin,
            layer: target.layer,
            methods: self.methods.clone(),
            paths: self.paths.iter().map(|path| path.below(&target.base)).collect(),
            operations: self.operations.clone(),
            fields: self.fields.iter().map(|rules| rules.below(&target.base)).collect(),
            addresses: self.target.addresses.clone(),
            auth,
            slots: self.slots.iter().map(|slot| slot.below(&target.base)).collect(),
            captures: self.captures.iter().map(|capture| capture.below(&target.base)).collect(),
            drop: self.drop.clone(),
            query: self.query.clone(),
            hides_values: !(self.slots.is_empty() && self.captures.is_empty() && self.drop.is_empty()),
            writes_settings: self.slots.iter().any(|slot| slot.takes.iter().any(|name| name == AGENT)),
            blocks: self.blocks.clone(),
            tls: target.tls,
            shared: Arc::clone(&self.shared),
        })
    }
}
