//! Which functions a call runs, for the linker to lay side by side: a page that
//! is touched is a page that a process per call pays for.
//!
//! Valgrind tells, and hardening would hold it as well: what that runs is taken
//! by its name. So is what the C library would run on another processor than
//! valgrind's.

use crate::https;
use crate::starts::{create_vm, request};
use serde_json::json;
use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use tests::{Job, dist, elf};

const HARDENING: [&str; 3] = ["wasm_cpi9hardening", "8landlock", "11seccompiler"];

/// Names as the linker knows them, in the order in which they are met, below the
/// compiler that gave them.
pub(crate) fn write(list: &Path) -> Result<(), String> {
    let files = tempfile::tempdir().map_err(|error| format!("no temporary directory: {error}"))?;
    let symbols = elf::symbols(&dist::hot());
    let https::Cloud { job: cloud, request: https, server: _alive, .. } = https::Cloud::start(files.path());
    let mut names = Vec::new();
    for (job, request) in
        [(Job::default(), request("info", json!([]))), (Job::default(), create_vm(json!({}))), (cloud, https)]
    {
        let job = job.configure(|config| config["hardening"] = json!("off"));
        let file = files.path().join("request.json");
        tests::job::write(&file, request.to_string().as_bytes());
        names.extend(called(files.path(), &job.config_file(), &file)?);
    }
    let families: HashSet<String> = names.iter().filter_map(|name| family(name)).collect();
    let siblings = symbols.keys().filter(|name| family(name).is_some_and(|family| families.contains(&family)));
    names.extend(siblings.cloned());
    let held = symbols.keys().filter(|name| HARDENING.iter().any(|part| name.contains(part)));
    names.extend(held.cloned());
    let mut seen = HashSet::new();
    names.retain(|name| symbols.contains_key(name) && seen.insert(name.clone()));
    let text = format!("# {}\n{}\n", elf::compiler(), names.join("\n"));
    tests::job::write(list, text.as_bytes());
    Ok(())
}

/// What `__memmove_avx_unaligned` and `__memmove_evex_unaligned` have in common.
fn family(name: &str) -> Option<String> {
    let at = ["_sse2", "_sse4", "_ssse3", "_avx", "_evex"].iter().filter_map(|processor| name.find(processor)).min()?;
    name.starts_with("__").then(|| name[..at].to_owned())
}

fn called(files: &Path, config: &Path, request: &Path) -> Result<Vec<String>, String> {
    let out = files.join("callgrind.out");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .args([&dist::hot(), Path::new("--config"), config])
        .stdin(File::open(request).map_err(|error| error.to_string())?)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let (answer, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !answer.contains(r#""error":null"#) {
        return Err(format!("no call to take them from: {answer}\n{told}"));
    }
    let profile = fs::read_to_string(&out).map_err(|error| error.to_string())?;
    // `fn=(7) name`, or `cfn=` for one that is called; a recursion ends in `'2`.
    let function = |line: &str| {
        let (_, name) = line.strip_prefix('c').unwrap_or(line).strip_prefix("fn=")?.split_once(") ")?;
        Some(name.split('\'').next().unwrap_or(name).to_owned())
    };
    Ok(profile.lines().filter_map(function).collect())
}
