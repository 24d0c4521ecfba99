//! `cargo xtask tidy`: rules that no compiler knows.
//!
//! Rust files stay short enough to be read at once; the runtime and its
//! interface know no cloud by name; the policy names nothing that does IO; no file
//! speaks of the machine it was written on. `rules` decides about one text and does no IO; this file finds the texts.

mod pure;
mod rules;

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Build results, and what belongs to git itself.
const NOT_OURS: [&str; 2] = [".git", "target"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    files.sort();
    let mut problems = Vec::new();
    for file in &files {
        let bytes = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
        // What is not text has no lines or words to judge.
        if let Ok(text) = String::from_utf8(bytes) {
            let path = file.strip_prefix(root).unwrap_or(file).to_string_lossy().into_owned();
            problems.extend(rules::problems(&path, &text));
        }
    }
    if !problems.is_empty() {
        bail!("{} untidy:\n      {}", problems.len(), problems.join("\n      "));
    }
    eprintln!("    {} files are tidy", files.len());
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| format!("{} cannot be read", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        // In a second worktree `.git` is a file, which names a directory of this machine.
        if NOT_OURS.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_is_listed_and_build_results_are_not_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("runtime/src/a.rs", "fn nova() {}\n".to_owned()),
            ("tests/src/long.rs", "\n".repeat(501)),
            ("target/b.rs", "\n".repeat(501)),
            ("guests/target/c.rs", "\n".repeat(501)),
        ] {
            let file = dir.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let error = run(dir.path()).unwrap_err().to_string();
        assert!(error.starts_with("2 untidy"), "{error}");
        assert!(error.contains("runtime/src/a.rs:1") && error.contains("tests/src/long.rs"), "{error}");
    }
}
