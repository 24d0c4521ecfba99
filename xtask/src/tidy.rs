//! `cargo xtask tidy`: checks rules that the compiler does not check.
//!
//! Rust files have at most 500 lines; the runtime and its interface contain no name of a
//! cloud; a module of the runtime uses only modules of lower layers; no file contains a
//! path of the machine it was written on; docs/messages.md lists the messages of the code.
//! `rules` checks one file, `layers` and `messages` check all files together; `tree` reads
//! them.

mod layers;
mod rules;

use crate::messages;
use crate::tree;
use anyhow::{Result, bail};
use std::path::Path;

pub(crate) fn run(root: &Path) -> Result<()> {
    let files = tree::text_files(root)?;
    let mut problems: Vec<String> = files.iter().flat_map(|file| rules::problems(&file.path, &file.text)).collect();
    problems.extend(layers::problems(&files));
    problems.extend(messages::problem(&files));
    if !problems.is_empty() {
        let plural = if problems.len() == 1 { "" } else { "s" };
        bail!("{} problem{plural}:\n      {}", problems.len(), problems.join("\n      "));
    }
    eprintln!("    {} files are tidy", files.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn every_problem_is_listed_and_build_results_are_ignored() {
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
        assert!(error.starts_with("4 problems"), "{error}");
        assert!(
            ["runtime/src/a.rs:1", "runtime/src/a.rs:2", "tests/src/long.rs", messages::PAGE]
                .iter()
                .all(|place| error.contains(place)),
            "{error}"
        );
    }
}
