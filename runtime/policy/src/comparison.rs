//! Compares a module's needs with the grants of a policy, for `inspect`: what the module asks
//! for, which grants serve it, what is missing, and the lines to add to the policy.

use serde_json::{Value, json};

use super::Policy;
use super::expose::Expose;
use super::grant::Grant;
use super::needs::{NeedOrigin, Needs, ResolvedNeed, Restriction, declared_slots};
use super::paste_ready::free_id;
use super::path::PathPattern;
use super::slots::Slot;

/// The needs of a module compared with a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// Every need of HTTP requests, in the order in which the module declares them.
    pub http: Vec<ComparedNeed>,
    /// The properties that the module declares and that the policy does not show to it.
    pub hidden: Vec<String>,
    /// The `"expose": […]` that would show them, ready to be pasted into the policy.
    pub expose_line: Option<String>,
}

/// One need for HTTP requests, compared with the grants of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedNeed {
    /// The id that the module gave the need.
    pub id: String,
    /// The origin as the module declares it, or `*` for any.
    pub to: String,
    /// The author's reason for the need; empty if there is none.
    pub why: String,
    /// The ids of the grants that serve the need, at least in part.
    pub granted_by: Vec<String>,
    /// What no grant allows, one phrase each, such as `POST /v1/servers`.
    pub missing: Vec<String>,
    /// The grant to add to the policy's `http`, as one line of JSON.
    pub grant_line: Option<String>,
    /// The slots to add to a grant for this origin, as one line of JSON each.
    pub slot_lines: Vec<String>,
}

impl Policy {
    /// Compares the policy with `needs`, which must be those that it was resolved with.
    pub fn compare_needs(&self, needs: &Needs) -> Comparison {
        let hidden: Vec<String> =
            needs.expose.iter().filter(|name| !self.expose.shows(name, &Value::Null, Some(needs))).cloned().collect();
        let expose_line = (!hidden.is_empty()).then(|| {
            let mut listed = match &self.expose {
                Expose::Listed(listed) => listed.clone(),
                Expose::Declared => needs.expose.iter().filter(|name| !hidden.contains(name)).cloned().collect(),
            };
            listed.extend(hidden.iter().cloned());
            format!("\"expose\": {}", json!(listed))
        });
        let http = self.declared.iter().flatten().map(|declared| self.compare_need(declared)).collect();
        Comparison { http, hidden, expose_line }
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
            grant_line: None,
            slot_lines: Vec::new(),
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
            method && grant.paths.iter().any(|a| declared.paths().any(|(_, b)| a.intersect(&b).is_some()))
        };
        compared.granted_by = grants.iter().filter(serves).map(|grant| grant.id.clone()).collect();
        match &declared.origin {
            // It asks for nothing in particular, so nothing in particular is missing.
            NeedOrigin::Any => return compared,
            NeedOrigin::Unset => compared.missing.push(format!("`{to}` is not an origin yet: the property is not set")),
            NeedOrigin::Known(_) => {}
        }
        let (methods, paths) = self.missing_pairs(declared, &grants, &mut compared.missing);
        if !methods.is_empty() {
            let id = free_id(&need.id, &|id| self.http.iter().any(|grant| grant.id == id));
            compared.grant_line = Some(json!({"id": id, "to": to, "methods": methods, "paths": paths}).to_string());
        }
        for slot in missing_slots(declared, &grants) {
            compared.missing.push(format!("a slot in {} {} at `{}`", slot.method, slot.path, slot.place));
            compared.slot_lines.push(slot_line(slot));
        }
        compared
    }

    /// Returns the methods and paths that no grant covers, and adds a phrase for each pair.
    fn missing_pairs(
        &self,
        declared: &ResolvedNeed,
        grants: &[&Grant],
        sentences: &mut Vec<String>,
    ) -> (Vec<String>, Vec<String>) {
        let (mut methods, mut paths): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let wanted = match &declared.need.methods {
            Restriction::Only(list) => list.clone(),
            // Any method will do; reading is where to start.
            Restriction::Any if grants.is_empty() => vec!["GET".to_owned()],
            Restriction::Any => Vec::new(),
        };
        for method in wanted {
            let covered = |path: &PathPattern| {
                grants.iter().any(|grant| {
                    grant.methods.contains(&method) && grant.paths.iter().any(|granted| granted.covers(path))
                })
            };
            for (path, _) in declared.paths().filter(|(_, path)| !covered(path)) {
                sentences.push(format!("{method} {path}"));
                methods.push(method.clone());
                paths.push(path.to_string());
            }
        }
        for list in [&mut methods, &mut paths] {
            let mut seen = Vec::new();
            list.retain(|item| {
                !seen.contains(item) && {
                    seen.push(item.clone());
                    true
                }
            });
        }
        (methods, paths)
    }
}

fn missing_slots<'a>(declared: &'a ResolvedNeed, grants: &[&Grant]) -> Vec<&'a Slot> {
    let Restriction::Only(list) = declared.slots() else { return Vec::new() };
    let granted = |slot: &Slot| {
        grants.iter().any(|grant| {
            declared_slots(&grant.slots, &grant.origin, std::slice::from_ref(declared))
                .iter()
                .any(|effective| effective == slot)
        })
    };
    list.into_iter().filter(|(_, slot)| !granted(slot)).map(|(declared, _)| declared).collect()
}

fn slot_line(slot: &Slot) -> String {
    let (path, place) = (slot.path.to_string(), slot.place.to_string());
    json!({"method": slot.method, "path": path, "place": place, "takes": slot.takes}).to_string()
}
