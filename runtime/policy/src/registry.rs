//! Which instances' registry settings a guest may read and write: those of this call, and those
//! that match the operator's `registry.keys`. A guest that does not declare that it uses the
//! registry may access none.

use super::object_reader::ObjectReader;
use wasm_cpi_checks::Check;

/// The registry settings that a guest may access. The default allows none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryRights {
    keys: Vec<String>,
    /// True if the guest declares that it uses the registry.
    declared: bool,
}

/// The reason why a guest may not access the settings of an instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryDenial {
    /// The text is not an instance ID.
    #[error("this is not an instance ID; use 1 to 255 letters, digits, `.`, `_`, `:`, `-`")]
    InvalidId,
    /// The guest does not declare that it uses the registry.
    #[error("the guest's needs do not declare `registry`")]
    Undeclared,
    /// The instance with this ID is neither of this call nor named by the policy.
    #[error("instance `{0}` is not of this call; the policy's `registry.keys` can grant more")]
    OtherInstance(String),
}

impl RegistryDenial {
    /// Returns the check that refuses the access.
    pub fn check(&self) -> Check {
        match self {
            RegistryDenial::InvalidId => Check::RegistryIdForm,
            RegistryDenial::Undeclared => Check::NeedsRegistry,
            RegistryDenial::OtherInstance(_) => Check::RegistryIds,
        }
    }
}

/// The largest length of an instance ID, in bytes.
const MAX_ID: usize = 255;

impl RegistryRights {
    pub(super) fn read(parent: &mut ObjectReader<'_>) -> RegistryRights {
        let mut rights = RegistryRights::default();
        let Some(value) = parent.value("registry") else { return rights };
        let Some(mut reader) = ObjectReader::open(value, parent.at("registry"), parent.problems()) else {
            return rights;
        };
        for (at, pattern) in reader.texts("keys") {
            let plain =
                !pattern.is_empty() && pattern.len() <= MAX_ID && pattern.chars().all(|c| c == '*' || is_id_char(c));
            if plain {
                rights.keys.push(pattern.to_owned());
            } else {
                let remedy = "use letters, digits, `.`, `_`, `:`, `-`, and `*` for any of them";
                reader.problems().add(at, "is not a pattern of instance IDs", remedy);
            }
        }
        reader.close();
        rights
    }

    /// Adds the patterns that a preset names.
    pub(super) fn extend(&mut self, preset: RegistryRights) {
        self.keys.extend(preset.keys);
    }

    /// Returns the rights of a guest that declares, or does not declare, its use of the registry.
    pub(super) fn declared(&self, declared: bool) -> RegistryRights {
        RegistryRights { keys: self.keys.clone(), declared }
    }

    /// Decides whether the guest may access the settings of the instance `id`. `own` lists the
    /// IDs that this call received or created. Rejects malformed IDs, every ID if the guest
    /// does not declare `registry`, and IDs that are neither in `own` nor match a pattern.
    pub fn allows(&self, id: &str, own: &[&str]) -> Result<(), RegistryDenial> {
        if Check::RegistryIdForm.refuses(!is_id(id)) {
            return Err(RegistryDenial::InvalidId);
        }
        if Check::NeedsRegistry.refuses(!self.declared) {
            return Err(RegistryDenial::Undeclared);
        }
        if own.contains(&id) || self.keys.iter().any(|pattern| matches(pattern.as_bytes(), id.as_bytes())) {
            return Ok(());
        }
        Err(RegistryDenial::OtherInstance(id.to_owned()))
    }
}

/// Returns true for an instance ID. IDs become segments of URLs, so `.` and `..` are not IDs.
fn is_id(text: &str) -> bool {
    (1..=MAX_ID).contains(&text.len()) && text.chars().all(is_id_char) && text != "." && text != ".."
}

fn is_id_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._:-".contains(c)
}

/// Returns true if the pattern matches the text; `*` stands for any number of characters. Goes
/// back only to the last `*`, so that no pattern takes exponential time.
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
    fn a_call_may_use_its_own_instances_and_those_that_patterns_match() {
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
    fn the_registry_is_denied_to_a_module_that_does_not_declare_it() {
        let rights = rights(&["*"]).declared(false);
        assert_eq!(rights.allows("vm", &["vm"]), Err(RegistryDenial::Undeclared));
    }

    #[test]
    fn a_pattern_with_many_stars_is_matched_quickly() {
        let pattern = format!("{}b", "*a".repeat(120));
        assert!(rights(&[&pattern]).allows(&"a".repeat(255), &[]).is_err());
    }
}
