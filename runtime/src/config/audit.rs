//! The config's `audit`: where the lines go, and when the file is put aside.

use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Smaller files would be put aside all the time; larger ones nobody means.
const MAX_BYTES: std::ops::RangeInclusive<u64> = 64 * 1024..=1 << 40;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    pub path: PathBuf,
    /// Absent: somebody else rotates the file, or nobody does.
    pub max_bytes: Option<u64>,
}

impl AuditConfig {
    /// What is wrong with it, as sentences.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.path.file_name().is_none() {
            problems.push("`audit.path` names no file; write it like \"audit.log\"".to_owned());
        }
        if let Some(bytes) = self.max_bytes
            && !MAX_BYTES.contains(&bytes)
        {
            let (least, most) = (MAX_BYTES.start(), MAX_BYTES.end());
            problems.push(format!("`audit.max_bytes` is {bytes}; it must be from {least} to {most}"));
        }
        problems
    }

    /// Makes the path one from the config's directory.
    #[must_use]
    pub fn relative_to(self, base: &Path) -> AuditConfig {
        AuditConfig { path: base.join(self.path), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_and_its_size_is_sensible() {
        for (path, max_bytes, said) in [
            ("audit.log", None, None),
            ("../log/audit.log", Some(65_536), None),
            ("a", Some(1 << 40), None),
            ("", None, Some("`audit.path` names no file")),
            ("/", None, Some("`audit.path` names no file")),
            ("log/..", None, Some("`audit.path` names no file")),
            ("a", Some(0), Some("`audit.max_bytes` is 0; it must be from 65536 to 1099511627776")),
            ("a", Some(65_535), Some("`audit.max_bytes` is 65535")),
            ("a", Some((1 << 40) + 1), Some("`audit.max_bytes` is")),
        ] {
            let problems = AuditConfig { path: path.into(), max_bytes }.problems();
            assert_eq!(problems.len(), usize::from(said.is_some()), "{path}: {problems:?}");
            assert!(problems.iter().all(|problem| problem.contains(said.unwrap_or_default())), "{problems:?}");
        }
    }
}
