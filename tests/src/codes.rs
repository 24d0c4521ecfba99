//! The codes of refusals that the programs show. The corpus of attacks collects them: a case
//! that is about a check has to see the code of that check.

use crate::{Job, Response, audit, dist};
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// `None` while no one collects codes.
static SEEN: Mutex<Option<BTreeSet<String>>> = Mutex::new(None);

fn seen() -> MutexGuard<'static, Option<BTreeSet<String>>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Collects the codes of all calls from now on.
pub fn collect() {
    *seen() = Some(BTreeSet::new());
}

/// Returns the codes since `collect`, and collects no more.
pub fn collected() -> BTreeSet<String> {
    seen().take().unwrap_or_default()
}

/// Returns all codes, as `wasm-cpi explain` lists them: each is the first word of an indented line.
pub fn known() -> &'static BTreeSet<String> {
    static KNOWN: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let output = Command::new(dist::tool()).arg("explain").output();
        let output = output.unwrap_or_else(|error| panic!("explain: {error}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().filter(|line| line.starts_with("  "));
        let codes: BTreeSet<String> =
            lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
        assert!(codes.contains("grant-host"), "explain: {text}");
        codes
    });
    &KNOWN
}

/// Notes the codes in a response, on stderr and in the job's audit log.
pub(crate) fn note_response(job: &Job, response: &Response) {
    if seen().is_none() {
        return;
    }
    note(&format!("{}\n{}", response.json, response.stderr));
    if let Ok(lines) = std::fs::read_to_string(audit::path(job)) {
        let codes = lines.split(r#""code":""#).skip(1).filter_map(|rest| rest.split('"').next());
        add(codes);
    }
}

/// Notes the codes in brackets.
pub(crate) fn note(text: &str) {
    add(text.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(code, _)| code));
}

fn add<'a>(codes: impl Iterator<Item = &'a str>) {
    if let Some(seen) = seen().as_mut() {
        seen.extend(codes.filter(|code| known().contains(*code)).map(str::to_owned));
    }
}
