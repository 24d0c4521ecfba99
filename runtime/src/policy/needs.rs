//! What a module says it needs: the custom section `bosh-cpi:needs`.
//!
//! The other key beside the operator's grants: what is not declared is refused
//! even where it is granted. It is the guest's own word and hostile input, so it
//! can narrow what the operator granted and never widen it.

use serde_json::Value;

use super::fields::{Fields, IDENT, is_ident, printable};
use super::origin::{Origin, OriginSpec, Resolved};
use super::path::{Base, PathPattern};
use super::problem::{Problem, Problems};
use super::properties::Properties;
use super::slots::{Slot, method, path};

use super::template::is_property_path;
use crate::holes::Check;
use crate::net::destination::Destination;
use crate::strict_json;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    pub http: Vec<Need>,
    pub registry: bool,
    /// Dotted paths of properties that the module would like to see as they are.
    pub expose: Vec<String>,
    pub image: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Need {
    pub id: String,
    pub to: Wanted<OriginSpec>,
    pub methods: Wanted<Vec<String>>,
    pub paths: Vec<PathPattern>,
    pub slots: Wanted<Vec<Slot>>,
    /// The author's reason, shortened and made printable.
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted<T> {
    /// `*`: whatever the operator grants.
    Whatever,
    Only(T),
}

const MAX_BYTES: usize = 64 * 1024;
const MAX_DEPTH: usize = 16;
const EVERYTHING: &str = "*";

impl Needs {
    pub fn parse(section: &[u8]) -> Result<Needs, Vec<Problem>> {
        let problems = Problems::default();
        let needs = Needs::read(section, &problems).unwrap_or_default();
        problems.or(needs)
    }

    fn read(section: &[u8], problems: &Problems) -> Option<Needs> {
        if Check::NeedsSize.on() && section.len() > MAX_BYTES {
            problems.add(
                "",
                format!("the needs have more than {MAX_BYTES} bytes"),
                "declare patterns instead of single paths",
            );
            return None;
        }
        let parsed = std::str::from_utf8(section)
            .map_err(|_| "it is not UTF-8".to_owned())
            .and_then(|text| strict_json::parse(text, MAX_DEPTH));
        let value = match parsed {
            Ok(value) => value,
            Err(error) => {
                problems.add(
                    "",
                    format!("the needs are no valid JSON: {}", printable(&error)),
                    "build the module again",
                );
                return None;
            }
        };
        let mut fields = Fields::open(&value, "", problems)?;
        if fields.value("version") != Some(&Value::from(1)) && Check::UnknownVersion.on() {
            fields.problem("version", "is not 1", "use a runtime that knows this version, or a module with version 1");
            return None;
        }
        let http = fields.list("http").into_iter().filter_map(|(at, value)| Need::read(value, at, problems)).collect();
        let registry = fields.flag("registry");
        let image = fields.flag("image");
        let mut expose = Vec::new();
        for (at, name) in fields.texts("expose") {
            if is_property_path(name) {
                expose.push(name.to_owned());
            } else {
                problems.add(at, "is no name of a property", "write it like `region` or `network.zone`");
            }
        }
        fields.close();
        Some(Needs { http, registry, expose, image })
    }
}

impl Need {
    fn read(value: &Value, at: String, problems: &Problems) -> Option<Need> {
        let mut fields = Fields::open(value, at, problems)?;
        let id = fields.required_text("id", "compute");
        if id.is_some_and(|id| !is_ident(id)) {
            fields.problem("id", "is no name for a need", IDENT);
        }
        let to = fields.required_text("to", "${api_url}").and_then(|text| match OriginSpec::parse(text) {
            _ if text == EVERYTHING => Some(Wanted::Whatever),
            Ok(spec) => Some(Wanted::Only(spec)),
            Err((what, remedy)) => {
                fields.problem("to", what, remedy);
                None
            }
        });
        let methods = if wants_everything(fields.value("methods")) {
            Wanted::Whatever
        } else {
            let listed = fields.required_texts("methods", "GET");
            Wanted::Only(listed.iter().filter_map(|(at, text)| method(text, at, problems)).collect())
        };
        let paths = if wants_everything(fields.value("paths")) {
            vec![PathPattern::any()]
        } else {
            let listed = fields.required_texts("paths", "/v1/**");
            listed.iter().filter_map(|(at, text)| path(text, at, problems)).collect()
        };
        let slots = if wants_everything(fields.value("slots")) {
            Wanted::Whatever
        } else {
            Wanted::Only(Slot::read_all(&mut fields))
        };
        let why = fields.text("why").map(printable).unwrap_or_default();
        fields.close();
        Some(Need { id: id?.to_owned(), to: to?, methods, paths, slots, why })
    }

    pub(super) fn wants_method(&self, method: &str) -> bool {
        match &self.methods {
            Wanted::Whatever => true,
            Wanted::Only(list) => list.iter().any(|listed| listed == method),
        }
    }
}

/// `"*"` or `["*"]`.
fn wants_everything(value: Option<&Value>) -> bool {
    match value {
        Some(Value::String(text)) => text == EVERYTHING,
        Some(Value::Array(list)) => matches!(list.as_slice(), [Value::String(text)] if text == EVERYTHING),
        _ => false,
    }
}

/// A need with its properties filled in.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    /// As declared.
    pub(super) need: Need,
    pub(super) target: Target,
    /// What its paths are below.
    pub(super) base: Base,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Whatever,
    Origin(Origin),
    /// It hangs on a property that is not set, or not to an origin.
    Unset,
}

