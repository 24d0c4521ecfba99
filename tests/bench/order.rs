//! Which functions a call runs, for the linker to lay side by side: a page that
//! is touched is a page that a process per call pays for.
//!
//! Valgrind tells, and hardening would hold it as well: what that runs is taken
//! by its name.

use crate::Bench;
use crate::https;
use crate::starts::{create_vm, request};
use serde_json::json;
use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use tests::{Job, dist};

const HARDENING: [&str; 3] = ["wasm_cpi9hardening", "8landlock", "11seccompiler"];

/// Names as the linker knows them, in the order in which they are met.
pub(crate) fn names(bench: &Bench) -> Result<Vec<String>, String> {
    let program = fs::read(dist::hot()).map_err(|error| format!("{}: {error}", dist::hot().display()))?;
    let symbols: HashSet<&str> =
        program.split(|byte| *byte == 0).filter_map(|text| std::str::from_utf8(text).ok()).collect();
    let https::Cloud { job: cloud, request: https, server: _alive, .. } = https::Cloud::start(bench);
    let mut names = Vec::new();
    for (job, name, request) in [
        (Job::default(), "info.json", request("info", json!([]))),
        (Job::default(), "create_vm.json", create_vm(json!({}))),
        (cloud, "https.json", https),
    ] {
        let job = job.configure(|config| config["hardening"] = json!("off"));
        let request = bench.write(name, request.to_string());
        names.extend(called(bench, &job.config_file(), &request)?);
    }
    let mut held: Vec<String> = symbols
        .iter()
        .filter(|symbol| symbol.starts_with("_ZN") && HARDENING.iter().any(|name| symbol.contains(name)))
        .map(|symbol| (*symbol).to_owned())
        .collect();
    held.sort();
    names.extend(held);
    let mut seen = HashSet::new();
    names.retain(|name| symbols.contains(name.as_str()) && seen.insert(name.clone()));
    Ok(names)
}

fn called(bench: &Bench, config: &Path, request: &Path) -> Result<Vec<String>, String> {
    let out = bench.write("callgrind.out", "");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .args([&dist::hot(), Path::new("--config"), config])
        .stdin(File::open(request).map_err(|error| error.to_string())?)
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    if !answer.contains(r#""error":null"#) {
        return Err(format!("{}: {answer}", request.display()));
    }
    let profile = fs::read_to_string(&out).map_err(|error| error.to_string())?;
    // `fn=(7) name`, or `cfn=` for one that is called; a recursion ends in `'2`.
    let function = |line: &str| {
        let (_, name) = line.strip_prefix('c').unwrap_or(line).strip_prefix("fn=")?.split_once(") ")?;
        Some(name.split('\'').next().unwrap_or(name).to_owned())
    };
    Ok(profile.lines().filter_map(function).collect())
}
