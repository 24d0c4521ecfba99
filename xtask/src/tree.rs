//! Reads the text files of the repository.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Names of files and directories that are not read: build results and git's own data.
const IGNORED: [&str; 2] = [".git", "target"];

/// One file of the repository.
pub(crate) struct File {
    /// The path below the root.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns all files that are text, in the order of their paths.
pub(crate) fn text_files(root: &Path) -> Result<Vec<File>> {
    let mut paths = Vec::new();
    collect(root, &mut paths)?;
    paths.sort();
    let mut files = Vec::new();
    for path in &paths {
        let bytes = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
        if let Ok(text) = String::from_utf8(bytes) {
            files.push(File { path: path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned(), text });
        }
    }
    Ok(files)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(directory).with_context(|| format!("{} cannot be read", directory.display()))?;
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        // In a second worktree `.git` is a file that contains a path of this machine.
        if IGNORED.iter().any(|name| entry.file_name() == *name) {
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

/// Returns true for a file that contains only tests.
pub(crate) fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}
