//! The error of a failed call: who failed, what failed, and what to do.
//!
//! Every layer returns a `Failure`. Only `rpc::response` turns it into an error type of the
//! protocol. The message is one sentence. Details such as backtraces and lists are in
//! `detail`, which becomes part of the response's `log`.

use serde::{Deserialize, Serialize};
use std::fmt;
use wasm_cpi_checks::{Check, RefusedBy, with_code};

/// Who failed, and so who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Who {
    /// The caller sent an invalid request.
    Request,
    /// A file of the operator is invalid.
    Config,
    /// The operator's policy denied a request.
    Policy,
    /// A limit of the configuration was reached.
    Limit,
    /// The guest's code failed.
    Guest,
    /// The cloud, or the network to it, failed.
    Iaas,
    /// This program failed.
    Runtime,
}

impl Who {
    pub const ALL: [Who; 7] = [Who::Request, Who::Config, Who::Policy, Who::Limit, Who::Guest, Who::Iaas, Who::Runtime];
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Who::Request => "request",
            Who::Config => "config",
            Who::Policy => "policy",
            Who::Limit => "limit",
            Who::Guest => "guest",
            Who::Iaas => "iaas",
            Who::Runtime => "runtime",
        })
    }
}

/// What an operator does if this program cannot start something, for which the system most often lacks a resource.
pub const RESOURCE_REMEDY: &str =
    "check memory and `ulimit -a` of this user; if they are in order, report this as a bug in wasm-cpi";

/// The reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{who}: {message}")]
pub struct Failure {
    pub who: Who,
    /// What failed and what to do, without the `who`.
    pub message: String,
    /// More lines for the log.
    pub detail: String,
    /// The check that refused, if the failure is a refusal. `Display` does not show it, because
    /// some messages reach a guest; `text_with_code` does.
    pub check: Option<Check>,
}

impl RefusedBy for Failure {
    fn refused_by(self, check: Check) -> Failure {
        Failure { check: self.check.or(Some(check)), ..self }
    }
}

impl Failure {
    pub fn new(who: Who, message: impl Into<String>) -> Self {
        Failure { who, message: message.into(), detail: String::new(), check: None }
    }

    /// Returns the message for an operator, which ends with the code of the check that refused.
    pub fn text_with_code(&self) -> String {
        with_code(&self.to_string(), self.check)
    }

    pub fn request(message: impl Into<String>) -> Self {
        Failure::new(Who::Request, message)
    }

    pub fn config(message: impl Into<String>) -> Self {
        Failure::new(Who::Config, message)
    }

    /// Returns the failure of a limit that was reached. `name` is its key under `limits` in the config.
    pub fn limit(name: &str, value: impl fmt::Display, what: impl fmt::Display) -> Self {
        Failure::new(
            Who::Limit,
            format!(
                "{what} reached `{name}` ({value}); if that is legitimate, raise `limits.{name}` in the CPI's config"
            ),
        )
    }

    /// Returns one failure for several problems of a file, with the first in its message and all in its
    /// details.
    pub fn of_problems(file: &dyn fmt::Display, problems: &[Problem]) -> Self {
        let (first, check) = problems.first().map_or(("", None), |problem| (problem.text.as_str(), problem.check));
        let rest = match problems.len() {
            0 | 1 => String::new(),
            n => format!(" (and {} more; `wasm-cpi check` lists them)", n - 1),
        };
        let failure = Failure::config(format!("{file}: {first}{rest}"));
        let details: Vec<String> = problems.iter().map(Problem::text_with_code).collect();
        Failure { check, ..failure.with_detail(details.join("\n")) }
    }

    pub fn guest(message: impl Into<String>) -> Self {
        Failure::new(Who::Guest, message)
    }

    pub fn runtime(message: impl Into<String>) -> Self {
        Failure::new(Who::Runtime, message)
    }

    /// Returns the failure for a panic of this program. The text of the panic is left out, because it may quote secrets.
    pub fn bug() -> Self {
        Failure::runtime("a bug in wasm-cpi ended the call; please report it")
    }

    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }
}

/// The cause of a failed request or other host call, for operators. The guest does not see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The login that failed, if one did.
    pub login: Option<Box<str>>,
    /// Empty if nothing failed, or if the guest knows why.
    pub text: String,
}

/// One of several reasons why a config or a guest is rejected, as a sentence. A mistake in a policy
/// is a `PolicyProblem`, which has parts, and becomes a sentence here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The reason, as one sentence.
    pub text: String,
    /// The check that refused, if one did.
    pub check: Option<Check>,
}

impl Problem {
    pub fn new(text: impl Into<String>) -> Problem {
        Problem { text: text.into(), check: None }
    }

    /// Returns the sentence, followed by the code of the check that refused.
    pub fn text_with_code(&self) -> String {
        with_code(&self.text, self.check)
    }
}

impl RefusedBy for Problem {
    fn refused_by(self, check: Check) -> Problem {
        Problem { check: self.check.or(Some(check)), ..self }
    }
}

impl From<&wasm_cpi_policy::PolicyProblem> for Problem {
    fn from(problem: &wasm_cpi_policy::PolicyProblem) -> Problem {
        Problem { text: problem.to_string(), check: problem.check }
    }
}
