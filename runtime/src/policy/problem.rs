//! What is wrong with an operator's file: which key, what, and what to do.
//!
//! Problems are collected, so that one run of `check` shows all of them. They
//! quote names and patterns, never values that may be secrets.

use std::cell::RefCell;
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the key within its file, like `http[2].slots[0].path`.
    pub key: String,
    pub what: String,
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

/// A list that readers share while they descend into a file.
#[derive(Default)]
pub(super) struct Problems(RefCell<Vec<Problem>>);

impl Problems {
    pub(super) fn add(&self, key: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) {
        self.0.borrow_mut().push(Problem { key: key.into(), what: what.into(), remedy: remedy.into() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// `value`, unless something was wrong.
    pub(super) fn or<T>(self, value: T) -> Result<T, Vec<Problem>> {
        let problems = self.0.into_inner();
        if problems.is_empty() { Ok(value) } else { Err(problems) }
    }

    pub(super) fn into_vec(self) -> Vec<Problem> {
        self.0.into_inner()
    }
}
