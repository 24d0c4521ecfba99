//! `cargo xtask tidy`: rules that no compiler knows.
//!
//! Rust files stay short enough to be read at once; the runtime and its
//! interface know no cloud by name; a module of the runtime uses modules of lower
//! layers only; no file names a path of the machine it was written on. `rules`
//! judges one text, `layers` all of them; neither does IO. This file reads the texts.

mod layers;
mod rules;
mod source;

use anyhow::{Context, Result, bail};
use layers::File;
use std::fs;
use std::path::{Path, PathBuf};

/// Build results, and what belongs to git itself.
const NOT_OURS: [&str; 2] = [".git", "target"];

pub(crate) fn run(root: &Path) -> Result<()> {
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    paths.sort();
    let mut files = Vec::new();
    for path in &paths {
        let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        // What is not text has no lines or words to judge.
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File { path: path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned(), text });
        }
    }
    let mut problems: Vec<String> = files.iter().flat_map(|file| rules::problems(&file.path, &file.text)).collect();
    problems.extend(layers::problems(&files));
    if !problems.is_empty() {
        bail!("{} untidy:\n      {}", problems.len(), problems.join("\n      "));
    }
    eprintln!("    {} files are tidy", paths.len());
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
            (layers::LIST, "```layers\na\nb\n```\n".to_owned()),
            ("runtime/src/a.rs", "fn nova() {}\nuse crate::b;\n".to_owned()),
            ("runtime/src/b.rs", "".to_owned()),
            ("tests/src/long.rs", "\n".repeat(501)),
            ("target/b.rs", "\n".repeat(501)),
            ("guests/target/c.rs", "\n".repeat(501)),
        ] {
            let file = dir.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let error = run(dir.path()).unwrap_err().to_string();
        assert!(error.starts_with("3 untidy"), "{error}");
        assert!(
            ["runtime/src/a.rs:1", "runtime/src/a.rs:2", "tests/src/long.rs"].iter().all(|place| error.contains(place)),
            "{error}"
        );
    }
}
