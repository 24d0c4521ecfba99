//! Warns about grants by which a later call could read agent settings back.

use super::grant::Grant;
use super::origin::Origin;
use super::problem::Problems;
use super::responses::hidden_places;
use super::slots::AGENT;
use crate::path::PathPattern;
use crate::place::Place;

/// Adds a warning for each grant that writes agent settings to an origin from which a later call
/// could read them back: if no grant of the origin has `drop`, if a grant without it reads what is created, or if a
/// grant reads consoles and no dropped place is for them. `written` holds the grants with their keys in the file.
pub(super) fn warn_about_read_back(written: &[(String, &Grant)], warnings: &Problems) {
    for (at, writer) in written.iter().filter(|(_, grant)| grant.writes_settings) {
        let same = || written.iter().map(|(_, grant)| *grant).filter(|grant| overlap(&grant.origin, &writer.origin));
        let readable = |grant: &&Grant| reads(grant);
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
        for (at, reader) in written.iter().filter(|(_, grant)| overlap(&grant.origin, &writer.origin) && reads(grant)) {
            let console = console_of(reader).filter(|_| !dropped.iter().any(is_at_root));
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

/// Returns true if the responses to some requests of a grant show what exists.
fn reads(grant: &Grant) -> bool {
    let by_operation = grant.operations.as_ref().is_some_and(|operations| !operations.read_only.is_empty());
    by_operation || grant.methods.iter().any(|method| method == "GET")
}

/// Returns the path or the operation of a grant that reads consoles, if there is one.
fn console_of(grant: &Grant) -> Option<String> {
    let path = grant.paths.iter().find(|path| is_console(path)).map(ToString::to_string);
    let mut operations = grant.operations.iter().flat_map(|operations| &operations.allow);
    path.or_else(|| operations.find(|name| name.to_ascii_lowercase().contains("console")).cloned())
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
