//! A grant: what the operator lets the guest reach, and with what.
//!
//! Read from the file once (`GrantSpec`) and filled in for every call (`Grant`).
//! Secrets are bound to exact hosts over https; the rest of the file's rules on
//! them is checked here too. Judging requests is `judge`'s.

use std::collections::BTreeMap;

use serde_json::Value;

use super::auth::{Auth, AuthSpec};
use super::fields::{Fields, IDENT, is_ident};
use super::head::plain;
use super::login::Login;
use super::origin::Origin;
use super::path::PathPattern;
use super::problem::Problems;
use super::properties::Properties;
use super::reach::ReachSpec;
use super::slots::{AGENT, Capture, Operations, Slot, method, path};
use super::template::may_go;
use super::tls::Tls;
use crate::holes::Check;
use crate::net::addresses::Addresses;
use crate::place::Place;
use crate::secret::Layer;

#[derive(Clone, Debug)]
pub struct Grant {
    /// Its place in the policy: of equals the first one counts.
    pub order: usize,
    pub id: String,
    pub origin: Origin,
    /// Of the origin.
    pub layer: Layer,
    pub methods: Vec<String>,
    pub paths: Vec<PathPattern>,
    pub operations: Option<Operations>,
    pub addresses: Addresses,
    pub auth: Option<Auth>,
    /// Those that the module declares, too.
    pub slots: Vec<Slot>,
    pub captures: Vec<Capture>,
    pub tls: Tls,
}

/// As written in the file.
#[derive(Clone, Debug)]
pub(super) struct GrantSpec {
    at: String,
    order: usize,
    pub(super) id: String,
    pub(super) reach: ReachSpec,
    methods: Vec<String>,
    paths: Vec<PathPattern>,
    operations: Option<Operations>,
    auth: Option<AuthSpec>,
    slots: Vec<Slot>,
    pub(super) captures: Vec<Capture>,
}

impl GrantSpec {
    pub(super) fn read(value: &Value, at: String, order: usize, problems: &Problems) -> Option<GrantSpec> {
        let mut fields = Fields::open(value, at.clone(), problems)?;
        let id = fields.required_text("id", "compute");
        if id.is_some_and(|id| !is_ident(id)) {
            fields.problem("id", "is no name for a grant", IDENT);
        }
        let reach = ReachSpec::read(&mut fields);
        let methods = fields.required_texts("methods", "GET");
        let methods = methods.iter().filter_map(|(at, text)| method(text, at, problems)).collect();
        let paths = fields.required_texts("paths", "/v1/**");
        let paths = paths.iter().filter_map(|(at, text)| path(text, at, problems)).collect();
        let operations = Operations::read(&mut fields);
        let auth = AuthSpec::read(&mut fields);
        let slots = Slot::read_all(&mut fields);
        let captures = Capture::read_all(&mut fields);
        fields.close();
        let (id, reach) = (id?.to_owned(), reach?);
        let grant = GrantSpec { at, order, id, reach, methods, paths, operations, auth, slots, captures };
        grant.check(problems);
        Some(grant)
    }

    /// What can be said before properties are known.
    fn check(&self, problems: &Problems) {
        self.reach.check(self.secrets(), &self.at, problems);
        let spots = self.slots.iter().enumerate().map(|(i, slot)| (format!("slots[{i}]"), &slot.method, &slot.path));
        let captured = self.captures.iter().enumerate().map(|(i, c)| (format!("captures[{i}]"), &c.method, &c.path));
        for (key, method, path) in spots.chain(captured).filter(|_| Check::SpotInGrant.on()) {
            if !self.methods.is_empty() && !self.methods.contains(method) {
                let what = format!("is {method}, which the grant's `methods` do not list");
                problems.add(format!("{}.{key}.method", self.at), what, "add the method to the grant, or remove this");
            }
            if !self.paths.is_empty() && !self.paths.iter().any(|granted| granted.covers(path)) {
                let what = format!("is `{path}`, which is not within the grant's `paths`");
                problems.add(format!("{}.{key}.path", self.at), what, "narrow it, or widen the grant's `paths`");
            }
        }
        let header = match &self.auth {
            Some(AuthSpec::Basic { .. } | AuthSpec::Bearer(_)) => "authorization",
            Some(AuthSpec::Header { name, .. }) => name,
            // Known when the login is.
            Some(AuthSpec::Login(_)) | None => return,
        };
        self.check_slots(header, problems);
    }

