//! Which instances' registry settings a guest may touch: those of this call, and
//! those the operator's `registry.keys` name. Nothing at all, unless the module
//! declares that it uses the registry.

use super::fields::Fields;
use crate::holes::Check;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryRights {
    keys: Vec<String>,
    /// Whether the module declares that it uses the registry.
    declared: bool,
}

const MAX_ID: usize = 255;

impl RegistryRights {
    pub(super) fn read(parent: &mut Fields<'_>) -> RegistryRights {
        let mut rights = RegistryRights::default();
        let Some(value) = parent.value("registry") else { return rights };
        let Some(mut fields) = Fields::open(value, parent.at("registry"), parent.problems()) else { return rights };
        for (at, pattern) in fields.texts("keys") {
            let plain =
                !pattern.is_empty() && pattern.len() <= MAX_ID && pattern.chars().all(|c| c == '*' || is_id_char(c));
            if plain {
                rights.keys.push(pattern.to_owned());
            } else {
                let remedy = "use letters, digits, `.`, `_`, `:`, `-`, and `*` for any of them";
                fields.problems().add(at, "is no pattern of instance IDs", remedy);
            }
        }
        fields.close();
        rights
    }

    /// Also what a preset names.
    pub(super) fn extend(&mut self, preset: RegistryRights) {
        self.keys.extend(preset.keys);
    }

    pub(super) fn declared(&self, declared: bool) -> RegistryRights {
        RegistryRights { keys: self.keys.clone(), declared }
    }

    /// `own` are the IDs that this call received or made.
    pub fn allows(&self, id: &str, own: &[&str]) -> Result<(), String> {
        if Check::RegistryIdForm.on() && !is_id(id) {
            return Err("this is no instance ID: 1 to 255 letters, digits, `.`, `_`, `:`, `-`".into());
        }
        if !self.declared {
            return Err("the module's needs do not declare `registry`".into());
        }
        if own.contains(&id) || self.keys.iter().any(|pattern| matches(pattern.as_bytes(), id.as_bytes())) {
            return Ok(());
        }
        Err(format!("instance `{id}` is not of this call; the policy's `registry.keys` can grant more"))
    }
}

/// IDs become segments of URLs, so the two segments with a meaning are none.
fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len()) && text.chars().all(is_id_char) && text != "." && text != ".."
}

fn is_id_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._:-".contains(c)
}

/// `*` stands for any characters. Remembers only the last `*`, so it is quick for
/// every pattern.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == text.get(t) {
            p += 1;
            t += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            t = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(keys: &[&str]) -> RegistryRights {
        RegistryRights { keys: keys.iter().map(|key| (*key).to_owned()).collect(), declared: true }
    }

    #[test]
    fn a_call_touches_its_own_instances_and_what_patterns_name() {
        for (keys, id, allowed) in [
            (&[][..], "vm-own", true),
            (&[], "vm-other", false),
            (&["vm-*"], "vm-other", true),
            (&["vm-*"], "avm-other", false),
            (&["*-x-*:9"], "a-x-x-b:9", true),
            (&["*-x-*:9"], "a-x-b:99", false),
            (&["a*b*c"], "abbbc", true),
            (&["a*b*c"], "acb", false),
            (&["exact"], "exact", true),
            (&["exact"], "exactly", false),
            (&["*"], "anything", true),
            (&["*"], "no/slash", false),
            (&["*"], "", false),
            (&["*"], "..", false),
            (&["*"], "né", false),
        ] {
            assert_eq!(rights(keys).allows(id, &["vm-own", "no/slash"]).is_ok(), allowed, "{keys:?} {id}");
        }
        assert!(rights(&["*"]).allows(&"x".repeat(256), &[]).is_err());
        assert!(rights(&["*"]).allows(&"x".repeat(255), &[]).is_ok());
    }

    #[test]
    fn what_is_not_declared_is_not_given() {
        let why = rights(&["*"]).declared(false).allows("vm", &["vm"]).unwrap_err();
        assert!(why.contains("do not declare"), "{why}");
    }

    #[test]
    fn a_pattern_of_many_stars_is_quick() {
        let pattern = format!("{}b", "*a".repeat(120));
        assert!(rights(&[&pattern]).allows(&"a".repeat(255), &[]).is_err());
    }
}
