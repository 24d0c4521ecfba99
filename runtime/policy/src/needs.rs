//! What a guest says it needs: the custom section `bosh-cpi:needs` of its component.
//!
//! A request that the guest does not declare is denied even if the operator grants it. The
//! author of the guest writes the section, so it is hostile input: it can narrow what the
//! operator grants, and never widen it.

use serde_json::Value;

use super::grant::Grant;
use super::object_reader::{IDENT, ObjectReader, is_ident, printable};
use super::operations::Operations;
use super::origin::{Origin, OriginSpec, ResolvedOrigin};
use super::path::{Base, PathPattern};
use super::problem::{PolicyProblem, Problems};
use super::properties::Properties;
use super::regions::Regions;
use super::slots::{Slot, method, path};
use super::template::is_property_path;
use crate::destination::Destination;
use crate::place::Message;
use crate::strict_json;
use wasm_cpi_checks::Check;

/// Everything that a guest declares. The default declares nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    /// The HTTP requests that the guest sends.
    pub http: Vec<Need>,
    /// True if the guest uses registry settings.
    pub registry: bool,
    /// The dotted paths of the properties whose values the guest asks to read.
    pub expose: Vec<String>,
    /// True if the guest reads the stemcell's image.
    pub image: bool,
    /// The names of the policy's logins that the guest uses.
    pub logins: Restriction<Vec<String>>,
}

/// Requests to one origin that the guest declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    /// The name that the author gave the need, for messages.
    pub id: String,
    /// The origin of the requests.
    pub to: Restriction<OriginSpec>,
    /// The methods of the requests, in upper case.
    pub methods: Restriction<Vec<String>>,
    /// The paths of the requests, relative to the path of the URL in `to`.
    pub paths: Vec<PathPattern>,
    /// The places in the requests where the guest puts seals of secrets.
    pub slots: Restriction<Vec<Slot>>,
    /// The operations of the requests. Without any, the need is not for grants that list
    /// operations.
    pub operations: Restriction<Option<Operations>>,
    /// True if the guest works without what the need asks for.
    pub optional: bool,
    /// The author's reason, cut to 200 characters and without control characters.
    pub why: String,
}

/// The limit of a need for one aspect of its requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Restriction<T> {
    /// The guest writes `*`: the operator's grants are the only limit.
    Any,
    /// The guest limits itself to this.
    Only(T),
}

impl<T: Default> Default for Restriction<T> {
    fn default() -> Restriction<T> {
        Restriction::Only(T::default())
    }
}

const MAX_BYTES: usize = 64 * 1024;
const MAX_DEPTH: usize = 16;
const EVERYTHING: &str = "*";

impl Needs {
    /// Parses the content of the section, which is JSON of at most 64 KiB. Returns all problems
    /// at once. Rejects unknown keys and any version other than 1.
    ///
    /// ```
    /// use wasm_cpi_policy::Needs;
    ///
    /// let needs = Needs::parse(br#"{"version": 1, "image": true}"#).unwrap();
    /// assert!(needs.image && !needs.registry && needs.http.is_empty());
    /// ```
    pub fn parse(section: &[u8]) -> Result<Needs, Vec<PolicyProblem>> {
        let problems = Problems::default();
        let needs = Needs::read(section, &problems).unwrap_or_default();
        problems.into_result(needs)
    }

    fn read(section: &[u8], problems: &Problems) -> Option<Needs> {
        let fits = problems.ensure(Check::NeedsSize, section.len() <= MAX_BYTES, || {
            let what = format!("the needs have more than {MAX_BYTES} bytes");
            PolicyProblem::new("", what, "declare patterns instead of single paths")
        });
        if !fits {
            return None;
        }
        let parsed = std::str::from_utf8(section)
            .map_err(|_| ("it is not UTF-8".to_owned(), None))
            .and_then(|text| strict_json::parse(text, MAX_DEPTH).map_err(|error| (error.to_string(), error.check())));
        let value = match parsed {
            Ok(value) => value,
            Err((error, check)) => {
                let what = format!("the needs are not valid JSON: {}", printable(&error));
                problems.push(PolicyProblem { check, ..PolicyProblem::new("", what, "build the guest again") });
                return None;
            }
        };
        let mut reader = ObjectReader::open(&value, "", problems)?;
        let is_one = reader.value("version") == Some(&Value::from(1));
        let known = reader.ensure(Check::UnknownVersion, is_one, "version", || {
            ("is not 1", "use a runtime that knows this version, or a guest with version 1")
        });
        if !known {
            return None;
        }
        let http = reader.list("http").into_iter().filter_map(|(at, value)| Need::read(value, at, problems)).collect();
        let registry = reader.flag("registry");
        let image = reader.flag("image");
        let mut expose = Vec::new();
        for (at, name) in reader.texts("expose") {
            if is_property_path(name) {
                expose.push(name.to_owned());
            } else {
                problems.add(at, "is not a valid name of a property", "write it like `region` or `network.zone`");
            }
        }
        let logins = logins(&mut reader);
        reader.accept_schema();
        reader.close();
        Some(Needs { http, registry, expose, image, logins })
    }
}

