//! Compares a guest's needs with the grants of a policy, for `check` and `inspect`: what the guest
//! asks for, which grants serve it, what is missing, and the lines to add to the policy.

use serde_json::{Value, json};

use super::Policy;
use super::expose::Expose;
use super::grant::Grant;
use super::needs::{NeedOrigin, Needs, ResolvedNeed, Restriction, declared_slots};
use super::operations::Operations;
use super::origin::OriginSpec;
use super::place::Place;
use super::slots::Slot;
use super::suggested_grant::{complete, free_id, slot_json};

/// The needs of a guest compared with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Every need of HTTP requests, in the order in which the guest declares them.
    pub http: Vec<ComparedNeed>,
    /// The properties that the guest declares and that the policy does not show to it.
    pub hidden: Vec<String>,
    /// Those of the hidden properties that hold origins of needs. The guest cannot write its URLs
    /// without them.
    pub hidden_origins: Vec<String>,
    /// The `"expose": […]` that would show them, ready to be pasted into the policy.
    pub expose_line: Option<String>,
    /// The logins that the guest declares and that the policy does not have.
    pub missing_logins: Vec<String>,
    /// The logins of the policy that grants use and that the guest does not declare.
    pub undeclared_logins: Vec<String>,
}

impl Comparison {
    /// Returns the needs that nothing in the policy grants, except optional ones.
    pub fn ungranted(&self) -> impl Iterator<Item = &ComparedNeed> {
        self.http.iter().filter(|need| !need.optional && need.granted_by.is_empty() && !need.is_complete())
    }

    /// Returns true if the guest cannot work with the policy: a need is granted by nothing, the
    /// guest does not see the URL of a server, or it does not declare the login of grants.
    pub fn lacks_something(&self) -> bool {
        self.ungranted().next().is_some() || !self.hidden_origins.is_empty() || !self.undeclared_logins.is_empty()
    }
}

/// One need for HTTP requests, compared with the grants of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedNeed {
    /// The id that the guest gave the need.
    pub id: String,
    /// The origin as the guest declares it, or `*` for any.
    pub to: String,
    /// The author's reason for the need; empty if there is none.
    pub why: String,
    /// The ids of the grants that serve the need, at least in part.
    pub granted_by: Vec<String>,
    /// What no grant allows, one phrase each, such as `POST /v1/servers`.
    pub missing: Vec<String>,
    /// The property that holds the origin of the need, if it is not set or does not hold an origin.
    pub unset_property: Option<String>,
    /// True if the guest works without what the need asks for.
    pub optional: bool,
    /// The grant to add to the policy's `http`, as one line of JSON.
    pub grant_line: Option<String>,
    /// The slots to add to a grant for this origin, as one line of JSON each.
    pub slot_lines: Vec<String>,
    /// What slots of the policy do not show of responses, and the guest asks to see: for each slot, where
    /// it is, and the `"show": […]` that it should have.
    pub show_lines: Vec<String>,
}

impl ComparedNeed {
    /// Returns true if nothing of the need is missing.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.unset_property.is_none()
    }
}

impl Policy {
    /// Compares the policy with `needs`, which must be those that it was resolved with.
    pub fn compare_needs(&self, needs: &Needs) -> Comparison {
        let hidden: Vec<String> =
            needs.expose.iter().filter(|name| !self.expose.shows(name, &Value::Null, Some(needs))).cloned().collect();
        let expose_line = (!hidden.is_empty()).then(|| self.expose_line(&hidden, Some(needs)));
        let http = self.declared.iter().flatten().map(|declared| self.compare_need(declared)).collect();
        let origins: Vec<&String> = needs.http.iter().filter_map(|need| property_of(&need.to)).collect();
        let holds_origin = |hidden: &&String| {
            let below = format!("{hidden}.");
            origins.iter().any(|name| *name == *hidden || name.starts_with(&below))
        };
        let hidden_origins = hidden.iter().filter(holds_origin).cloned().collect();
        let missing_logins = match &needs.logins {
            Restriction::Any => Vec::new(),
            Restriction::Only(names) => names.iter().filter(|name| !self.logins.contains_key(*name)).cloned().collect(),
        };
        let undeclared_logins = self.logins.keys().filter(|name| !self.declares_login(name)).cloned().collect();
        Comparison { http, hidden, hidden_origins, expose_line, missing_logins, undeclared_logins }
    }

    /// Returns the line that shows a property to the guest, ready to be pasted into the policy.
    pub fn line_to_expose(&self, property: &str) -> String {
        self.expose_line(&[property.to_owned()], None)
    }

