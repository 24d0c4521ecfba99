//! Writes the lines that a denial suggests: a grant for the policy, or a need for the guest.
//!
//! A suggested grant allows one method at one origin, for the pattern of paths that the guest
//! declares, or for the one path of the request if the guest declares everything. Settings that
//! the operator chose for the same origin are copied from another grant: addresses, TLS,
//! `plain_http`, auth, and slots for the same requests. Nothing else in it comes from anywhere but
//! the guest's needs and the request.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Policy;
use super::grant::{Grant, GrantSpec};
use super::judge::Request;
use super::needs::{NeedOrigin, ResolvedNeed, Restriction};
use super::operations::{OperationMismatch, Operations, is_plain};
use super::origin::OriginSpec;
use super::path::PathPattern;
use super::problem::Problems;
use super::slots::{AGENT, Slot};
use super::stages::{Mismatch, StageMismatch};
use super::verdict::DenialReason;
use crate::destination::{Destination, Scheme};
use crate::place::Place;
use wasm_cpi_checks::Check;

/// What would allow a denied request, for operators.
pub(super) enum Hint {
    /// A grant for the policy.
    Grant(String),
    /// The id of a grant, and a place that its `fields` do not list.
    Fields(String, String),
    /// Lines for the guest's needs, with where they belong.
    Needs(String),
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Hint::Grant(grant) => {
                write!(f, "to allow it, add this, asked for by the guest, to the policy's \"http\": {grant}")
            }
            Hint::Fields(grant, place) => {
                let line = format!("\"{place}\": \"any\"");
                write!(
                    f,
                    "to allow it, add this, asked for by the guest, to `places` in the `fields` of grant `{grant}`: {line}"
                )
            }
            Hint::Needs(line) => write!(f, "the guest's author declares it in needs.json, {line}"),
        }
    }
}

/// A need that declares a request, and the declared path that matches it.
pub(super) type Declaring<'a> = (&'a ResolvedNeed, &'a PathPattern);

