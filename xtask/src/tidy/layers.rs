//! The layers of the runtime: a module uses only modules of lower layers.
//!
//! ARCHITECTURE.md lists the layers in a code block named `layers`, one line per layer
//! from bottom to top. Modules of one line do not use each other. The list is compared
//! with the files, so that it cannot become outdated.

use crate::source;
use crate::tree::{File, is_test};
use std::collections::BTreeSet;

/// The file with the list.
pub(super) const LIST: &str = "ARCHITECTURE.md";

/// The directory of the modules.
const SOURCES: &str = "runtime/src/";

/// The files that declare the modules; they may use all of them.
const ROOTS: [&str; 2] = ["lib.rs", "main.rs"];

struct Layers(Vec<Vec<String>>);

/// Returns the errors in the list, and every use of a module that is not in a lower layer.
pub(super) fn problems(files: &[File]) -> Vec<String> {
    let list = files.iter().find(|file| file.path == LIST).and_then(|file| Layers::parse(&file.text));
    let Some(layers) = list else {
        return vec![format!("{LIST}: has no code block named `layers`; add one that lists all modules")];
    };
    let mut problems = layers.list_problems(files.iter().filter_map(|file| module(&file.path)).collect());
    for file in files {
        let Some(module) = module(&file.path).filter(|_| !is_test(&file.path)) else { continue };
        for (line, used) in used_modules(&source::code(&file.text)) {
            if let Some(why) = layers.problem(module, &used) {
                problems.push(format!("{}:{line}: {why}", file.path));
            }
        }
    }
    problems
}

/// Returns the top-level module that a file of the runtime belongs to.
fn module(path: &str) -> Option<&str> {
    let path = path.strip_prefix(SOURCES).filter(|path| !ROOTS.contains(path))?;
    match path.split_once('/') {
        Some((directory, _)) => Some(directory),
        None => path.strip_suffix(".rs"),
    }
}

impl Layers {
    fn parse(document: &str) -> Option<Layers> {
        let (_, block) = document.split_once("```layers\n")?;
        let (block, _) = block.split_once("```")?;
        let names = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        Some(Layers(block.lines().map(names).collect()))
    }

    fn position(&self, module: &str) -> Option<usize> {
        self.0.iter().position(|layer| layer.iter().any(|name| name == module))
    }

    /// Returns the modules that the list lacks, lists twice, or lists without a file.
    fn list_problems(&self, modules: BTreeSet<&str>) -> Vec<String> {
        let mut problems = Vec::new();
        let mut listed = BTreeSet::new();
        for name in self.0.iter().flatten() {
            if !listed.insert(name.as_str()) {
                problems.push(format!("{LIST}: the layers list the module `{name}` twice"));
            } else if !modules.contains(name.as_str()) {
                problems.push(format!("{LIST}: the layers list `{name}`, which is not a module of {SOURCES}"));
            }
        }
        let unlisted = modules.difference(&listed);
        problems.extend(unlisted.map(|name| format!("{LIST}: the layers do not list the module `{name}`")));
        problems
    }

    /// Returns why `module` may not use `used`.
    fn problem(&self, module: &str, used: &str) -> Option<String> {
        if module == used {
            return None;
        }
        // A module that is not listed is reported once, by `list_problems`.
        let own = self.position(module)?;
        match self.position(used) {
            None => Some(format!("`crate::{used}` is not a module of the layers in {LIST}")),
            Some(other) if other < own => None,
            Some(other) if other == own => Some(format!("`{module}` uses `{used}`, which is in the same layer")),
            Some(_) => Some(format!("`{module}` uses `{used}`, which is in a higher layer")),
        }
    }
}

/// Returns the first name of every path that starts with `crate::`, with its line number.
fn used_modules(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, start) in code.match_indices("crate::") {
        if code[..at].ends_with(is_part_of_a_name) {
            continue;
        }
        let line = 1 + code[..at].matches('\n').count();
        let names = first_names(code[at + start.len()..].trim_start());
        found.extend(names.into_iter().map(|name| (line, name)));
    }
    found
}

/// Returns the name at the start of the text; for a list in braces, the first name of each entry.
fn first_names(text: &str) -> Vec<String> {
    let Some(list) = text.strip_prefix('{') else {
        return vec![text.chars().take_while(|c| is_part_of_a_name(*c)).collect()];
    };
    let mut names = Vec::new();
    let (mut depth, mut at_start) = (0, true);
    for (at, c) in list.char_indices() {
        match c {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            c if at_start && is_part_of_a_name(c) => {
                names.extend(first_names(&list[at..]));
                at_start = false;
            }
            _ => {}
        }
    }
    names
}

fn is_part_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests;
