//! What a grant says about single values of its messages: the slots in which seals are replaced
//! by secrets, and the captures that turn values of responses into seals.

use super::Policy;
use super::object_reader::{IDENT, ObjectReader, is_ident, kind, printable};
use super::operations;
use super::path::{Base, PathError, PathPattern};
use super::problem::{PolicyProblem, Problems};
use super::request_head::METHODS;
use super::responses;
use super::template::is_property_path;
use crate::place::Place;
use serde_json::Value;
use wasm_cpi_checks::Check;

/// The name of the agent settings in the `takes` of a slot. No capture can have this name.
pub const AGENT: &str = "agent";

/// A place in requests where the guest may put a seal, which the host replaces by the secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The method of the requests, in upper case.
    pub method: String,
    /// The paths of the requests.
    pub path: PathPattern,
    /// The operation of the requests; `None` for all of them.
    pub operation: Option<String>,
    /// The place in the request. It is never a cookie.
    pub place: Place,
    /// The names of the secrets that may be put there: [`AGENT`], properties and captures.
    pub takes: Vec<String>,
    /// The places of the response that the guest sees beside its status, if the slot was filled. In a
    /// need: those that the guest asks to see.
    /// `*` in a pointer stands for any list element.
    pub show: Vec<Place>,
    /// The largest agent settings that the server accepts, in bytes as they are sent.
    pub max_bytes: Option<u64>,
}

/// A place in responses whose value is a secret: the guest gets a seal instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The method of the requests whose responses are captured, in upper case.
    pub method: String,
    /// The paths of those requests.
    pub path: PathPattern,
    /// The place in the response. It is never a field of a form.
    pub place: Place,
    /// The name by which slots take the captured value.
    pub name: String,
}

impl Policy {
    /// Returns the smallest `max_bytes` of the slots that take agent settings and that the guest
    /// declares.
    pub fn agent_max_bytes(&self) -> Option<u64> {
        let slots = self.http.iter().flat_map(|grant| &grant.slots);
        slots.filter(|slot| slot.takes.iter().any(|name| name == AGENT)).filter_map(|slot| slot.max_bytes).min()
    }
}

/// The messages of a grant, and the place in them, that a slot or capture is about.
struct Spot {
    method: String,
    path: PathPattern,
    place: Place,
}

impl Spot {
    fn read(reader: &mut ObjectReader<'_>) -> Option<Spot> {
        let method = reader
            .required_text("method", "POST")
            .and_then(|text| method(text, &reader.at("method"), reader.problems()));
        let path = reader
            .required_text("path", "/v1/servers")
            .and_then(|text| path(text, &reader.at("path"), reader.problems()));
        let place = place(reader, "place");
        if let Some(Place::Json(tokens)) = &place {
            reader.ensure(Check::PointerWildcard, !tokens.iter().any(|token| token == responses::ANY), "place", || {
                let what = "has a `*`, which stands for all elements in `show`, `drop` and `fields` only";
                (what, "write one entry for each place, or use `drop`")
            });
        }
        Some(Spot { method: method?, path: path?, place: place? })
    }
}

impl Slot {
    /// Returns the slot with `base` put before its path.
    pub(super) fn below(&self, base: &Base) -> Slot {
        Slot { path: self.path.below(base), ..self.clone() }
    }

    /// Returns true for the requests that the slot is for. `operation` is that of the request, if its grant
    /// lists operations.
    pub fn applies_to(&self, method: &str, path: &str, operation: Option<&str>) -> bool {
        self.method == method && self.path.matches(path) && self.is_for_operation(operation)
    }

    /// Returns the requests of the slot as messages name them, such as `POST /v1/servers`.
    pub(super) fn requests(&self) -> String {
        let operation = self.operation.iter().map(|name| format!(" ({name})")).collect::<String>();
        format!("{} {}{operation}", self.method, self.path)
    }

    /// Returns true if the slot is for requests with this operation.
    pub(super) fn is_for_operation(&self, operation: Option<&str>) -> bool {
        self.operation.is_none() || self.operation.as_deref() == operation
    }

    /// Returns true if both slots take the same secrets at the same place. What a response shows and
    /// how large settings may be is up to the grant alone.
    pub(super) fn takes_the_same(&self, other: &Slot) -> bool {
        let requests = |slot: &Slot| (slot.method.clone(), slot.path.clone(), slot.operation.clone());
        requests(self) == requests(other) && self.place == other.place && self.takes == other.takes
    }

    /// Reads the slots of a grant, which also say how large settings may be.
    pub(super) fn of_grant(parent: &mut ObjectReader<'_>) -> Vec<Slot> {
        Slot::read_all(parent, &read_max_bytes)
    }

    /// Reads the slots of a need.
    pub(super) fn of_need(parent: &mut ObjectReader<'_>) -> Vec<Slot> {
        Slot::read_all(parent, &|_, _| None)
    }