    /// No slot is the header that the host itself sets.
    fn check_slots(&self, header: &str, problems: &Problems) {
        for (index, slot) in self.slots.iter().enumerate() {
            if matches!(&slot.place, Place::Header(name) if plain(name) == plain(header)) && Check::SlotBesideAuth.on()
            {
                let at = format!("{}.slots[{index}].place", self.at);
                problems.add(at, "is the header that the grant's `auth` sets", "remove the slot or the `auth`");
            }
        }
    }

    /// The key that makes secrets travel, if there is one.
    fn secrets(&self) -> Option<&'static str> {
        if self.auth.is_some() {
            Some("auth")
        } else if !self.slots.is_empty() {
            Some("slots")
        } else if !self.captures.is_empty() {
            Some("captures")
        } else if self.reach.tls.has_client() {
            Some("tls.client")
        } else {
            None
        }
    }

    /// Whether it neither sends nor takes secrets, nor names files.
    pub(super) fn stands_alone(&self) -> bool {
        self.secrets().is_none() && self.reach.tls.is_empty()
    }

    pub(super) fn at(&self) -> &str {
        &self.at
    }

    /// Whether secrets would travel unencrypted to such an origin.
    pub(super) fn secret_over_plain_http(&self) -> bool {
        self.reach.plain_http && self.secrets().is_some()
    }

    pub(super) fn resolve(
        &self,
        properties: &Properties,
        logins: &BTreeMap<String, Login>,
        captures: &[&str],
        problems: &Problems,
    ) -> Option<Grant> {
        let reach = self.reach.resolve(properties, self.secrets(), &self.at, problems)?;
        // A failed part is a problem by now, which fails the whole policy: go on and find the others.
        let at = format!("{}.auth", self.at);
        let auth = self.auth.as_ref().and_then(|spec| spec.resolve(properties, reach.layer, &at, problems));
        if let Some(Auth::Login(name)) = &auth
            && let Some(login) = logins.get(name)
        {
            self.check_slots(&login.send.header, problems);
            if login.token_layer == Layer::Job && reach.layer == Layer::Context && Check::LayerToken.on() {
                let what = format!(
                    "would send the token of the login `{name}`, got with the job's credentials, to an origin that the context (a cpi-config) chose"
                );
                let remedy = "set the login's properties in the cpi-config too, or the origin in the job's properties";
                problems.add(format!("{}.auth.login", self.at), what, remedy);
            }
        }
        for (index, slot) in self.slots.iter().enumerate() {
            let at = format!("{}.slots[{index}].takes", self.at);
            for name in slot.takes.iter().filter(|name| *name != AGENT && !captures.contains(&name.as_str())) {
                match properties.get(name) {
                    Some((_, layer)) => {
                        may_go(name, layer, reach.layer, &at, problems);
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
            order: self.order,
            id: self.id.clone(),
            origin: reach.origin,
            layer: reach.layer,
            methods: self.methods.clone(),
            paths: self.paths.iter().map(|path| path.below(&reach.base)).collect(),
            operations: self.operations.clone(),
            addresses: self.reach.addresses.clone(),
            auth,
            slots: self.slots.iter().map(|slot| slot.below(&reach.base)).collect(),
            captures: self.captures.iter().map(|capture| capture.below(&reach.base)).collect(),
            tls: reach.tls,
        })
    }
}
