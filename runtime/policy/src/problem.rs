//! What is wrong with a policy or a needs section: the key, the problem and the remedy.
//!
//! Problems are collected, so that one run of `check` shows all of them. They quote names and
//! patterns, and never values that may be secrets.

use std::cell::RefCell;
use std::fmt;

use wasm_cpi_checks::{Check, RefusedBy, with_code};

/// One mistake in a policy or in needs. `Display` writes it as "`key`: what; remedy".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The path of the key within its file, such as `http[2].slots[0].path`. It is empty if the
    /// problem is with the whole file.
    pub key: String,
    /// The number of further keys of the same preset that have the same problem. The operator wrote
    /// none of them, so they are not listed.
    pub more_keys: usize,
    /// What is wrong, as a phrase that follows the key: "is missing".
    pub what: String,
    /// What the author of the file should do, as an imperative: "write a string".
    pub remedy: String,
    /// The check that refuses the file, if it is a named one.
    pub check: Option<Check>,
}

impl PolicyProblem {
    pub(super) fn new(key: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> PolicyProblem {
        PolicyProblem { key: key.into(), what: what.into(), remedy: remedy.into(), more_keys: 0, check: None }
    }

    /// Returns the text of the problem, followed by the code of the check that refuses the file.
    pub fn text_with_code(&self) -> String {
        with_code(&self.to_string(), self.check)
    }
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.key.as_str(), self.more_keys) {
            ("", _) => write!(f, "{}; {}", self.what, self.remedy),
            (key, 0) => write!(f, "`{key}`: {}; {}", self.what, self.remedy),
            (key, more) => write!(f, "`{key}` and {more} more: {}; {}", self.what, self.remedy),
        }
    }
}

impl RefusedBy for PolicyProblem {
    fn refused_by(self, check: Check) -> PolicyProblem {
        PolicyProblem { check: self.check.or(Some(check)), ..self }
    }
}

/// The list of problems that all readers of one file share.
#[derive(Default)]
pub(super) struct Problems(RefCell<Vec<PolicyProblem>>);

impl Problems {
    pub(super) fn add(&self, key: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) {
        self.push(PolicyProblem::new(key, what, remedy));
    }

    /// Adds a problem. If it is the same as an earlier one of the same preset, only counts it.
    pub(super) fn push(&self, problem: PolicyProblem) {
        let mut problems = self.0.borrow_mut();
        let preset = |key: &str| key.starts_with("presets[").then(|| key.split('.').next().map(str::to_owned));
        let same = |known: &&mut PolicyProblem| {
            (&known.what, &known.remedy, known.check) == (&problem.what, &problem.remedy, problem.check)
                && preset(&problem.key).is_some()
                && preset(&problem.key) == preset(&known.key)
        };
        match problems.iter_mut().find(same) {
            Some(known) => known.more_keys += 1,
            None => problems.push(problem),
        }
    }

    /// Adds the problem unless the condition holds, or the check is turned off. Returns true if
    /// there is no problem.
    pub(super) fn ensure(&self, check: Check, holds: bool, problem: impl FnOnce() -> PolicyProblem) -> bool {
        check.ensure(holds, problem).map_err(|problem| self.push(problem)).is_ok()
    }

    /// Adds the problem if something was found that must not be there, unless the check is turned
    /// off.
    pub(super) fn reject<T>(&self, check: Check, found: Option<T>, problem: impl FnOnce(T) -> PolicyProblem) {
        let _ = check.reject(found, problem).map_err(|problem| self.push(problem));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Returns `value`, or the problems if there are any.
    pub(super) fn into_result<T>(self, value: T) -> Result<T, Vec<PolicyProblem>> {
        let problems = self.0.into_inner();
        if problems.is_empty() { Ok(value) } else { Err(problems) }
    }

    pub(super) fn into_vec(self) -> Vec<PolicyProblem> {
        self.0.into_inner()
    }
}