impl Request<'_> {
    /// Returns the needs that declare the request, whatever its operation is.
    pub(super) fn declaring<'n>(&self, needs: &'n [ResolvedNeed]) -> Vec<Declaring<'n>> {
        let each = needs.iter().map(|one| (one, one.declares(self.destination, self.method)));
        each.flat_map(|(one, paths)| paths.map(move |path| (one, path))).collect()
    }

    /// Returns what would allow the request. `needs` is `None` for a guest without needs.
    pub(super) fn hint(
        &self,
        reason: DenialReason,
        nearest: &[(&Grant, &StageMismatch)],
        needs: Option<&[Declaring<'_>]>,
        grants: &[Arc<Grant>],
    ) -> Option<Hint> {
        // A parameter of a query is not in the needs; the operator decides about it.
        let needs = needs.filter(|_| reason != DenialReason::Query)?;
        if needs.is_empty() {
            // An origin that neither side names is most often a mistake in a property that holds a URL.
            let elsewhere = [DenialReason::Scheme, DenialReason::Host, DenialReason::Port].contains(&reason);
            return self.need_line(None).filter(|_| !elsewhere).map(Hint::Needs);
        }
        if reason != DenialReason::Operation {
            let pasted = |(need, path): &Declaring<'_>| {
                let operations = match &need.need.operations {
                    Restriction::Only(Some(declared)) if declared.allows(self.destination, self.message).is_err() => {
                        return None;
                    }
                    Restriction::Only(Some(declared)) => Some(declared.clone()),
                    Restriction::Only(None) | Restriction::Any => None,
                };
                self.grant(need, path, operations.as_ref(), grants)
            };
            return needs.iter().find_map(pasted).map(Hint::Grant);
        }
        let (grant, failed) = nearest.first()?;
        let mismatch = match failed.mismatch.as_ref()? {
            Mismatch::Field(owner, mismatch) => {
                return Some(Hint::Fields(owner.clone(), mismatch.unlisted()?.to_owned()));
            }
            Mismatch::Operation(mismatch) => mismatch,
            Mismatch::Query(_) | Mismatch::Uncertain(..) => return None,
        };
        let OperationMismatch::NotListed(operation) = mismatch else { return None };
        let listed = grant.operations.as_ref().filter(|_| is_plain(operation))?;
        let one = Operations { place: listed.place.clone(), allow: vec![operation.clone()] };
        let pasted = |(need, path): &Declaring<'_>| {
            let declared = need.declares_operation(self.destination, self.message, true);
            declared.then(|| self.grant(need, path, Some(&one), grants)).flatten()
        };
        let undeclared = || Hint::Needs(format!("beside the `paths` of the need: \"operations\": {}", one.to_json()));
        Some(needs.iter().find_map(pasted).map_or_else(undeclared, Hint::Grant))
    }

    /// Returns one line of JSON, or `None` if no valid grant can be written for this request.
    fn grant(
        &self,
        by: &ResolvedNeed,
        declared: &PathPattern,
        operations: Option<&Operations>,
        grants: &[Arc<Grant>],
    ) -> Option<String> {
        let (need, destination) = (&by.need, self.destination);
        let everything =
            need.to == Restriction::Any || need.methods == Restriction::Any || *declared == PathPattern::any();
        let vague = Check::HintNarrow.choose(everything, false);
        let below = by.base.strip(destination.path());
        let path = match below {
            _ if !vague => declared.to_string(),
            Some(below) => below.to_owned(),
            None => destination.path().to_owned(),
        };
        if vague && path.contains('*') {
            return None;
        }
        // A property by its name: its value may be one that no message shows.
        let to = match &need.to {
            Restriction::Only(spec @ (OriginSpec::Property(_) | OriginSpec::Label { .. }))
                if !vague || below.is_some() =>
            {
                spec.to_string()
            }
            _ => destination.origin(),
        };
        let id = free_id(&need.id, &|id| grants.iter().any(|grant| grant.id == id));
        let mut grant = json!({"id": id, "to": to, "methods": [self.method], "paths": [path]});
        if let Some(operations) = operations {
            grant["operations"] = operations.to_json();
        }
        let mut line = complete(grant, by, grants, &|grant| grant.origin.matches(destination), &|grant| {
            grant.origin.host.matches(destination.host())
        });
        let of_origin = grants.iter().filter(|grant| grant.origin.matches(destination));
        let hides_values = line.get("slots").is_some() || of_origin.into_iter().any(|grant| grant.hides_values);
        if let Some(query) = destination.query().filter(|_| hides_values) {
            // Where grants hide values of responses, a grant allows only the parameters that it lists.
            let mut names: Vec<String> = Vec::new();
            for (name, _) in url::form_urlencoded::parse(query.as_bytes()) {
                if !names.iter().any(|known| *known == name) {
                    names.push(name.into_owned());
                }
            }
            if query.contains(';') {
                return None;
            }
            line["query"] = json!(names);
        }
        let problems = Problems::default();
        GrantSpec::read(&line, String::new(), &problems)?;
        problems.is_empty().then(|| line.to_string())
    }

    /// Returns the need for a guest that does not declare the request. `grant` allows it already.
    pub(super) fn need_line(&self, grant: Option<&Grant>) -> Option<String> {
        let path = self.destination.path();
        let (id, to, path) = match grant {
            Some(grant) => {
                let pattern = grant.shared.paths.iter().zip(&grant.paths).find(|(_, whole)| whole.matches(path));
                (grant.id.as_str(), grant.shared.to.clone(), pattern?.0.to_string())
            }
            None => ("need", self.destination.origin(), path.to_owned()),
        };
        let mut need = json!({"id": id, "to": to, "methods": [self.method], "paths": [path]});
        if let Some(operations) = grant.and_then(|grant| self.operation_of(grant)) {
            need["operations"] = operations.to_json();
        }
        let section = json!({"version": 1, "http": [need]}).to_string();
        super::Needs::parse(section.as_bytes()).is_ok().then(|| format!("under \"http\": {need}"))
    }

    /// Returns the operations for a need that does not declare the operation of the request.
    pub(super) fn operation_line(&self, grant: &Grant) -> Option<String> {
        let operations = self.operation_of(grant)?;
        Some(format!("beside the `paths` of the need: \"operations\": {}", operations.to_json()))
    }

    fn operation_of(&self, grant: &Grant) -> Option<Operations> {
        let listed = grant.operations.as_ref()?;
        let operation = listed.allows(self.destination, self.message).ok()?;
        Some(Operations { place: listed.place.clone(), allow: vec![operation] })
    }
}

