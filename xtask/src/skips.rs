//! Tests that cannot run on this machine: the summary lists them, and in CI each skip
//! must be listed in a file of the repository.
//!
//! A variable names a file to which test programs append a line of JSON for each skip.
//! Steps of this program report their skips directly.

use crate::repo::Repo;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names the file for the test programs.
const VARIABLE: &str = "WASM_CPI_SKIPS";

/// The file that lists what CI may skip: names with reasons.
const LIST: &str = "tests/skips.json";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skip {
    /// The feature that the machine lacks, or the step that could not run.
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// The file to which the test programs of one run report their skips.
pub(crate) struct Reports(PathBuf);

impl Reports {
    /// Deletes the reports of the last run.
    pub(crate) fn new(repo: &Repo) -> Result<Reports> {
        let file = repo.root.join("target/skips");
        if file.exists() {
            fs::remove_file(&file).with_context(|| format!("{} cannot be removed", file.display()))?;
        }
        Ok(Reports(file))
    }

    /// Makes the programs that this command starts write to this file.
    pub(crate) fn collect_from(&self, command: &mut Command) {
        command.env(VARIABLE, &self.0);
    }

    pub(crate) fn read(&self) -> Result<Vec<Skip>> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let text = fs::read_to_string(&self.0).with_context(|| format!("{} cannot be read", self.0.display()))?;
        text.lines().map(parse).collect::<Result<_>>().with_context(|| format!("{} is damaged", self.0.display()))
    }
}

fn parse(line: &str) -> Result<Skip> {
    let report: Value = serde_json::from_str(line)?;
    let text = |key: &str| report[key].as_str().with_context(|| format!("a report of a skip has no `{key}`"));
    Ok(Skip { name: text("name")?.to_owned(), reason: format!("{}: {}", text("test")?, text("reason")?) })
}

/// Returns one line per name and reason for the summary.
pub(crate) fn lines(skips: &[Skip]) -> Vec<String> {
    let mut lines: Vec<String> = skips.iter().map(|Skip { name, reason }| format!("{name}: {reason}")).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Returns true if this is a run of CI.
pub(crate) fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| !["", "0", "false"].map(Into::into).contains(&value))
}

/// Returns an error that names every skip that is not listed.
pub(crate) fn check(root: &Path, skips: &[Skip]) -> Result<()> {
    let list = root.join(LIST);
    let text = fs::read_to_string(&list).with_context(|| format!("{} cannot be read", list.display()))?;
    let allowed: BTreeMap<String, String> =
        serde_json::from_str(&text).with_context(|| format!("{LIST} is not a JSON object of names and reasons"))?;
    let unexpected: Vec<Skip> = skips.iter().filter(|skip| !allowed.contains_key(&skip.name)).cloned().collect();
    if !unexpected.is_empty() {
        bail!(
            "these tests were skipped, and {LIST} does not allow it; make them run, or list them with a reason:\n      {}",
            lines(&unexpected).join("\n      ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip(name: &str, reason: &str) -> Skip {
        Skip { name: name.to_owned(), reason: reason.to_owned() }
    }

    #[test]
    fn reports_of_this_run_are_read_and_those_of_the_last_run_are_not() {
        let root = tempfile::tempdir().unwrap();
        let repo = Repo { root: root.path().to_owned(), triple: String::new() };
        let file = root.path().join("target/skips");
        fs::create_dir(root.path().join("target")).unwrap();
        fs::write(&file, "an old line\n").unwrap();
        let reports = Reports::new(&repo).unwrap();
        assert_eq!(reports.read().unwrap(), []);
        fs::write(&file, "{\"name\":\"root\",\"reason\":\"other users\",\"test\":\"a::b\"}\n").unwrap();
        assert_eq!(reports.read().unwrap(), [skip("root", "a::b: other users")]);
        fs::write(&file, "{\"name\":\"root\"}\n").unwrap();
        assert!(format!("{:#}", reports.read().unwrap_err()).contains("a report of a skip has no `test`"));
    }

    #[test]
    fn a_skip_is_listed_once() {
        let skips = [skip("root", "b"), skip("ipv6", "a"), skip("root", "b")];
        assert_eq!(lines(&skips), ["ipv6: a", "root: b"]);
    }

    #[test]
    fn ci_may_skip_only_listed_tests() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("tests")).unwrap();
        fs::write(root.path().join(LIST), r#"{"advisories": "offline"}"#).unwrap();
        let listed = skip("advisories", "no network");
        check(root.path(), std::slice::from_ref(&listed)).unwrap();
        let error = check(root.path(), &[listed, skip("root", "a::b: other users")]).unwrap_err().to_string();
        assert!(error.contains("root: a::b: other users") && !error.contains("advisories"), "{error}");
    }
}
