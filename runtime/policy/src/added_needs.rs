//! Compares the needs of two versions of a guest: what the newer one wants in addition.
//!
//! The comparison is by meaning and not by text. A need that an older need covers, under
//! whatever id, adds nothing; a wider pattern does; `*` covers everything. Where coverage
//! cannot be decided, the need counts as an addition. Grants and properties play no part.

use std::fmt;

use serde_json::{Value, json};

use super::needs::{Need, Needs, Restriction};
use super::object_reader::printable;
use super::operations::Operations;
use super::origin::OriginSpec;
use super::place::Place;
use super::request_head::METHODS;
use super::slots::Slot;

/// One thing that the newer version of a guest wants and the older one did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddedNeed {
    /// The newer guest has no needs section, so it limits itself to nothing.
    Undeclared,
    /// Requests that no older need covers.
    Http {
        /// The id of the newer need.
        need: String,
        /// The origin as the guest declares it, or `*` for any.
        to: String,
        /// The methods that are new for this path, or only `*` if all are.
        methods: Vec<String>,
        /// The declared pattern of paths.
        path: String,
    },
    /// Operations of requests that no older need covers.
    Operations {
        /// The id of the newer need.
        need: String,
        /// The origin as the guest declares it, or `*` for any.
        to: String,
        /// The methods of the requests, or only `*` if all are.
        methods: Vec<String>,
        /// The declared pattern of paths.
        path: String,
        /// Where requests name their operation, such as `form:Action`.
        place: String,
        /// The names of the operations that are new for these requests.
        allow: Vec<String>,
    },
    /// Every operation that the operator grants at an origin.
    AnyOperation {
        /// The id of the newer need.
        need: String,
        /// The origin as the guest declares it, or `*` for any.
        to: String,
    },
    /// A slot: a place in requests where the host replaces a seal by the secret it stands for.
    Slot {
        /// The id of the newer need.
        need: String,
        /// The origin as the guest declares it, or `*` for any.
        to: String,
        /// The method of the requests that have the slot.
        method: String,
        /// The pattern of their paths.
        path: String,
        /// Their operation; `None` for all of them.
        operation: Option<String>,
        /// The place in the request, such as `json:/server/user_data`.
        place: String,
        /// The names of the secrets that are new in this slot.
        takes: Vec<String>,
    },
    /// Places in the responses to requests with a slot, which the guest asks to see.
    Shown {
        /// The id of the newer need.
        need: String,
        /// The origin as the guest declares it, or `*` for any.
        to: String,
        /// The method of the requests that have the slot.
        method: String,
        /// The pattern of their paths.
        path: String,
        /// Their operation; `None` for all of them.
        operation: Option<String>,
        /// The places of the response, such as `json:/server/id`.
        show: Vec<String>,
    },
    /// Every slot that the operator grants at an origin.
    AnySlot {
        /// The id of the newer need.
        need: String,
        /// The origin as the guest declares it, or `*` for any.
        to: String,
    },
    /// Access to registry settings.
    Registry,
    /// Access to the stemcell's image.
    Image,
    /// To read the value of this property, instead of a seal.
    Property(String),
    /// The login of this name.
    Login(String),
    /// Every login that the operator describes.
    AnyLogin,
}

/// Returns what `new` wants and `old` does not. `None` is a guest without a needs section:
/// it limits itself to nothing, so a guest that drops its needs wants more.
pub fn added_needs(new: Option<&Needs>, old: Option<&Needs>) -> Vec<AddedNeed> {
    let nothing = Needs::default();
    let (new, old) = match (new, old) {
        (None, None) => return Vec::new(),
        (None, Some(_)) => return vec![AddedNeed::Undeclared],
        (Some(new), old) => (new, old.unwrap_or(&nothing)),
    };
    let mut more = Vec::new();
    for need in &new.http {
        let older: Vec<&Need> = old.http.iter().filter(|older| covers_origin(&older.to, &need.to)).collect();
        requests(need, &older, &mut more);
        slots(need, &older, &mut more);
    }
    for (wants, had, want) in
        [(new.registry, old.registry, AddedNeed::Registry), (new.image, old.image, AddedNeed::Image)]
    {
        if wants && !had {
            more.push(want);
        }
    }
    let shown = |name: &&String| {
        old.expose.iter().any(|had| {
            name.strip_prefix(had.as_str()).is_some_and(|rest| matches!(rest.bytes().next(), None | Some(b'.')))
        })
    };
    more.extend(new.expose.iter().filter(|name| !shown(name)).cloned().map(AddedNeed::Property));
    match (&new.logins, &old.logins) {
        (_, Restriction::Any) => {}
        (Restriction::Any, Restriction::Only(_)) => more.push(AddedNeed::AnyLogin),
        (Restriction::Only(new), Restriction::Only(old)) => {
            more.extend(new.iter().filter(|name| !old.contains(name)).cloned().map(AddedNeed::Login));
        }
    }
    more
}