/// What is to be done about a request that was refused because a seal is where no slot takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingSlot {
    /// True if the guest declares the slot, so that only the policy lacks it.
    pub declared: bool,
    /// The line to add, for operators.
    pub hint: Option<String>,
}

impl Policy {
    /// Returns what is missing for the secret `name` at a place of a request that `grant` allows.
    pub fn missing_slot(
        &self,
        grant: &Grant,
        destination: &Destination,
        method: &str,
        place: &Place,
        name: &str,
    ) -> MissingSlot {
        // The path as the grant has it, because a slot must be within the paths of its grant.
        let whole = grant.shared.paths.iter().zip(&grant.paths);
        let granted: Vec<&PathPattern> =
            whole.filter(|(_, whole)| whole.matches(destination.path())).map(|(path, _)| path).collect();
        let mut declared = None;
        for need in self.declared.iter().flatten().filter(|need| need.covers(&grant.origin)) {
            match &need.need.slots {
                Restriction::Any => declared = declared.or(granted.first().map(|path| ((*path).clone(), Vec::new()))),
                Restriction::Only(slots) => {
                    let fits = |slot: &&Slot| {
                        let takes = slot.takes.iter().any(|taken| taken == name);
                        let here = slot.below(&need.base).path.matches(destination.path());
                        slot.method == method && slot.place == *place && takes && here
                    };
                    let found = slots.iter().find(fits).and_then(|slot| {
                        let path = granted.iter().find_map(|path| path.intersect(&slot.path))?;
                        Some((path, slot.show.clone()))
                    });
                    declared = declared.or(found);
                }
            }
        }
        if self.declared.is_none() {
            declared = granted.first().map(|path| ((*path).clone(), Vec::new()));
        }
        let suggested = declared.clone().or(granted.first().map(|path| ((*path).clone(), Vec::new())));
        let line = suggested.map(|(path, show)| {
            let (method, place, takes) = (method.to_owned(), place.clone(), vec![name.to_owned()]);
            slot_json(&Slot { method, path, place, takes, show, max_bytes: None }).to_string()
        });
        let hint = match (line, &declared) {
            (None, _) => None,
            (Some(line), Some(_)) => {
                let to = format!("the \"slots\" of grant `{}`", grant.id);
                Some(format!("to allow it, add this, asked for by the guest, to {to}: {line}"))
            }
            (Some(line), None) => Some(Hint::Needs(format!("under \"slots\" of the need: {line}")).to_string()),
        };
        MissingSlot { declared: declared.is_some(), hint }
    }
}

/// Adds to a suggested grant what other grants of the same origin have, and the slots of the need.
pub(super) fn complete(
    mut grant: Value,
    by: &ResolvedNeed,
    grants: &[Arc<Grant>],
    same_origin: &dyn Fn(&Grant) -> bool,
    same_host: &dyn Fn(&Grant) -> bool,
) -> Value {
    let exact = |grant: &&Arc<Grant>| !grant.origin.is_wildcard();
    let siblings: Vec<&Arc<Grant>> = grants.iter().filter(exact).filter(|grant| same_origin(grant)).collect();
    let sibling = siblings.iter().find(|grant| grant.auth.is_some()).or(siblings.first()).copied();
    let neighbour = sibling.or_else(|| grants.iter().filter(exact).find(|grant| same_host(grant)));
    let settings = neighbour.into_iter().flat_map(|grant| &grant.shared.settings);
    let of_host = ["addresses", "tls"];
    for (key, value) in settings.filter(|(key, _)| sibling.is_some() || of_host.contains(&key.as_str())) {
        grant[key.as_str()] = value.clone();
    }
    let plain = grant["to"].as_str().is_some_and(|to| to.starts_with("http://"))
        || matches!(&by.origin, NeedOrigin::Known(origin) if origin.scheme == Scheme::Http);
    let secrets_may_go = grant.get("plain_http") == Some(&Value::Bool(true)) || !plain;
    let copied =
        siblings.iter().filter(|sibling| grant["to"] == sibling.shared.to.as_str()).flat_map(|s| &s.shared.slots);
    let slots: Vec<Value> = copied.filter(|slot| is_within(slot, &grant)).cloned().collect();
    let declared: Vec<Value> = match &by.need.slots {
        Restriction::Only(declared) if secrets_may_go => {
            let known = |slot: &&Slot| slot.takes.iter().all(|name| is_known(name, grants));
            declared.iter().filter(known).map(slot_json).filter(|slot| is_within(slot, &grant)).collect()
        }
        _ => Vec::new(),
    };
    let mut all = slots;
    for slot in declared {
        if !all.iter().any(|copied| copied["place"] == slot["place"] && copied["path"] == slot["path"]) {
            all.push(slot);
        }
    }
    if !all.is_empty() {
        grant["slots"] = Value::Array(all);
    }
    grant
}

