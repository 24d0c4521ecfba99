//! `inspect`: shows a guest's name, methods and needs, and what a policy grants it.

mod diff;

use crate::commands::context_file;
use crate::commands::report::Report;
use crate::component::child::compile_in_child;
use crate::component::declarations;
use crate::component::description::GuestDescription;
use crate::component::source::{GuestFile, read};
use crate::config::{Config, ConfigSource};
use crate::effective_policy;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::lock_down::LockDownLevel;
use crate::startup;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use wasm_cpi_policy::invisible::is_invisible;
use wasm_cpi_policy::{Comparison, Needs, PolicyProblem, Properties, Restriction};

#[derive(Args)]
pub struct InspectOptions {
    /// File of the guest
    #[arg(value_name = "GUEST.wasm")]
    guest: PathBuf,
    /// File of a newer version; prints what it needs in addition, and what it no longer needs
    #[arg(value_name = "NEW.wasm")]
    newer: Option<PathBuf>,
    /// Config file of a job; compares the needs with its policy
    #[arg(long, value_name = "CPI.json", conflicts_with = "newer")]
    config: Option<PathBuf>,
    /// Directory of that job's packages (default: `packages` beside the `jobs` directory of the config)
    #[arg(long, value_name = "DIR", requires = "config")]
    packages: Option<PathBuf>,
    /// Name of one of the `modules` in that config (default: its own `guest`)
    #[arg(long, value_name = "NAME", requires = "config")]
    module: Option<String>,
    /// File with the properties of a cpi-config, a JSON object; `-` is stdin
    #[arg(long, value_name = "FILE", requires = "config")]
    context: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The exit code if a newer version needs more, which is neither success nor an error.
const WANTS_MORE: u8 = 3;
/// The exit code if the policy does not grant what the guest needs.
const NOT_GRANTED: u8 = 4;

impl InspectOptions {
    /// Returns the exit code for a report that is not good.
    pub(super) fn exit_code(&self) -> u8 {
        if self.newer.is_some() { WANTS_MORE } else { NOT_GRANTED }
    }
}

/// What a guest's file and its `describe` declare.
struct Guest {
    file: String,
    bytes: usize,
    sha256: String,
    imports: Vec<String>,
    description: GuestDescription,
    needs: Option<Needs>,
}

/// What `inspect` found out about a guest.
struct Inspection {
    guest: Guest,
    /// The signatures that were verified, if the config demands signatures.
    signature: Option<String>,
    comparison: Option<Comparison>,
    /// What the policy allows and is still worth a warning.
    warnings: Vec<String>,
}

pub fn inspect(options: &InspectOptions) -> Result<Report, Failure> {
    startup::secure_process();
    if let Some(newer) = &options.newer {
        let limits = Limits::default();
        let look = |path| Guest::look(read(path, &limits)?, path, &limits, LockDownLevel::default());
        return Ok(diff::report(&look(&options.guest)?, &look(newer)?, options.json));
    }
    let (packages, module) = (options.packages.clone(), options.module.clone());
    let config =
        options.config.clone().map(|path| Config::load(&ConfigSource { path, packages, module })).transpose()?;
    let limits = config.as_ref().map_or_else(Limits::default, |config| config.limits.clone());
    let hardening = config.as_ref().map_or_else(LockDownLevel::default, |config| config.hardening);
    let file = read(&options.guest, &limits)?;
    let signature = match config.as_ref().and_then(|config| config.guest.signature.as_ref()) {
        Some(signature) => Some(signature.describe(&signature.verify(&options.guest, &file.sha256)?)),
        None => None,
    };
    let guest = Guest::look(file, &options.guest, &limits, hardening)?;
    let (mut comparison, mut warnings) = (None, Vec::new());
    if let (Some(config), Some(needs)) = (&config, &guest.needs) {
        let properties = Properties::merge(config.properties.clone(), context_file::read(options.context.as_deref())?);
        let policy = effective_policy::policy(config, &properties, Some(needs))?;
        comparison = Some(policy.compare_needs(needs));
        let found = policy.warnings().iter().chain(policy.unreachable());
        warnings = found.map(PolicyProblem::text_with_code).collect();
        if comparison.as_ref().is_some_and(|comparison| comparison.ungranted().next().is_some()) {
            warnings.extend(effective_policy::presets_of_guest(&options.guest));
        }
    }
    let inspection = Inspection { guest, signature, comparison, warnings };
    let text = if options.json { plain_json(&inspection.to_json()) } else { inspection.to_text() };
    let good = !inspection.comparison.as_ref().is_some_and(Comparison::lacks_something);
    Ok(Report { text, good })
}

impl Guest {
    /// Compiles a guest and runs its `describe`, in a child process.
    fn look(guest: GuestFile, path: &Path, limits: &Limits, hardening: LockDownLevel) -> Result<Guest, Failure> {
        let file = path.display().to_string();
        let blame = |failure: Failure| Failure { message: format!("guest {file}: {}", failure.message), ..failure };
        let declarations = declarations::inspect(&guest.bytes)
            .map_err(|problems| declarations::to_failure(&format!("guest {file}:"), &problems).with_detail(""))?;
        let bytes = guest.bytes.len();
        let description = compile_in_child(guest.bytes, limits, hardening).map_err(blame)?.description;
        let needs = effective_policy::needs(&description).map_err(blame)?;
        Ok(Guest { bytes, sha256: guest.sha256, imports: declarations.imports, description, needs, file })
    }
}

/// Returns JSON text in which control and invisible characters are escaped, so that printing
/// does not change it.
fn plain_json(value: &Value) -> String {
    let mut text = String::new();
    for c in format!("{value:#}\n").chars() {
        if c != '\n' && (c.is_control() || is_invisible(c)) {
            // Such characters occur in strings only.
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

impl Inspection {
    fn to_json(&self) -> Value {
        let Guest { file, bytes, sha256, imports, description, .. } = &self.guest;
        let needs: Option<Value> = description.needs.as_ref().and_then(|text| serde_json::from_str(text).ok());
        let comparison = self.comparison.as_ref().map(|comparison| {
            let http: Vec<Value> = comparison
                .http
                .iter()
                .map(|need| {
                    json!({"id": need.id, "to": need.to, "why": need.why, "granted_by": need.granted_by, "missing": need.missing,
                           "unset_property": need.unset_property,
                           "optional": need.optional, "grant_line": need.grant_line, "slot_lines": need.slot_lines,
                           "show_lines": need.show_lines})
                })
                .collect();
            json!({"http": http, "hidden": comparison.hidden, "hidden_origins": comparison.hidden_origins,
                   "expose_line": comparison.expose_line, "missing_logins": comparison.missing_logins,
                   "undeclared_logins": comparison.undeclared_logins, "complete": !comparison.lacks_something()})
        });
        json!({
            "file": file, "bytes": bytes, "sha256": sha256, "name": description.name, "version": description.version,
            "stemcell_formats": description.stemcell_formats, "methods": description.methods, "has_names": description.has_names,
            "imports": imports, "needs": needs, "signature": self.signature, "policy": comparison,
            "warnings": self.warnings,
        })
    }

    fn to_text(&self) -> String {
        let Guest { bytes, sha256, imports, description, needs, .. } = &self.guest;
        let mut text = String::new();
        let out = &mut text;
        let _ = writeln!(out, "{} {}, {} KiB", description.name, description.version, bytes / 1024);
        let _ = writeln!(out, "pin       \"sha256\": \"{sha256}\"");
        if let Some(signature) = &self.signature {
            let _ = writeln!(out, "signature {signature}");
        }
        let _ = writeln!(out, "formats   {}", list(&description.stemcell_formats));
        let _ = writeln!(out, "methods   {}", list(&description.methods));
        let wasi = imports.iter().filter(|import| import.starts_with("wasi:")).count();
        let ours: Vec<String> =
            imports.iter().filter_map(|import| import.strip_prefix("bosh:cpi/")).map(str::to_owned).collect();
        let _ = writeln!(out, "imports   {}, and {wasi} interfaces of WASI, without files or sockets", list(&ours));
        if !description.has_names {
            let _ = writeln!(out, "warning   no name section, so backtraces do not name functions");
        }
        match needs {
            None => {
                let _ = writeln!(
                    out,
                    "needs     not declared, so it gets nothing unless the policy sets `trust_undeclared`"
                );
            }
            Some(needs) => needs_text(out, needs, description),
        }
        if let Some(comparison) = &self.comparison {
            comparison_text(out, comparison);
        }
        for warning in &self.warnings {
            let _ = writeln!(out, "warning   {warning}");
        }
        text
    }
}

fn needs_text(out: &mut String, needs: &Needs, description: &GuestDescription) {
    let logins = match &needs.logins {
        Restriction::Any => "every login of the policy".to_owned(),
        Restriction::Only(names) if names.is_empty() => String::new(),
        Restriction::Only(names) => format!("the logins {}", list(names)),
    };
    let nothing = needs.http.is_empty() && needs.expose.is_empty() && logins.is_empty();
    if nothing && !needs.registry && !needs.image {
        let _ = writeln!(out, "needs     nothing");
        return;
    }
    // Printed as declared, because the operator judges the declaration.
    let declared: Value =
        description.needs.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    for need in declared.get("http").and_then(Value::as_array).into_iter().flatten() {
        let _ = writeln!(out, "needs     {need}");
    }
    let more =
        [(needs.registry, "the registry"), (needs.image, "the stemcell image"), (!logins.is_empty(), logins.as_str())];
    for (needed, what) in more {
        if needed {
            let _ = writeln!(out, "needs     {what}");
        }
    }
    if !needs.expose.is_empty() {
        let _ = writeln!(out, "needs     to see the properties {}", list(&needs.expose));
    }
}

fn comparison_text(out: &mut String, comparison: &Comparison) {
    for need in &comparison.http {
        let optional = if need.optional { ", optional" } else { "" };
        let (word, by) = match need.granted_by.as_slice() {
            [] => ("missing", "no grant".to_owned()),
            grants => ("granted", format!("by {}", list(grants))),
        };
        let _ = writeln!(out, "{word}   {} ({}{optional}): {by}", need.id, need.to);
        if let Some(property) = &need.unset_property {
            let what = format!("the property `{property}`, which holds its URL, is not set or not valid");
            let _ = writeln!(out, "missing   {}: {what}", need.id);
        }
        for missing in &need.missing {
            let _ = writeln!(out, "missing   {}: {missing}", need.id);
        }
        if let Some(line) = &need.grant_line {
            let _ = writeln!(out, "  add to `http`:  {line}");
        }
        for line in &need.slot_lines {
            let _ = writeln!(out, "  add to a grant's `slots`:  {line}");
        }
        for line in &need.show_lines {
            let _ = writeln!(out, "  write in {line}");
        }
    }
    if !comparison.hidden.is_empty() {
        let _ = writeln!(out, "missing   it does not see the properties {}", list(&comparison.hidden));
    }
    if !comparison.hidden_origins.is_empty() {
        let hidden = list(&comparison.hidden_origins);
        let _ = writeln!(out, "missing   it cannot write the URLs of its requests without {hidden}");
    }
    for (logins, what) in [
        (&comparison.missing_logins, "the policy does not describe the logins"),
        (&comparison.undeclared_logins, "the needs do not declare the logins of grants"),
    ] {
        if !logins.is_empty() {
            let _ = writeln!(out, "missing   {what}: {}", list(logins));
        }
    }
    if let Some(line) = &comparison.expose_line {
        let _ = writeln!(out, "  set in the policy:  {line}");
    }
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasm_cpi_policy::ComparedNeed;

    #[test]
    fn a_need_without_a_grant_is_a_line_that_begins_with_missing() {
        let need = |id: &str, granted_by: &[&str], unset: Option<&str>| ComparedNeed {
            id: id.into(),
            to: format!("${{{id}}}"),
            why: String::new(),
            granted_by: granted_by.iter().map(ToString::to_string).collect(),
            missing: vec![],
            unset_property: unset.map(str::to_owned),
            optional: false,
            grant_line: None,
            slot_lines: vec![],
            show_lines: vec![],
        };
        let comparison = Comparison {
            http: vec![need("a", &["mine", "yours"], None), need("b", &[], None), need("c", &[], Some("url"))],
            hidden: vec![],
            hidden_origins: vec![],
            expose_line: None,
            missing_logins: vec![],
            undeclared_logins: vec![],
        };
        let mut text = String::new();
        comparison_text(&mut text, &comparison);
        let lines = [
            "granted   a (${a}): by mine, yours",
            "missing   b (${b}): no grant",
            "missing   c (${c}): no grant",
            "missing   c: the property `url`, which holds its URL, is not set or not valid",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }
}
