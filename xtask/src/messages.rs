//! `cargo xtask messages`: writes docs/messages.md, the list of every message that a user
//! can see, so that all of them can be read at once and a change is visible in a diff.
//!
//! `rust` finds the messages of a Rust file and `templates` those of a template of the
//! release. This module chooses the files, orders them and writes the page. `tidy` fails if
//! the page is out of date.

mod rust;
mod templates;
mod tokens;

use crate::files;
use crate::tree::{self, File};
use anyhow::Result;
use std::path::Path;

/// The page, below the root of the repository.
pub(crate) const PAGE: &str = "docs/messages.md";

/// Files and directories in the order of a request through the code; the files of a directory are in
/// the order of their names. A file belongs to the first entry that its path starts with, so
/// `runtime/src/` stands for the modules that no other entry names.
const REVIEW_ORDER: [&str; 33] = [
    "runtime/run/src/",
    "runtime/src/main.rs",
    "runtime/src/startup",
    "runtime/src/commands",
    "runtime/src/call",
    "runtime/src/rpc",
    "runtime/src/config",
    "runtime/src/limits",
    "runtime/src/trust",
    "runtime/src/component",
    "runtime/src/effective_policy",
    "runtime/policy/src/",
    "runtime/src/agent",
    "runtime/src/registry.rs",
    "runtime/src/registry/",
    "runtime/src/image",
    "runtime/src/host",
    "runtime/src/net",
    "runtime/src/sandbox",
    "runtime/src/lock_down",
    "runtime/src/audit",
    "runtime/src/log",
    "runtime/src/failure",
    "runtime/src/vault",
    "runtime/src/registry_server",
    "runtime/src/",
    "guests/sdk/src/",
    "guests/openstack/src/",
    "guests/aws/src/",
    "guests/probe/src/",
    "release/jobs/wasm_cpi/templates/",
    "release/jobs/",
    "release/packages/",
];

const HEAD: &str = "\
# Messages

This page is for reviewers of messages. It lists every text that the programs, the Rust SDK, the guests and the templates of the release
can show to a user: errors, log lines, reports and help. Directories are in the order of a request through the code, and files within
them in the order of their names.

`cargo xtask messages` writes this page from the sources, and `cargo xtask tidy` fails if it is out of date. Change a message in its
source, run the command, and review the difference. The meanings and remedies of refusals are in [codes.md](codes.md).

Check that each error says:

1. **who failed**: the guest, the cloud, a server, a file of the operator, or this runtime;
2. **what was expected**;
3. **what was found**, without a value that may be a secret;
4. **what to do**.

A message is one line; `{…}` is a value that the code inserts, and further lines of one message are indented. If the code builds a
message from several texts, they are consecutive lines. Some lines are parts of a protocol or of a file and not messages, because the
command lists every text with a blank. It leaves out tests and the texts of assertions. A text that a file contains twice is listed once.
";

pub(crate) fn run(root: &Path) -> Result<()> {
    let page = page(&tree::text_files(root)?);
    files::write(&root.join(PAGE), &page, 0o644)?;
    eprintln!("    {PAGE} is written; review what `git diff {PAGE}` shows");
    Ok(())
}

/// Returns what is wrong if the page does not list the messages of the files.
pub(crate) fn problem(files: &[File]) -> Option<String> {
    let found = files.iter().find(|file| file.path == PAGE).map(|file| file.text.as_str());
    let is_current = found == Some(page(files).as_str());
    (!is_current).then(|| {
        format!(
            "{PAGE}: does not list the messages of the sources; run `cargo xtask messages` and review the difference"
        )
    })
}

/// Returns the text of the page.
fn page(files: &[File]) -> String {
    let not_shipped = modules_not_shipped(files);
    let ships = |file: &File| !not_shipped.iter().any(|module| is_of_module(&file.path, module));
    let mut ordered: Vec<(usize, &File)> =
        files.iter().filter(|file| ships(file)).filter_map(|file| Some((position(&file.path)?, file))).collect();
    // A module's own file comes before the files of its directory: `net.rs`, then `net/client.rs`.
    ordered.sort_by_key(|(position, file)| (*position, file.path.replace(".rs", "").replace('/', "\0")));
    let mut page = HEAD.to_owned();
    for (_, file) in ordered {
        let messages =
            if file.path.ends_with(".rs") { rust::messages(&file.text) } else { templates::messages(&file.text) };
        if !messages.is_empty() {
            page.push_str(&format!("\n## {}\n\n", file.path));
        }
        for (index, message) in messages.iter().enumerate() {
            if !messages[..index].contains(message) {
                page.push_str(&lines(message));
            }
        }
    }
    page
}

/// Returns the position of a file in the review order, if the file can have messages.
fn position(path: &str) -> Option<usize> {
    let is_source = path.ends_with(".rs") && !tree::is_test(path);
    let is_template = path.starts_with("release/") && !path.ends_with(".rs");
    let position = REVIEW_ORDER.iter().position(|start| path.starts_with(start))?;
    (is_source || is_template).then_some(position)
}

/// Returns the paths, without `.rs`, of the modules that only tests or a feature for tests compile.
fn modules_not_shipped(files: &[File]) -> Vec<String> {
    let mut modules = Vec::new();
    for file in files.iter().filter(|file| position(&file.path).is_some()) {
        let Some(path) = file.path.strip_suffix(".rs") else { continue };
        let directory = path.strip_suffix("/lib").or_else(|| path.strip_suffix("/main")).unwrap_or(path);
        modules.extend(rust::modules_not_shipped(&file.text).iter().map(|name| format!("{directory}/{name}")));
    }
    modules
}

/// Returns true for the file of a module, and for files in its directory.
fn is_of_module(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// Returns a message as lines of a code block, which shows every character as it is.
fn lines(message: &str) -> String {
    let mut text = String::new();
    for (index, line) in message.trim().lines().enumerate() {
        let indent = if index == 0 { "    " } else { "        " };
        text.push_str(format!("{indent}{line}").trim_end());
        text.push('\n');
    }
    text
}

/// Returns true for a text with a blank and with a word outside of the values in braces.
fn is_message(text: &str) -> bool {
    let (mut depth, mut letters, mut has_word) = (0_usize, 0, false);
    for c in text.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letters = if depth == 0 && c.is_alphabetic() { letters + 1 } else { 0 };
        has_word |= letters > 1;
    }
    has_word && text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests;