    /// Returns the `"expose": […]` that shows these properties as well.
    fn expose_line(&self, hidden: &[String], needs: Option<&Needs>) -> String {
        let mut listed = match &self.expose {
            Expose::Listed(listed) => listed.clone(),
            Expose::Declared => needs
                .into_iter()
                .flat_map(|needs| &needs.expose)
                .filter(|name| !hidden.contains(name))
                .cloned()
                .collect(),
        };
        listed.extend(hidden.iter().cloned());
        format!("\"expose\": {}", json!(listed))
    }

    fn compare_need(&self, declared: &ResolvedNeed) -> ComparedNeed {
        let need = &declared.need;
        let to = match &need.to {
            Restriction::Any => "*".to_owned(),
            Restriction::Only(spec) => spec.to_string(),
        };
        let mut compared = ComparedNeed {
            id: need.id.clone(),
            to: to.clone(),
            why: need.why.clone(),
            granted_by: Vec::new(),
            missing: Vec::new(),
            unset_property: None,
            optional: need.optional,
            grant_line: None,
            slot_lines: Vec::new(),
            show_lines: Vec::new(),
        };
        let grants: Vec<&Grant> = match &declared.origin {
            NeedOrigin::Any => self.http.iter().map(AsRef::as_ref).collect(),
            NeedOrigin::Known(origin) => {
                self.http.iter().map(AsRef::as_ref).filter(|grant: &&Grant| grant.origin.covers(origin)).collect()
            }
            NeedOrigin::Unset => Vec::new(),
        };
        let serves = |grant: &&&Grant| {
            let method = grant.methods.iter().any(|method| need.wants_method(method));
            let operation = match (&grant.operations, &need.operations) {
                (None, _) | (Some(_), Restriction::Any) => true,
                (Some(_), Restriction::Only(None)) => false,
                (Some(granted), Restriction::Only(Some(needed))) => {
                    granted.place == needed.place && granted.allow.iter().any(|name| needed.allow.contains(name))
                }
            };
            method && operation && grant.paths.iter().any(|a| declared.paths().any(|(_, b)| a.intersect(&b).is_some()))
        };
        compared.granted_by = grants.iter().filter(serves).map(|grant| grant.id.clone()).collect();
        match &declared.origin {
            // It asks for nothing in particular, so nothing in particular is missing.
            NeedOrigin::Any => return compared,
            NeedOrigin::Unset => compared.unset_property = property_of(&need.to).cloned(),
            NeedOrigin::Known(_) => {}
        }
        let missing = missing_requests(declared, &grants);
        compared.missing.extend(missing.phrases.iter().cloned());
        self.suggest(declared, missing, &mut compared);
        let suggested = compared.grant_line.as_deref().and_then(|line| serde_json::from_str::<Value>(line).ok());
        for slot in missing_slots(declared, &grants) {
            compared.missing.push(format!("a slot in {} at `{}`", slot.requests(), slot.place));
            let line = slot_json(slot);
            let has_it = |grant: &Value| grant["slots"].as_array().is_some_and(|slots| slots.contains(&line));
            if !suggested.as_ref().is_some_and(has_it) {
                compared.slot_lines.push(line.to_string());
            }
        }
        for IncompleteSlot { slot, hidden, show } in incomplete_slots(declared, &grants) {
            let at = slot.requests();
            compared.missing.push(format!("{} of the response to {at}", hidden.join(", ")));
            compared.show_lines.push(format!("the slot of {at} at `{}`: \"show\": {}", slot.place, json!(show)));
        }
        compared
    }

    /// Adds the grant for requests that no grant covers.
    fn suggest(&self, declared: &ResolvedNeed, missing: Missing, compared: &mut ComparedNeed) {
        let Missing { methods, paths, operations, .. } = missing;
        if methods.is_empty() {
            return;
        }
        let id = free_id(&compared.id, &|id| self.http.iter().any(|grant| grant.id == id));
        let mut grant = json!({"id": id, "to": compared.to, "methods": methods, "paths": paths});
        if let Some(operations) = operations {
            grant["operations"] = operations.to_json();
        }
        let same_origin =
            |grant: &Grant| matches!(&declared.origin, NeedOrigin::Known(origin) if grant.origin == *origin);
        let same_host =
            |grant: &Grant| matches!(&declared.origin, NeedOrigin::Known(origin) if grant.origin.host == origin.host);
        compared.grant_line = Some(complete(grant, declared, &self.http, &same_origin, &same_host).to_string());
    }
}

/// The requests of a need that no grant covers.
struct Missing {
    methods: Vec<String>,
    paths: Vec<String>,
    /// The operations that some of these requests lack; `None` if the need lists none.
    operations: Option<Operations>,
    /// One phrase for each method and path, such as `POST /v1/servers`, with the operations that are missing.
    phrases: Vec<String>,
}