    fn read_all(
        parent: &mut ObjectReader<'_>,
        read_max_bytes: &dyn Fn(&mut ObjectReader<'_>, &[String]) -> Option<u64>,
    ) -> Vec<Slot> {
        let list = parent.list("slots");
        let read = |(at, value)| {
            let mut reader = ObjectReader::open(value, at, parent.problems())?;
            let spot = Spot::read(&mut reader);
            let operation = operations::read_name(&mut reader, "operation");
            match &spot {
                Some(Spot { place: Place::Cookie(_), .. }) => {
                    let remedy = "use a header, field or the body";
                    reader.problem("place", "is a cookie, which requests do not carry", remedy);
                }
                Some(Spot { place: Place::Xml(element), .. }) => {
                    reader.ensure(Check::SlotElement, element.starts_with('/'), "place", || {
                        let what = "names an element at any depth, so a guest could choose where the secret is written";
                        (what, format!("write the path from the root, like `xml:/Envelope/Body/Create/{element}`"))
                    });
                }
                _ => {}
            }
            let takes = takes(&mut reader);
            let show = responses::read_places(&mut reader, "show");
            let max_bytes = read_max_bytes(&mut reader, &takes);
            if let Some(spot) = &spot {
                let is_for_settings = takes.iter().any(|name| name == AGENT);
                let of_settings = |shown: &Place| is_for_settings && responses::shows_settings(shown);
                let echoed = show.iter().any(|shown| responses::shows(shown, &spot.place) || of_settings(shown));
                reader.ensure(Check::ShownSlot, !echoed, "show", || {
                    let what = "shows the slot itself, or what could be a part of it, so a server that echoes it would reveal the \
                                secret";
                    (what, "list other places; for a slot that is the body, list headers only")
                });
            }
            reader.close();
            spot.map(|Spot { method, path, place }| Slot { method, path, operation, place, takes, show, max_bytes })
        };
        list.into_iter().filter_map(read).collect()
    }
}

impl Capture {
    /// Returns true for the requests whose responses the capture is for. The headers of a response to
    /// HEAD are those of GET.
    pub fn applies_to(&self, method: &str, path: &str) -> bool {
        self.is_for_method(method) && self.path.matches(path)
    }

    pub(super) fn is_for_method(&self, method: &str) -> bool {
        self.method == method || (method == "HEAD" && self.method == "GET")
    }

    /// Returns the capture with `base` put before its path.
    pub(super) fn below(&self, base: &Base) -> Capture {
        Capture { path: self.path.below(base), ..self.clone() }
    }

    pub(super) fn read_all(parent: &mut ObjectReader<'_>) -> Vec<Capture> {
        let list = parent.list("captures");
        let read = |(at, value)| {
            let mut reader = ObjectReader::open(value, at, parent.problems())?;
            let spot = Spot::read(&mut reader);
            if let Some(Spot { place: Place::Form(_) | Place::Part(_), .. }) = spot {
                reader.problem(
                    "place",
                    "is a form field, which responses do not have",
                    "use header:, cookie:, json: or xml:",
                );
            }
            let name = reader.required_text("as", "token");
            let is_name = |name: &str| is_ident(name) && Check::CaptureName.accepts(name != AGENT);
            if name.is_some_and(|name| !is_name(name)) {
                let remedy = format!("{IDENT}, and not `{AGENT}`");
                reader.refused(Some(Check::CaptureName), "as", "is not a valid name of a capture", remedy);
            }
            reader.close();
            let Spot { method, path, place } = spot?;
            Some(Capture { method, path, place, name: name?.to_owned() })
        };
        list.into_iter().filter_map(read).collect()
    }
}

fn takes(reader: &mut ObjectReader<'_>) -> Vec<String> {
    if reader.value("takes").is_none() {
        return vec![AGENT.to_owned()];
    }
    let mut takes: Vec<String> = Vec::new();
    for (at, name) in reader.required_texts("takes", AGENT) {
        if !is_property_path(name) {
            reader.problems().add(
                at,
                "is not the name of a property or capture",
                "write `agent` or the name alone, without `${}`",
            );
        } else if takes.iter().any(|taken| taken == name) {
            reader.problems().add(at, format!("names `{name}` again"), "remove it");
        } else {
            takes.push(name.to_owned());
        }
    }
    takes
}

pub(super) fn place(reader: &mut ObjectReader<'_>, key: &'static str) -> Option<Place> {
    let text = reader.required_text(key, "json:/server/user_data")?;
    match text.parse::<Place>() {
        Ok(place) => Some(place),
        Err(error) => {
            let remedy = "write `header:X`, `json:/a/b`, `form:F`, `xml:/R/E`, `part:N`, `cookie:C` or `body`";
            reader.refused(error.check(), key, format!("is not a place: {}", printable(&error.to_string())), remedy);
            None
        }
    }
}

pub(super) fn method(text: &str, at: &str, problems: &Problems) -> Option<String> {
    if METHODS.contains(&text) {
        return Some(text.to_owned());
    }
    problems.add(at, "is not an HTTP method that can be granted", format!("write one of {}", METHODS.join(", ")));
    None
}

pub(super) fn path(text: &str, at: &str, problems: &Problems) -> Option<PathPattern> {
    let problem = |error: PathError| PolicyProblem {
        check: error.check(),
        ..PolicyProblem::new(at, error.to_string(), error.remedy())
    };
    PathPattern::parse(text).map_err(|error| problems.push(problem(error))).ok()
}

/// Reads the largest size of agent settings that a slot accepts.
fn read_max_bytes(reader: &mut ObjectReader<'_>, takes: &[String]) -> Option<u64> {
    let value = reader.value("max_bytes")?;
    let bytes = value.as_u64().filter(|bytes| (1..=u64::from(u32::MAX)).contains(bytes));
    match (bytes, value) {
        (None, Value::Number(_)) => {
            reader.problem("max_bytes", "is not a positive number of bytes", "write it like 65535")
        }
        (None, other) => {
            reader.problem("max_bytes", format!("is {}", kind(other)), "write a number of bytes, like 65535")
        }
        (Some(_), _) if !takes.iter().any(|name| name == AGENT) => {
            reader.problem("max_bytes", "is for agent settings, which the slot does not take", "remove it");
        }
        _ => {}
    }
    bytes
}