impl Declared {
    pub(super) fn resolve(need: &Need, properties: &Properties) -> Declared {
        let (target, base) = match &need.to {
            Wanted::Whatever => (Target::Whatever, Base::default()),
            Wanted::Only(spec) => match spec.resolve(properties, "", &Problems::default()) {
                Some(Resolved { origin, base, .. }) => (Target::Origin(origin), base),
                None => (Target::Unset, Base::default()),
            },
        };
        Declared { need: need.clone(), target, base }
    }

    /// Each declared path with what it is in a request.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&PathPattern, PathPattern)> {
        self.need.paths.iter().map(|path| (path, path.below(&self.base)))
    }

    /// Each declared slot with what it is in a request, if it declares any in particular.
    pub(super) fn slots(&self) -> Wanted<Vec<(&Slot, Slot)>> {
        match &self.need.slots {
            Wanted::Whatever => Wanted::Whatever,
            Wanted::Only(slots) => Wanted::Only(slots.iter().map(|slot| (slot, slot.below(&self.base))).collect()),
        }
    }

    /// The declared paths that the request falls under, as they are declared.
    pub(super) fn declares<'a, 'd>(
        &'a self,
        destination: &'d Destination,
        method: &str,
    ) -> impl Iterator<Item = &'a PathPattern> + use<'a, 'd> {
        let origin = match &self.target {
            Target::Whatever => true,
            Target::Origin(origin) => origin.matches(destination),
            Target::Unset => false,
        };
        let declared = origin && self.need.wants_method(method);
        let falls = move |(_, path): &(_, PathPattern)| declared && path.matches(destination.path());
        self.paths().filter(falls).map(|(path, _)| path)
    }

    /// Whether any request on this port can fall under it.
    pub(super) fn may_use(&self, port: u16) -> bool {
        match &self.target {
            Target::Whatever => true,
            Target::Origin(own) => own.port == port,
            Target::Unset => false,
        }
    }

    fn covers(&self, origin: &Origin) -> bool {
        match &self.target {
            Target::Whatever => true,
            Target::Origin(own) => own.covers(origin),
            Target::Unset => false,
        }
    }
}

/// The slots of a grant for `origin` that the module declares, too.
pub(super) fn declared_slots(granted: &[Slot], origin: &Origin, needs: &[Declared]) -> Vec<Slot> {
    let mut effective: Vec<Slot> = Vec::new();
    for slot in granted {
        for declared in needs.iter().filter(|declared| declared.covers(origin)) {
            match declared.slots() {
                Wanted::Whatever => effective.push(slot.clone()),
                Wanted::Only(list) => effective.extend(list.iter().filter_map(|(_, own)| intersect(slot, own))),
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

fn intersect(granted: &Slot, declared: &Slot) -> Option<Slot> {
    if granted.method != declared.method || granted.place != declared.place {
        return None;
    }
    let path = granted.path.intersect(&declared.path)?;
    let takes: Vec<String> = granted.takes.iter().filter(|name| declared.takes.contains(name)).cloned().collect();
    let slot = Slot { method: granted.method.clone(), path, place: granted.place.clone(), takes };
    (!slot.takes.is_empty()).then_some(slot)
}