/// Returns the methods, paths and operations that no grant covers.
fn missing_requests(declared: &ResolvedNeed, grants: &[&Grant]) -> Missing {
    let (mut methods, mut paths, mut phrases) = (Vec::new(), Vec::new(), Vec::new());
    let mut lacking: Vec<String> = Vec::new();
    let needed = match &declared.need.operations {
        Restriction::Only(Some(needed)) => Some(needed),
        Restriction::Only(None) | Restriction::Any => None,
    };
    let wanted = match &declared.need.methods {
        Restriction::Only(list) => list.clone(),
        // Any method will do; reading is where to start.
        Restriction::Any if grants.is_empty() => vec!["GET".to_owned()],
        Restriction::Any => Vec::new(),
    };
    for method in wanted {
        for (path, whole) in declared.paths() {
            let covers = |grant: &&&Grant| {
                grant.methods.contains(&method) && grant.paths.iter().any(|granted| granted.covers(&whole))
            };
            let covering: Vec<Option<&Operations>> =
                grants.iter().filter(covers).map(|grant| grant.operations.as_ref()).collect();
            let phrase = match needed {
                None if covering.iter().any(|granted| covers_all(*granted, &declared.need.operations)) => continue,
                None => format!("{method} {path}"),
                Some(needed) => {
                    let missing = missing_operations(needed, &covering);
                    if missing.is_empty() {
                        continue;
                    }
                    let phrase = format!("{method} {path} ({})", missing.join(", "));
                    lacking.extend(missing);
                    phrase
                }
            };
            phrases.push(phrase);
            methods.push(method.clone());
            paths.push(path.to_string());
        }
    }
    for list in [&mut methods, &mut paths, &mut lacking] {
        let mut seen: Vec<String> = Vec::new();
        list.retain(|item| {
            !seen.contains(item) && {
                seen.push(item.clone());
                true
            }
        });
    }
    let operations = needed.map(|needed| Operations { allow: lacking, ..needed.clone() });
    Missing { methods, paths, operations, phrases }
}

/// Returns the operations of a need that none of the grants for its requests allows.
fn missing_operations(needed: &Operations, covering: &[Option<&Operations>]) -> Vec<String> {
    let allows = |granted: &Option<&Operations>, name: &String| {
        granted.is_none_or(|granted| granted.place == needed.place && granted.allow.contains(name))
    };
    let missing = |name: &&String| !covering.iter().any(|granted| allows(granted, name));
    needed.allow.iter().filter(missing).cloned().collect()
}

/// Returns the property that an origin takes its host from.
fn property_of(to: &Restriction<OriginSpec>) -> Option<&String> {
    match to {
        Restriction::Only(spec) => spec.property(),
        Restriction::Any => None,
    }
}

/// A slot that is granted, but does not show all that the guest asks to see of the response.
struct IncompleteSlot<'a> {
    slot: &'a Slot,
    hidden: Vec<String>,
    /// All places that the slot should show.
    show: Vec<String>,
}

fn incomplete_slots<'a>(declared: &'a ResolvedNeed, grants: &[&Grant]) -> Vec<IncompleteSlot<'a>> {
    let Restriction::Only(list) = declared.slots() else { return Vec::new() };
    let compare = |(own, slot): (&'a Slot, Slot)| {
        let granted = grants.iter().flat_map(|grant| declared_slots(grant, std::slice::from_ref(declared)));
        let granted = granted.filter(|granted| granted.takes_the_same(&slot)).collect::<Vec<Slot>>();
        let mut show: Vec<String> = granted.first()?.show.iter().map(ToString::to_string).collect();
        let is_hidden = |place: &&Place| !granted.iter().any(|granted| granted.show.contains(place));
        let hidden: Vec<String> = own.show.iter().filter(is_hidden).map(ToString::to_string).collect();
        show.extend(hidden.iter().cloned());
        (!hidden.is_empty()).then_some(IncompleteSlot { slot: own, hidden, show })
    };
    list.into_iter().filter_map(compare).collect()
}

fn missing_slots<'a>(declared: &'a ResolvedNeed, grants: &[&Grant]) -> Vec<&'a Slot> {
    let Restriction::Only(list) = declared.slots() else { return Vec::new() };
    let granted = |slot: &Slot| {
        grants.iter().any(|grant| {
            declared_slots(grant, std::slice::from_ref(declared)).iter().any(|effective| effective.takes_the_same(slot))
        })
    };
    list.into_iter().filter(|(_, slot)| !granted(slot)).map(|(declared, _)| declared).collect()
}

/// Returns true if a grant with these operations serves a need that lists none: one that declares every operation, or
/// one for grants without operations.
fn covers_all(granted: Option<&Operations>, needed: &Restriction<Option<Operations>>) -> bool {
    granted.is_none() || *needed == Restriction::Any
}