fn covers_origin(old: &Restriction<OriginSpec>, new: &Restriction<OriginSpec>) -> bool {
    match (old, new) {
        (Restriction::Any, _) => true,
        (Restriction::Only(_), Restriction::Any) => false,
        (Restriction::Only(old), Restriction::Only(new)) => old.covers(new),
    }
}

fn requests(need: &Need, older: &[&Need], more: &mut Vec<AddedNeed>) {
    for path in &need.paths {
        let covering = |method: &str| -> Vec<&Need> {
            let covers = |older: &&&Need| older.wants_method(method) && older.paths.iter().any(|had| had.covers(path));
            older.iter().filter(covers).copied().collect()
        };
        let wanted = || METHODS.into_iter().filter(|method| need.wants_method(method));
        let listed = |methods: Vec<&str>| -> Vec<String> {
            let all = need.methods == Restriction::Any && methods.len() == METHODS.len();
            let methods = if all { vec!["*"] } else { methods };
            methods.into_iter().map(str::to_owned).collect()
        };
        if let Restriction::Only(Some(operations)) = &need.operations {
            let new = |method: &str| new_operations(operations, &covering(method));
            let methods: Vec<&str> = wanted().filter(|method| !new(method).is_empty()).collect();
            let mut allow: Vec<String> = Vec::new();
            for name in methods.iter().flat_map(|method| new(method)) {
                if !allow.contains(&name) {
                    allow.push(name);
                }
            }
            if !methods.is_empty() {
                let (need_id, place) = (need.id.clone(), operations.place.to_string());
                let (methods, path) = (listed(methods), path.to_string());
                more.push(AddedNeed::Operations { need: need_id, to: to(need), methods, path, place, allow });
            }
            continue;
        }
        let covered =
            |method: &str| covering(method).iter().any(|older| !matches!(older.operations, Restriction::Only(Some(_))));
        let methods: Vec<&str> = wanted().filter(|method| !covered(method)).collect();
        if !methods.is_empty() {
            let (need_id, methods, path) = (need.id.clone(), listed(methods), path.to_string());
            more.push(AddedNeed::Http { need: need_id, to: to(need), methods, path });
        }
    }
    let any = |need: &&&Need| need.operations == Restriction::Any;
    if any(&&need) && !older.iter().any(|older| any(&older)) {
        more.push(AddedNeed::AnyOperation { need: need.id.clone(), to: to(need) });
    }
}

/// Returns the operations that none of the older needs declares for the same requests.
fn new_operations(operations: &Operations, older: &[&Need]) -> Vec<String> {
    let covered = |name: &String| {
        older.iter().any(|older| match &older.operations {
            Restriction::Any => true,
            Restriction::Only(None) => false,
            Restriction::Only(Some(had)) => had.place == operations.place && had.allow.contains(name),
        })
    };
    operations.allow.iter().filter(|name| !covered(name)).cloned().collect()
}

fn slots(need: &Need, older: &[&Need], more: &mut Vec<AddedNeed>) {
    if older.iter().any(|older| older.slots == Restriction::Any) {
        return;
    }
    let Restriction::Only(wanted) = &need.slots else {
        more.push(AddedNeed::AnySlot { need: need.id.clone(), to: to(need) });
        return;
    };
    let had: Vec<&Slot> = older
        .iter()
        .filter_map(|older| match &older.slots {
            Restriction::Only(list) => Some(list),
            Restriction::Any => None,
        })
        .flatten()
        .collect();
    for slot in wanted {
        let same = |had: &&&Slot| {
            let requests = had.method == slot.method && had.path.covers(&slot.path);
            requests && had.place == slot.place && had.is_for_operation(slot.operation.as_deref())
        };
        let taken = |name: &&String| had.iter().filter(same).any(|had| had.takes.contains(name));
        let takes: Vec<String> = slot.takes.iter().filter(|name| !taken(name)).cloned().collect();
        if !takes.is_empty() {
            let (method, place) = (slot.method.clone(), slot.place.to_string());
            more.push(AddedNeed::Slot {
                need: need.id.clone(),
                to: to(need),
                method,
                path: slot.path.to_string(),
                operation: slot.operation.clone(),
                place,
                takes,
            });
        }
        let shown = |place: &&Place| had.iter().filter(same).any(|had| had.show.contains(place));
        let show: Vec<String> = slot.show.iter().filter(|place| !shown(place)).map(ToString::to_string).collect();
        if !show.is_empty() {
            let (method, path) = (slot.method.clone(), slot.path.to_string());
            let operation = slot.operation.clone();
            more.push(AddedNeed::Shown { need: need.id.clone(), to: to(need), method, path, operation, show });
        }
    }
}

