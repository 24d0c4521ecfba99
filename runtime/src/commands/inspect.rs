//! `inspect`: who a guest is, what it needs, and what it would get.

use crate::commands::cli::Report;
use crate::component::cache::Description;
use crate::component::{child, source, surface};
use crate::config::Config;
use crate::failure::Failure;
use crate::hardening::Level as Hardening;
use crate::limits::Limits;
use crate::policy::{Comparison, Needs, Properties};
use crate::session;
use clap::Args;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;

#[derive(Args)]
pub struct Options {
    /// The guest's file
    #[arg(value_name = "GUEST.wasm")]
    guest: PathBuf,
    /// Compare with the policy of this job
    #[arg(long, value_name = "CPI.json")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

struct Findings {
    file: String,
    bytes: usize,
    sha256: String,
    imports: Vec<String>,
    description: Description,
    needs: Option<Needs>,
    comparison: Option<Comparison>,
}

pub fn inspect(options: &Options) -> Result<Report, Failure> {
    let config = options.config.as_deref().map(Config::load).transpose()?;
    let limits = config.as_ref().map_or_else(Limits::default, |config| config.limits.clone());
    let hardening = config.as_ref().map_or_else(Hardening::default, |config| config.hardening);
    let file = options.guest.display().to_string();
    let source = source::read(&options.guest, &limits)?;
    let surface = surface::inspect(&source.bytes)
        .map_err(|problems| Failure::config(format!("guest {file}: {}", problems.join("; it "))))?;
    let bytes = source.bytes.len();
    let description = child::compile(source.bytes, &limits, hardening)?.description;
    let needs = session::needs(&description)?;
    let comparison = match (&config, &needs) {
        (Some(config), Some(needs)) => {
            let properties = Properties::merge(config.properties.clone(), serde_json::Map::new());
            Some(session::policy(config, &properties, Some(needs))?.missing(needs))
        }
        _ => None,
    };
    let findings =
        Findings { file, bytes, sha256: source.sha256, imports: surface.imports, description, needs, comparison };
    let text = if options.json { format!("{:#}\n", findings.to_json()) } else { findings.to_text() };
    Ok(Report::good(text))
}

impl Findings {
    fn to_json(&self) -> Value {
        let description = &self.description;
        let needs: Option<Value> = description.needs.as_ref().and_then(|text| serde_json::from_str(text).ok());
        let comparison = self.comparison.as_ref().map(|comparison| {
            let http: Vec<Value> = comparison
                .http
                .iter()
                .map(|need| {
                    json!({"id": need.id, "to": need.to, "why": need.why, "granted_by": need.granted_by, "missing": need.missing,
                           "grant_line": need.grant_line, "slot_lines": need.slot_lines})
                })
                .collect();
            json!({"http": http, "hidden": comparison.hidden, "expose_line": comparison.expose_line})
        });
        json!({
            "file": self.file, "bytes": self.bytes, "sha256": self.sha256, "name": description.name, "version": description.version,
            "stemcell_formats": description.stemcell_formats, "methods": description.methods, "has_names": description.has_names,
            "imports": self.imports, "needs": needs, "policy": comparison,
        })
    }

    fn to_text(&self) -> String {
        let description = &self.description;
        let mut text = String::new();
        let out = &mut text;
        let _ = writeln!(out, "{} {}, {} KiB", description.name, description.version, self.bytes / 1024);
        let _ = writeln!(out, "pin       \"guest\": {{\"path\": \"{}\", \"sha256\": \"{}\"}}", self.file, self.sha256);
        let _ = writeln!(out, "formats   {}", list(&description.stemcell_formats));
        let _ = writeln!(out, "methods   {}", list(&description.methods));
        let wasi = self.imports.iter().filter(|import| import.starts_with("wasi:")).count();
        let ours: Vec<String> =
            self.imports.iter().filter_map(|import| import.strip_prefix("bosh:cpi/")).map(str::to_owned).collect();
        let _ = writeln!(out, "imports   {} and {wasi} of WASI, without files or sockets", list(&ours));
        if !description.has_names {
            let _ = writeln!(out, "warning   no name section: backtraces will not name functions");
        }
        match &self.needs {
            None => {
                let _ =
                    writeln!(out, "needs     not declared: it gets nothing unless the policy sets `trust_undeclared`");
            }
            Some(needs) => needs_text(out, needs, description),
        }
        if let Some(comparison) = &self.comparison {
            comparison_text(out, comparison);
        }
        text
    }
}

fn needs_text(out: &mut String, needs: &Needs, description: &Description) {
    if needs.http.is_empty() && !needs.registry && !needs.image && needs.expose.is_empty() {
        let _ = writeln!(out, "needs     nothing");
        return;
    }
    // As declared, since that is what the operator judges.
    let declared: Value =
        description.needs.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    for need in declared.get("http").and_then(Value::as_array).into_iter().flatten() {
        let _ = writeln!(out, "needs     {need}");
    }
    for (needed, what) in [(needs.registry, "the registry"), (needs.image, "the stemcell image")] {
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
        let granted = if need.granted_by.is_empty() { "nothing".to_owned() } else { list(&need.granted_by) };
        let _ = writeln!(out, "granted   {} ({}): by {granted}", need.id, need.to);
        for missing in &need.missing {
            let _ = writeln!(out, "missing   {}: {missing}", need.id);
        }
        if let Some(line) = &need.grant_line {
            let _ = writeln!(out, "  add to `http`:  {line}");
        }
        for line in &need.slot_lines {
            let _ = writeln!(out, "  add to a grant's `slots`:  {line}");
        }
    }
    if !comparison.hidden.is_empty() {
        let _ = writeln!(out, "missing   it does not see the properties {}", list(&comparison.hidden));
    }
    if let Some(line) = &comparison.expose_line {
        let _ = writeln!(out, "  set in the policy:  {line}");
    }
}

fn list(items: &[String]) -> String {
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}
