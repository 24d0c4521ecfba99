//! What is wrong with a policy or a needs section: the key, the problem and the remedy.
//!
//! Problems are collected, so that one run of `check` shows all of them. They quote names and
//! patterns, and never values that may be secrets.

use std::cell::RefCell;
use std::fmt;

/// One mistake in a file. `Display` writes it as "`key`: what; remedy".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path of the key within its file, such as `http[2].slots[0].path`. It is empty if the
    /// problem is with the whole file.
    pub key: String,
    /// What is wrong, as a phrase that follows the key: "is missing".
    pub what: String,
    /// What the author of the file should do, as an imperative: "write a string".
    pub remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}; {}", self.what, self.remedy)
        } else {
            write!(f, "`{}`: {}; {}", self.key, self.what, self.remedy)
        }
    }
}

/// The list of problems that all readers of one file share.
#[derive(Default)]
pub(super) struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    pub(super) fn add(&self, key: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) {
        self.0.borrow_mut().push(Problem { key: key.into(), what: what.into(), remedy: remedy.into() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// Returns `value`, or the problems if there are any.
    pub(super) fn or<T>(self, value: T) -> Result<T, Vec<Problem>> {
        let problems = self.0.into_inner();
        if problems.is_empty() { Ok(value) } else { Err(problems) }
    }

    pub(super) fn into_vec(self) -> Vec<Problem> {
        self.0.into_inner()
    }
}