fn to(need: &Need) -> String {
    match &need.to {
        Restriction::Any => "*".to_owned(),
        Restriction::Only(spec) => spec.to_string(),
    }
}

/// Adds the operation of a slot to its JSON, if it has one.
fn with_operation(mut added: Value, operation: Option<&str>) -> Value {
    if let Some(operation) = operation {
        added["operation"] = json!(operation);
    }
    added
}

/// Returns the path of a slot with its operation, if it has one.
fn with_name(path: &str, operation: Option<&str>) -> String {
    operation.map_or_else(|| path.to_owned(), |operation| format!("{path} ({operation})"))
}

impl AddedNeed {
    /// Returns the value as a JSON object whose `kind` names the variant, for
    /// programs that read the output of `inspect`.
    pub fn to_json(&self) -> Value {
        match self {
            AddedNeed::Undeclared => json!({"kind": "undeclared"}),
            AddedNeed::Http { need, to, methods, path } => {
                json!({"kind": "http", "need": need, "to": to, "methods": methods, "path": path})
            }
            AddedNeed::Operations { need, to, methods, path, place, allow } => {
                json!({"kind": "operations", "need": need, "to": to, "methods": methods, "path": path, "in": place, "allow": allow})
            }
            AddedNeed::AnyOperation { need, to } => json!({"kind": "operations", "need": need, "to": to, "in": "*"}),
            AddedNeed::Login(name) => json!({"kind": "login", "name": name}),
            AddedNeed::AnyLogin => json!({"kind": "login", "name": "*"}),
            AddedNeed::Slot { need, to, method, path, operation, place, takes } => with_operation(
                json!({"kind": "slot", "need": need, "to": to, "method": method, "path": path, "place": place, "takes": takes}),
                operation.as_deref(),
            ),
            AddedNeed::Shown { need, to, method, path, operation, show } => with_operation(
                json!({"kind": "show", "need": need, "to": to, "method": method, "path": path, "show": show}),
                operation.as_deref(),
            ),
            AddedNeed::AnySlot { need, to } => json!({"kind": "slot", "need": need, "to": to, "place": "*"}),
            AddedNeed::Registry => json!({"kind": "registry"}),
            AddedNeed::Image => json!({"kind": "image"}),
            AddedNeed::Property(name) => json!({"kind": "property", "name": name}),
        }
    }
}

impl fmt::Display for AddedNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddedNeed::Undeclared => {
                f.write_str("declares no needs: with `trust_undeclared` in the policy it may use every grant")
            }
            AddedNeed::Http { need, to, methods, path } => {
                write!(f, "need `{need}`: {} {path} at {to}", methods.join(" "))
            }
            AddedNeed::Slot { need, to, method, path, operation, place, takes } => {
                let path = with_name(path, operation.as_deref());
                write!(f, "need `{need}`: {} in {method} {path} at {to}, at `{place}`", takes.join(" "))
            }
            AddedNeed::Shown { need, to, method, path, operation, show } => {
                let path = with_name(path, operation.as_deref());
                write!(f, "need `{need}`: to see {} of the response to {method} {path} at {to}", show.join(" "))
            }
            AddedNeed::Operations { need, to, methods, path, place, allow } => {
                let (methods, allow) = (methods.join(" "), allow.join(" "));
                write!(
                    f,
                    "need `{need}`: the operations {} in {methods} {path} at {to}, at `{place}`",
                    printable(&allow)
                )
            }
            AddedNeed::AnyOperation { need, to } => write!(f, "need `{need}`: every operation that is granted at {to}"),
            AddedNeed::Login(name) => write!(f, "the login `{name}`"),
            AddedNeed::AnyLogin => f.write_str("every login that the policy describes"),
            AddedNeed::AnySlot { need, to } => write!(f, "need `{need}`: every slot that is granted at {to}"),
            AddedNeed::Registry => f.write_str("the registry"),
            AddedNeed::Image => f.write_str("the stemcell image"),
            AddedNeed::Property(name) => write!(f, "to see the property `{name}`"),
        }
    }
}
