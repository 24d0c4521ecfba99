//! The section `audit`: the file of the audit log, and when it is rotated.

use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The accepted sizes. A smaller file would be rotated all the time, and a larger size is a mistake.
const MAX_BYTES: std::ops::RangeInclusive<u64> = 64 * 1024..=1 << 40;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditConfig {
    pub path: PathBuf,
    /// The size at which the runtime rotates the file. If absent, the runtime does not rotate it.
    pub max_bytes: Option<u64>,
}

impl AuditConfig {
    /// Returns a sentence for each problem of the section.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.path.file_name().is_none() {
            problems.push("`audit.path` must name a file, for example \"audit.log\"".to_owned());
        }
        if let Some(bytes) = self.max_bytes
            && !MAX_BYTES.contains(&bytes)
        {
            let (least, most) = (MAX_BYTES.start(), MAX_BYTES.end());
            problems.push(format!("`audit.max_bytes` is {bytes}; it must be from {least} to {most}"));
        }
        problems
    }

    /// Resolves the path against the config's directory.
    #[must_use]
    pub fn relative_to(self, base: &Path) -> AuditConfig {
        AuditConfig { path: base.join(self.path), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_a_file_name_and_a_size_out_of_range_are_rejected() {
        for (path, max_bytes, said) in [
            ("audit.log", None, None),
            ("../log/audit.log", Some(65_536), None),
            ("a", Some(1 << 40), None),
            ("", None, Some("`audit.path` must name a file")),
            ("/", None, Some("`audit.path` must name a file")),
            ("log/..", None, Some("`audit.path` must name a file")),
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
