//! Runs a script: fills in each operation, performs it and records its outcome. A
//! mistake in the script is an error of kind `cpi`, so that a test with a typing error
//! does not pass.

use serde_json::{Map, Value, json};
use wasm_cpi_sdk::{Error, ErrorKind, RetryAdvice};

use crate::answer::Answer;
use crate::ops::{self, Failure, Op};
use crate::script::Script;
use crate::template::Values;

struct Runner {
    args: Value,
    outcomes: Vec<Value>,
    answer: Option<Answer>,
}

pub(crate) fn run(script: Script, args: Value) -> Result<Answer, Error> {
    let mut runner = Runner { args, outcomes: vec![], answer: None };
    for operation in script {
        if let Some((why, cleanup)) = runner.perform(operation)? {
            for operation in cleanup {
                // A cleanup continues even if one of its operations is cancelled.
                runner.perform(operation)?;
            }
            let outcomes = Value::Array(runner.outcomes);
            return Ok(runner.answer.unwrap_or(Answer::Cancelled { why, outcomes }));
        }
    }
    Ok(runner.answer.unwrap_or(Answer::Outcomes(Value::Array(runner.outcomes))))
}

impl Runner {
    /// Performs one operation. If it was cancelled and has an `on_cancel`, returns the
    /// reason and the operations to perform instead of the rest of the script.
    fn perform(&mut self, mut operation: Map<String, Value>) -> Result<Option<(String, Script)>, Error> {
        let on_cancel = operation.remove("on_cancel").map(|cleanup| self.cleanup(cleanup)).transpose()?;
        let values = Values { outcomes: &self.outcomes, args: &self.args };
        let mut filled = values.fill_object(&operation).map_err(|problem| self.mistake(&problem))?;
        let name = filled.get("op").cloned().unwrap_or_default();
        let repeat = match filled.remove("repeat") {
            Some(value) => value.as_u64().ok_or_else(|| self.mistake("`repeat` must be a number"))?,
            None => 1,
        };
        let op: Op = serde_json::from_value(Value::Object(filled)).map_err(|error| self.mistake(&error.to_string()))?;

        let (outcome, times) = perform_repeatedly(&op, repeat);
        let cancelled = match &outcome {
            Err(failure) if failure.is_cancelled() => on_cancel.map(|cleanup| (failure.message.clone(), cleanup)),
            _ => None,
        };
        let mut recorded = match outcome {
            Ok(value) => json!({"op": name, "ok": value}),
            Err(failure) => json!({"op": name, "error": Value::from(failure)}),
        };
        if repeat != 1 {
            recorded["times"] = times.into();
        }
        self.outcomes.push(recorded);

        match op {
            Op::Error { kind, message, ok_to_retry } => {
                return Err(self.error(&kind, message, ok_to_retry.unwrap_or(false))?);
            }
            Op::Result { json } => self.answer = Some(Answer::Result(json)),
            Op::Garbage(garbage) => self.answer = Some(Answer::Garbage(garbage)),
            _ => {}
        }
        Ok(cancelled)
    }

    fn cleanup(&self, value: Value) -> Result<Script, Error> {
        serde_json::from_value(value).map_err(|_| self.mistake("`on_cancel` must be an array of operations"))
    }

    /// Returns the error of the operation `error`. Its kinds are those of
    /// `wit/types.wit`.
    fn error(&self, kind: &str, message: Option<String>, ok_to_retry: bool) -> Result<Error, Error> {
        let advice = RetryAdvice { ok_to_retry };
        let kind = match kind {
            "not-implemented" => ErrorKind::NotImplemented,
            "not-supported" => ErrorKind::NotSupported,
            "vm-not-found" => ErrorKind::VmNotFound,
            "vm-creation-failed" => ErrorKind::VmCreationFailed(advice),
            "disk-not-found" => ErrorKind::DiskNotFound(advice),
            "disk-not-attached" => ErrorKind::DiskNotAttached(advice),
            "no-disk-space" => ErrorKind::NoDiskSpace(advice),
            "network-not-found" => ErrorKind::NetworkNotFound,
            "stemcell-not-found" => ErrorKind::StemcellNotFound,
            "cloud" => ErrorKind::Cloud,
            "cpi" => ErrorKind::Cpi,
            other => return Err(self.mistake(&format!("the error kind `{other}` does not exist"))),
        };
        Ok(Error::new(kind, message.unwrap_or_else(|| "the script requested this error".to_owned())))
    }

    fn mistake(&self, problem: &str) -> Error {
        let (at, outcomes) = (self.outcomes.len(), Value::from(self.outcomes.clone()));
        Error::cpi(format!("probe script: operation {at}: {problem}; probe outcomes: {outcomes}"))
    }
}

/// Performs an operation up to `times`, until it fails. Returns the last outcome and
/// the number of attempts.
fn perform_repeatedly(op: &Op, times: u64) -> (Result<Value, Failure>, u64) {
    let mut last = Ok(Value::Null);
    for done in 0..times {
        last = ops::perform(op);
        if last.is_err() {
            return (last, done + 1);
        }
    }
    (last, times)
}
