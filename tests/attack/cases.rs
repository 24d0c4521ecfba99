//! The corpus: cases as rows of data, and cases in code where files are needed.

mod audit_and_trace;
mod cache;
mod components;
mod compute;
mod director;
mod environment;
mod image;
mod lockdown;
mod log_lines;
mod policies;
mod registry;
mod secrets;
mod twins;

use crate::case::Case;
use crate::row;

/// Returns all cases, in the order of the table.
pub(crate) fn all() -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for (class, rows, in_code) in CLASSES {
        for rows in *rows {
            cases.extend(row::cases(class, rows)?);
        }
        cases.extend(in_code());
    }
    cases.extend(twin_cases()?);
    Ok(cases)
}

/// Returns the twin runs: those of rows for them, those of all other rows that involve a
/// secret, and those in code.
fn twin_cases() -> Result<Vec<Case>, String> {
    let mut cases = crate::twins::cases(include_str!("rows/twins.json"))?;
    for rows in CLASSES.iter().flat_map(|(_, rows, _)| *rows) {
        cases.extend(crate::twins::derived_cases(rows)?);
    }
    cases.extend(twins::cases());
    Ok(cases)
}

/// Name, files of rows, and cases in code.
type Class = (&'static str, &'static [&'static str], fn() -> Vec<Case>);

const CLASSES: &[Class] = &[
    ("URL and host forms", &[include_str!("rows/urls.json")], Vec::new),
    ("addresses and names", &[include_str!("rows/addresses.json")], Vec::new),
    ("redirects and proxies", &[include_str!("rows/redirects.json")], environment::cases),
    ("headers and smuggling", &[include_str!("rows/headers.json")], Vec::new),
    ("signed requests", &[include_str!("rows/signatures.json")], Vec::new),
    ("kept connections", &[include_str!("rows/connections.json")], Vec::new),
    ("responses", &[include_str!("rows/responses.json"), include_str!("rows/answers.json")], Vec::new),
    (
        "secrets",
        &[include_str!("rows/slots.json"), include_str!("rows/captures.json"), include_str!("rows/logins.json")],
        secrets::cases,
    ),
    ("compute, memory, ABI", &[], compute::cases),
    ("component files", &[], components::cases),
    ("prepared guests", &[], cache::cases),
    ("Director side", &[include_str!("rows/director.json")], director::cases),
    (
        "policy and config files",
        &[include_str!("rows/policies.json"), include_str!("rows/fields.json")],
        policies::cases,
    ),
    ("stemcell image", &[], image::cases),
    ("registry", &[], registry::cases),
    ("audit and logs", &[], || [log_lines::cases(), audit_and_trace::cases()].into_iter().flatten().collect()),
    ("lock-down", &[], lockdown::cases),
];