/// Returns true if a slot, as it is written, is for requests of this grant.
fn is_within(slot: &Value, grant: &Value) -> bool {
    let listed = |key: &str| grant[key].as_array().into_iter().flatten();
    let path = slot["path"].as_str().and_then(|path| PathPattern::parse(path).ok());
    let covers = |granted: &Value| {
        let granted = granted.as_str().and_then(|granted| PathPattern::parse(granted).ok());
        granted.zip(path.as_ref()).is_some_and(|(granted, path)| granted.covers(path))
    };
    listed("methods").any(|method| *method == slot["method"]) && listed("paths").any(covers)
}

/// Returns true if a slot can take a secret of this name in this policy.
fn is_known(name: &str, grants: &[Arc<Grant>]) -> bool {
    let captured = |grant: &Arc<Grant>| grant.captures.iter().any(|capture| capture.name == name);
    let taken = |grant: &Arc<Grant>| grant.slots.iter().any(|slot| slot.takes.iter().any(|taken| taken == name));
    name == AGENT || grants.iter().any(|grant| captured(grant) || taken(grant))
}

/// Returns a slot as it is written in a file.
pub(super) fn slot_json(slot: &Slot) -> Value {
    let (path, place) = (slot.path.to_string(), slot.place.to_string());
    let mut line = json!({"method": slot.method, "path": path, "place": place, "takes": slot.takes});
    if !slot.show.is_empty() {
        line["show"] = slot.show.iter().map(ToString::to_string).collect();
    }
    line
}

/// Returns `wanted`, followed by a number if that id is taken.
pub(super) fn free_id(wanted: &str, taken: &dyn Fn(&str) -> bool) -> String {
    if !taken(wanted) {
        return wanted.to_owned();
    }
    let stem: String = wanted.chars().take(56).collect();
    let numbered = (2..10_000).map(|number| format!("{stem}-{number}")).find(|id| !taken(id));
    numbered.unwrap_or_else(|| wanted.to_owned())
}

/// What another grant for the same origin copies from a grant, as it is written in the policy.
#[derive(Clone)]
pub(super) struct SharedSettings {
    pub(super) to: String,
    /// The paths relative to the URL in `to`.
    pub(super) paths: Vec<PathPattern>,
    settings: Map<String, Value>,
    slots: Vec<Value>,
}

impl SharedSettings {
    /// Takes the settings from a grant as it is written. A private key that is written into the
    /// policy is left out.
    pub(super) fn of(written: &Value, to: &OriginSpec, paths: &[PathPattern]) -> SharedSettings {
        let mut settings = Map::new();
        for key in ["addresses", "tls", "plain_http", "auth"] {
            if let Some(value) = written.get(key) {
                settings.insert(key.to_owned(), value.clone());
            }
        }
        let literal = |tls: &Value| tls["client"]["key"].as_str().is_some_and(|key| key.contains("-----BEGIN"));
        if let Some(tls) = settings.get_mut("tls").filter(|tls| literal(tls)).and_then(Value::as_object_mut) {
            tls.remove("client");
        }
        let slots = written.get("slots").and_then(Value::as_array).cloned().unwrap_or_default();
        SharedSettings { to: to.to_string(), paths: paths.to_vec(), settings, slots }
    }
}

impl fmt::Debug for SharedSettings {
    /// Shows nothing: the settings are in the grant itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSettings")
    }
}
