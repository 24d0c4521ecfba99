//! What a guest sees of the responses of an origin, and what it may ask for in queries.
//!
//! A slot lists the places of a response that it shows, and a grant lists the places that it drops.
//! Where a grant has slots, captures or `drop`, servers know values that the guest must not learn,
//! and many servers filter by the parameters of a query. So such an origin accepts only the
//! parameters that the grant lists.

use serde_json::Value;

use super::Policy;
use super::grant::Grant;
use super::object_reader::{ObjectReader, kind, printable};
use super::origin::Origin;
use super::problem::Problems;
use super::slots::{AGENT, Capture};
use crate::destination::Destination;
use crate::invisible::is_invisible;
use crate::path::PathPattern;
use crate::place::Place;

/// The name of any list element in the pointers of `show`, and of any list element or object member
/// in those of `drop`.
pub const ANY: &str = "*";

/// What the grants of an origin hide in its responses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HiddenPlaces {
    /// True if a grant of the origin has slots, captures or `drop`, whether the guest declares
    /// them or not.
    pub hides_values: bool,
    /// The places that any grant of the origin drops.
    pub drop: Vec<Place>,
    /// The captures of all grants of the origin, for their methods and paths.
    pub captures: Vec<Capture>,
}

impl Policy {
    /// Returns what the grants of the destination's origin hide in its responses. All grants count,
    /// because a guest chooses the grant by the path of its request.
    pub fn hidden_places(&self, destination: &Destination) -> HiddenPlaces {
        hidden_places(self.http.iter().map(AsRef::as_ref).filter(|grant| grant.origin.matches(destination)))
    }

    /// Returns the smallest `max_bytes` of the slots that take agent settings and that the guest
    /// declares.
    pub fn agent_max_bytes(&self) -> Option<u64> {
        let slots = self.http.iter().flat_map(|grant| &grant.slots);
        slots.filter(|slot| slot.takes.iter().any(|name| name == AGENT)).filter_map(|slot| slot.max_bytes).min()
    }
}

fn hidden_places<'a>(grants: impl Iterator<Item = &'a Grant>) -> HiddenPlaces {
    let mut found = HiddenPlaces::default();
    for grant in grants {
        found.hides_values |= grant.hides_values;
        found.captures.extend(grant.captures.iter().cloned());
        for place in grant.drop.iter().filter(|place| !found.drop.contains(place)).cloned().collect::<Vec<_>>() {
            found.drop.push(place);
        }
    }
    found
}

/// Adds a warning for each grant that writes agent settings to an origin from which a later call
/// could read them back: if no grant of the origin has `drop`, if a grant without it reads what is created, or if a
/// grant reads consoles and no dropped place is for them. `written` holds the grants with their keys in the file.
pub(super) fn warn_about_read_back(written: &[(String, &Grant)], warnings: &Problems) {
    for (at, writer) in written.iter().filter(|(_, grant)| grant.writes_settings) {
        let same = || written.iter().map(|(_, grant)| *grant).filter(|grant| overlap(&grant.origin, &writer.origin));
        let readable = |grant: &&Grant| grant.methods.iter().any(|method| method == "GET");
        let dropped = hidden_places(same()).drop;
        if let Some(reader) = same().find(readable)
            && dropped.is_empty()
        {
            warnings.add(
                format!("{at}.drop"),
                format!(
                    "is missing: the grant writes agent settings, and a later call could read them back by grant `{}`",
                    reader.id
                ),
                "list the places where responses of this origin show them, like \"drop\": [\"json:/server/user_data\"]",
            );
            continue;
        }
        let reads_created = |grant: &Grant| {
            let mut slots = writer.slots.iter().filter(|slot| slot.takes.iter().any(|name| name == AGENT));
            slots.any(|slot| grant.paths.iter().any(|path| is_at_or_below(path, &slot.path)))
        };
        for (at, reader) in
            written.iter().filter(|(_, grant)| overlap(&grant.origin, &writer.origin) && readable(grant))
        {
            let console = reader.paths.iter().find(|path| is_console(path)).filter(|_| !dropped.iter().any(is_at_root));
            if let Some(path) = console {
                warnings.add(
                    format!("{at}.drop"),
                    format!(
                        "has no place for `{path}`, and consoles show agent settings, which grant `{}` writes",
                        writer.id
                    ),
                    "do not grant it, or list the place that holds its text, like \"drop\": [\"json:/output\"]",
                );
            } else if reader.drop.is_empty() && reads_created(reader) {
                warnings.add(
                    format!("{at}.drop"),
                    format!("is missing: the grant reads what grant `{}` creates with agent settings", writer.id),
                    "list the places where its responses show them, like \"drop\": [\"json:/server/user_data\"]",
                );
            }
        }
    }
}

