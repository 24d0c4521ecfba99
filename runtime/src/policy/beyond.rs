//! What one version of a module wants beyond another: needs against needs.
//!
//! By meaning, not by text: what an older need covers under any id is no more,
//! a wider pattern is. Where that cannot be told, it counts as more. `*` covers
//! everything. Knows neither grants nor properties.

use std::fmt;

use serde_json::{Value, json};

use super::head::METHODS;
use super::needs::{Need, Needs, Wanted};
use super::origin::OriginSpec;
use super::slots::Slot;

/// One thing that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// No needs at all: the module does not bind itself.
    Undeclared,
    /// Requests of a need.
    Http {
        need: String,
        to: String,
        methods: Vec<String>,
        path: String,
    },
    /// A place where seals become values.
    Slot {
        need: String,
        to: String,
        method: String,
        path: String,
        place: String,
        takes: Vec<String>,
    },
    /// Whatever slots the operator grants.
    AnySlot {
        need: String,
        to: String,
    },
    Registry,
    Image,
    /// To see a property as it is.
    Property(String),
}

/// What `new` wants and `old` does not. A module without needs binds itself to
/// nothing, so that one which used to have them wants more.
pub fn beyond(new: Option<&Needs>, old: Option<&Needs>) -> Vec<Want> {
    let nothing = Needs::default();
    let (new, old) = match (new, old) {
        (None, None) => return Vec::new(),
        (None, Some(_)) => return vec![Want::Undeclared],
        (Some(new), old) => (new, old.unwrap_or(&nothing)),
    };
    let mut more = Vec::new();
    for need in &new.http {
        let older: Vec<&Need> = old.http.iter().filter(|older| covers_origin(&older.to, &need.to)).collect();
        requests(need, &older, &mut more);
        slots(need, &older, &mut more);
    }
    for (wants, had, want) in [(new.registry, old.registry, Want::Registry), (new.image, old.image, Want::Image)] {
        if wants && !had {
            more.push(want);
        }
    }
    let shown = |name: &&String| {
        old.expose.iter().any(|had| {
            name.strip_prefix(had.as_str()).is_some_and(|rest| matches!(rest.bytes().next(), None | Some(b'.')))
        })
    };
    more.extend(new.expose.iter().filter(|name| !shown(name)).cloned().map(Want::Property));
    more
}

fn covers_origin(old: &Wanted<OriginSpec>, new: &Wanted<OriginSpec>) -> bool {
    match (old, new) {
        (Wanted::Whatever, _) => true,
        (Wanted::Only(_), Wanted::Whatever) => false,
        (Wanted::Only(old), Wanted::Only(new)) => old.covers(new),
    }
}

fn requests(need: &Need, older: &[&Need], more: &mut Vec<Want>) {
    for path in &need.paths {
        let covered = |method: &str| {
            older.iter().any(|older| older.wants_method(method) && older.paths.iter().any(|had| had.covers(path)))
        };
        let methods: Vec<&str> =
            METHODS.into_iter().filter(|method| need.wants_method(method) && !covered(method)).collect();
        if methods.is_empty() {
            continue;
        }
        let all = need.methods == Wanted::Whatever && methods.len() == METHODS.len();
        let methods = if all { vec!["*"] } else { methods };
        more.push(Want::Http {
            need: need.id.clone(),
            to: to(need),
            methods: methods.into_iter().map(str::to_owned).collect(),
            path: path.to_string(),
        });
    }
}

fn slots(need: &Need, older: &[&Need], more: &mut Vec<Want>) {
    if older.iter().any(|older| older.slots == Wanted::Whatever) {
        return;
    }
    let Wanted::Only(wanted) = &need.slots else {
        more.push(Want::AnySlot { need: need.id.clone(), to: to(need) });
        return;
    };
    let had: Vec<&Slot> = older
        .iter()
        .filter_map(|older| match &older.slots {
            Wanted::Only(list) => Some(list),
            Wanted::Whatever => None,
        })
        .flatten()
        .collect();
    for slot in wanted {
        let same = |had: &&&Slot| had.method == slot.method && had.place == slot.place && had.path.covers(&slot.path);
        let taken = |name: &&String| had.iter().filter(same).any(|had| had.takes.contains(name));
        let takes: Vec<String> = slot.takes.iter().filter(|name| !taken(name)).cloned().collect();
        if !takes.is_empty() {
            let (method, place) = (slot.method.clone(), slot.place.to_string());
            more.push(Want::Slot {
                need: need.id.clone(),
                to: to(need),
                method,
                path: slot.path.to_string(),
                place,
                takes,
            });
        }
    }
}

fn to(need: &Need) -> String {
    match &need.to {
        Wanted::Whatever => "*".to_owned(),
        Wanted::Only(spec) => spec.to_string(),
    }
}

impl Want {
    pub fn to_json(&self) -> Value {
        match self {
            Want::Undeclared => json!({"kind": "undeclared"}),
            Want::Http { need, to, methods, path } => {
                json!({"kind": "http", "need": need, "to": to, "methods": methods, "path": path})
            }
            Want::Slot { need, to, method, path, place, takes } => {
                json!({"kind": "slot", "need": need, "to": to, "method": method, "path": path, "place": place, "takes": takes})
            }
            Want::AnySlot { need, to } => json!({"kind": "slot", "need": need, "to": to, "place": "*"}),
            Want::Registry => json!({"kind": "registry"}),
            Want::Image => json!({"kind": "image"}),
            Want::Property(name) => json!({"kind": "property", "name": name}),
        }
    }
}

impl fmt::Display for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Want::Undeclared => {
                f.write_str("declares no needs: with `trust_undeclared` in the policy it may use every grant")
            }
            Want::Http { need, to, methods, path } => {
                write!(f, "need `{need}`: {} {path} at {to}", methods.join(" "))
            }
            Want::Slot { need, to, method, path, place, takes } => {
                write!(f, "need `{need}`: {} in {method} {path} at {to}, at `{place}`", takes.join(" "))
            }
            Want::AnySlot { need, to } => write!(f, "need `{need}`: whatever slots are granted at {to}"),
            Want::Registry => f.write_str("the registry"),
            Want::Image => f.write_str("the stemcell image"),
            Want::Property(name) => write!(f, "to see the property `{name}`"),
        }
    }
}