impl Need {
    fn read(value: &Value, at: String, problems: &Problems) -> Option<Need> {
        let mut reader = ObjectReader::open(value, at, problems)?;
        let id = reader.required_text("id", "compute");
        if id.is_some_and(|id| !is_ident(id)) {
            reader.problem("id", "is not a valid name for a need", IDENT);
        }
        let to = reader.required_text("to", "${api_url}").and_then(|text| match OriginSpec::parse(text) {
            _ if text == EVERYTHING => Some(Restriction::Any),
            Ok(spec) => Some(Restriction::Only(spec)),
            Err(error) => {
                reader.refused(error.check(), "to", error.to_string(), error.remedy());
                None
            }
        });
        let methods = if wants_everything(reader.value("methods")) {
            Restriction::Any
        } else {
            let listed = reader.required_texts("methods", "GET");
            Restriction::Only(listed.iter().filter_map(|(at, text)| method(text, at, problems)).collect())
        };
        let paths = if wants_everything(reader.value("paths")) {
            vec![PathPattern::any()]
        } else {
            let listed = reader.required_texts("paths", "/v1/**");
            listed.iter().filter_map(|(at, text)| path(text, at, problems)).collect()
        };
        let slots = if wants_everything(reader.value("slots")) {
            Restriction::Any
        } else {
            Restriction::Only(Slot::of_need(&mut reader))
        };
        let operations = if wants_everything(reader.value("operations")) {
            Restriction::Any
        } else {
            Restriction::Only(Operations::of_need(&mut reader))
        };
        check_slots(&reader, &slots, &operations);
        let optional = reader.flag("optional");
        let why = reader.text("why").map(printable).unwrap_or_default();
        reader.close();
        Some(Need { id: id?.to_owned(), to: to?, methods, paths, slots, operations, optional, why })
    }

    pub(super) fn wants_method(&self, method: &str) -> bool {
        match &self.methods {
            Restriction::Any => true,
            Restriction::Only(list) => list.iter().any(|listed| listed == method),
        }
    }
}

/// Reports slots for operations that the need does not declare.
fn check_slots(
    reader: &ObjectReader<'_>,
    slots: &Restriction<Vec<Slot>>,
    operations: &Restriction<Option<Operations>>,
) {
    let (Restriction::Only(slots), Restriction::Only(operations)) = (slots, operations) else { return };
    let declared = |name: &String| operations.as_ref().is_some_and(|operations| operations.allow.contains(name));
    for (index, slot) in slots.iter().enumerate() {
        if slot.operation.as_ref().is_some_and(|name| !declared(name)) {
            let what = "is not one of the need's `operations`";
            reader.problem(&format!("slots[{index}].operation"), what, "add it to `operations.allow`, or remove this");
        }
    }
}

fn logins(reader: &mut ObjectReader<'_>) -> Restriction<Vec<String>> {
    if wants_everything(reader.value("logins")) {
        return Restriction::Any;
    }
    let mut names = Vec::new();
    for (at, name) in reader.texts("logins") {
        if is_ident(name) {
            names.push(name.to_owned());
        } else {
            reader.problems().add(at, "is not a valid name of a login", IDENT);
        }
    }
    Restriction::Only(names)
}

/// Returns true for `"*"` and `["*"]`.
fn wants_everything(value: Option<&Value>) -> bool {
    match value {
        Some(Value::String(text)) => text == EVERYTHING,
        Some(Value::Array(list)) => matches!(list.as_slice(), [Value::String(text)] if text == EVERYTHING),
        _ => false,
    }
}

/// A need with its properties filled in for one call.
#[derive(Clone, Debug)]
pub(super) struct ResolvedNeed {
    /// The need as the guest declares it.
    pub(super) need: Need,
    pub(super) origin: NeedOrigin,
    /// The path of the URL in `to`, which is put before all paths of the need.
    pub(super) base: Base,
}

/// The origin of a need in one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NeedOrigin {
    /// The need is for every origin.
    Any,
    /// The need is for this origin.
    Known(Origin),
    /// The origin is a property that is not set, or whose value is not an origin.
    Unset,
}

