//! Needs against grants, for `inspect`: what the module asks for, what it gets,
//! what is missing and the lines to add.

use serde_json::{Value, json};

use super::Policy;
use super::expose::Expose;
use super::grant::Grant;
use super::hint::free_id;
use super::needs::{Declared, Needs, Target, Wanted, declared_slots};
use super::path::PathPattern;
use super::slots::Slot;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub http: Vec<ComparedNeed>,
    /// Properties that the module would like to see, and does not.
    pub hidden: Vec<String>,
    /// What to write into the policy for them.
    pub expose_line: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedNeed {
    pub id: String,
    /// As declared.
    pub to: String,
    pub why: String,
    /// Grants that serve it, at least in part.
    pub granted_by: Vec<String>,
    /// Sentences.
    pub missing: Vec<String>,
    /// A grant to add to the policy's `http`.
    pub grant_line: Option<String>,
    /// Slots to add to a grant for this origin.
    pub slot_lines: Vec<String>,
}

impl Policy {
    /// Compares with the needs that the policy was resolved with.
    pub fn missing(&self, needs: &Needs) -> Comparison {
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
        let http = self.declared.iter().flatten().map(|declared| self.compare(declared)).collect();
        Comparison { http, hidden, expose_line }
    }

    fn compare(&self, declared: &Declared) -> ComparedNeed {
        debug_assert!(self.settled.is_none(), "only a policy that was read as a whole can be compared");
        let need = &declared.need;
        let to = match &need.to {
            Wanted::Whatever => "*".to_owned(),
            Wanted::Only(spec) => spec.to_string(),
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
        let grants: Vec<&Grant> = match &declared.target {
            Target::Whatever => self.http.iter().map(AsRef::as_ref).collect(),
            Target::Origin(origin) => {
                self.http.iter().map(AsRef::as_ref).filter(|grant: &&Grant| grant.origin.covers(origin)).collect()
            }
            Target::Unset => Vec::new(),
        };
        let serves = |grant: &&&Grant| {
            let method = grant.methods.iter().any(|method| need.wants_method(method));
            method && grant.paths.iter().any(|a| declared.paths().any(|(_, b)| a.intersect(&b).is_some()))
        };
        compared.granted_by = grants.iter().filter(serves).map(|grant| grant.id.clone()).collect();
        match &declared.target {
            // It asks for nothing in particular, so nothing in particular is missing.
            Target::Whatever => return compared,
            Target::Unset => compared.missing.push(format!("`{to}` is no origin yet: the property is not set")),
            Target::Origin(_) => {}
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

    /// The methods and paths that no grant covers, and a sentence on each.
    fn missing_pairs(
        &self,
        declared: &Declared,
        grants: &[&Grant],
        sentences: &mut Vec<String>,
    ) -> (Vec<String>, Vec<String>) {
        let (mut methods, mut paths): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        let wanted = match &declared.need.methods {
            Wanted::Only(list) => list.clone(),
            // Any method will do; reading is where to start.
            Wanted::Whatever if grants.is_empty() => vec!["GET".to_owned()],
            Wanted::Whatever => Vec::new(),
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

fn missing_slots<'a>(declared: &'a Declared, grants: &[&Grant]) -> Vec<&'a Slot> {
    let Wanted::Only(list) = declared.slots() else { return Vec::new() };
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