/// Returns true if a pattern matches the path of a slot, or paths below it.
fn is_at_or_below(path: &PathPattern, slot: &PathPattern) -> bool {
    let below = PathPattern::parse(&format!("{}/**", slot.to_string().trim_end_matches("/**").trim_end_matches('/')));
    below.is_ok_and(|below| below.intersect(path).is_some())
}

/// Returns true for a path that names the output of a VM, which often shows its user-data.
fn is_console(path: &PathPattern) -> bool {
    let text = path.to_string().to_ascii_lowercase();
    text.rsplit('/').any(|segment| ["console", "logs", "output", "serial"].iter().any(|word| segment.contains(word)))
}

/// Returns true for a place that is a whole field of the response, or an element at any depth.
fn is_at_root(place: &Place) -> bool {
    match place {
        Place::Json(tokens) => tokens.len() == 1,
        Place::Xml(_) => true,
        _ => false,
    }
}

fn overlap(one: &Origin, other: &Origin) -> bool {
    one.covers(other) || other.covers(one)
}

/// Returns the query parameter of a request that is not in the list, if there is one. Old servers
/// take `;` for a separator as well, so a query must not hold it.
pub(super) fn unlisted_parameter(query: Option<&str>, listed: &[String]) -> Option<String> {
    let query = query.unwrap_or_default();
    let mut names = url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name.into_owned());
    let unlisted = names.find(|name| !listed.contains(name));
    unlisted.or_else(|| query.contains(';').then(|| ";".to_owned()))
}

/// Reads the places of a response at `key`, which may have `*` in their JSON pointers.
pub(super) fn read_places(reader: &mut ObjectReader<'_>, key: &'static str) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    for (at, text) in reader.texts(key) {
        match text.parse::<Place>() {
            Ok(Place::Xml(element)) if element.starts_with('/') => {
                reader.problems().add(
                    at,
                    "is an element's path, and elements of responses are found by their names",
                    PLACES,
                );
            }
            Ok(place @ (Place::Json(_) | Place::Xml(_) | Place::Header(_))) if !places.contains(&place) => {
                places.push(place);
            }
            Ok(Place::Json(_) | Place::Xml(_) | Place::Header(_)) => {
                reader.problems().add(at, "names a place again", "remove it");
            }
            Ok(_) => reader.problems().add(at, "is not a place that is cut out of a response", PLACES),
            Err(error) => {
                let what = format!("is not a place: {}", printable(&error.to_string()));
                reader
                    .problems()
                    .push(super::PolicyProblem { check: error.check(), ..super::PolicyProblem::new(at, what, PLACES) });
            }
        }
    }
    places
}

const PLACES: &str = "write `json:/a/*/b`, `xml:E` or `header:X`";

/// Reads the names of query parameters; `None` if the grant does not list any.
pub(super) fn read_query(reader: &mut ObjectReader<'_>) -> Option<Vec<String>> {
    reader.value("query")?;
    let mut names: Vec<String> = Vec::new();
    for (at, name) in reader.texts("query") {
        let hidden = |c: char| c.is_control() || c.is_whitespace() || is_invisible(c);
        if name.is_empty() || name.contains(hidden) {
            reader.problems().add(at, "is not the name of a parameter", "write its name alone, like \"name\"");
        } else if names.iter().any(|known| known == name) {
            reader.problems().add(at, format!("names `{name}` again"), "remove it");
        } else {
            names.push(name.to_owned());
        }
    }
    Some(names)
}

/// Reads the largest size of agent settings that a slot accepts.
pub(super) fn read_max_bytes(reader: &mut ObjectReader<'_>, takes: &[String]) -> Option<u64> {
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

/// Returns true if a response that shows the first place could show the value at the second one:
/// they are the same, or one is within the other.
pub(super) fn shows(shown: &Place, slot: &Place) -> bool {
    match (shown, slot) {
        (Place::Json(shown), Place::Json(slot)) => {
            shown.iter().zip(slot).all(|(one, other)| one == ANY || one.eq_ignore_ascii_case(other))
        }
        (Place::Xml(shown), Place::Xml(slot)) => {
            // Of a path, the last name is the element's.
            slot.rsplit('/').next().is_some_and(|name| shown.eq_ignore_ascii_case(name))
        }
        (shown, slot) => shown == slot,
    }
}