impl ResolvedNeed {
    pub(super) fn resolve(need: &Need, properties: &Properties, regions: &Regions) -> ResolvedNeed {
        let (origin, base) = match &need.to {
            Restriction::Any => (NeedOrigin::Any, Base::default()),
            Restriction::Only(spec) => match spec.resolve(properties, regions, "", &Problems::default()) {
                Some(ResolvedOrigin { origin, base, .. }) => (NeedOrigin::Known(origin), base),
                None => (NeedOrigin::Unset, Base::default()),
            },
        };
        ResolvedNeed { need: need.clone(), origin, base }
    }

    /// Returns each declared path together with the complete path pattern of requests.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&PathPattern, PathPattern)> {
        self.need.paths.iter().map(|path| (path, path.below(&self.base)))
    }

    /// Returns each declared slot together with the slot that has the complete path pattern.
    pub(super) fn slots(&self) -> Restriction<Vec<(&Slot, Slot)>> {
        match &self.need.slots {
            Restriction::Any => Restriction::Any,
            Restriction::Only(slots) => {
                Restriction::Only(slots.iter().map(|slot| (slot, slot.below(&self.base))).collect())
            }
        }
    }

    /// Returns the declared paths, as they are declared, that match the request.
    pub(super) fn declares<'a, 'd>(
        &'a self,
        destination: &'d Destination,
        method: &str,
    ) -> impl Iterator<Item = &'a PathPattern> + use<'a, 'd> {
        let origin = match &self.origin {
            NeedOrigin::Any => true,
            NeedOrigin::Known(origin) => origin.matches(destination),
            NeedOrigin::Unset => false,
        };
        let declared = origin && self.need.wants_method(method);
        let falls = move |(_, path): &(_, PathPattern)| declared && path.matches(destination.path());
        self.paths().filter(falls).map(|(path, _)| path)
    }

    /// Returns true if the need can match a request to this port.
    pub(super) fn may_use(&self, port: u16) -> bool {
        match &self.origin {
            NeedOrigin::Any => true,
            NeedOrigin::Known(own) => own.port == port,
            NeedOrigin::Unset => false,
        }
    }

    /// Returns true if the need declares the operation of a request that matches it otherwise.
    /// `listed` is true if the grant of the request lists operations.
    pub(super) fn declares_operation(&self, destination: &Destination, message: &Message<'_>, listed: bool) -> bool {
        match &self.need.operations {
            Restriction::Any => true,
            Restriction::Only(None) => !listed,
            Restriction::Only(Some(operations)) => operations.allows(destination, message).is_ok(),
        }
    }

    pub(super) fn covers(&self, origin: &Origin) -> bool {
        match &self.origin {
            NeedOrigin::Any => true,
            NeedOrigin::Known(own) => own.covers(origin),
            NeedOrigin::Unset => false,
        }
    }
}

/// Returns the slots of a grant that the guest declares as well.
pub(super) fn declared_slots(grant: &Grant, needs: &[ResolvedNeed]) -> Vec<Slot> {
    // Without a list of operations, the host does not look for the operation of a request.
    let knows_operations = grant.operations.is_some();
    let mut effective: Vec<Slot> = Vec::new();
    for slot in &grant.slots {
        for declared in needs.iter().filter(|declared| declared.covers(&grant.origin)) {
            match declared.slots() {
                Restriction::Any => effective.push(slot.clone()),
                Restriction::Only(list) => {
                    let both = list.iter().filter_map(|(_, own)| intersect(slot, own));
                    effective.extend(both.filter(|slot| knows_operations || slot.operation.is_none()));
                }
            }
        }
    }
    let mut distinct: Vec<Slot> = Vec::new();
    for slot in effective {
        if !distinct.contains(&slot) {
            distinct.push(slot);
        }
    }
    distinct
}

/// Returns the slot that both sides allow, or `None` if there is none.
fn intersect(granted: &Slot, declared: &Slot) -> Option<Slot> {
    if granted.method != declared.method || granted.place != declared.place {
        return None;
    }
    let operation = match (&granted.operation, &declared.operation) {
        (Some(granted), Some(declared)) if granted != declared => return None,
        (granted, declared) => granted.clone().or_else(|| declared.clone()),
    };
    let path = granted.path.intersect(&declared.path)?;
    let takes: Vec<String> = granted.takes.iter().filter(|name| declared.takes.contains(name)).cloned().collect();
    let slot = Slot { path, operation, takes, ..granted.clone() };
    (!slot.takes.is_empty()).then_some(slot)
}
