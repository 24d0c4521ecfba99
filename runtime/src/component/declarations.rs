//! Reads from a guest's file, before it is compiled, whether it is a component, what it imports,
//! and which needs it declares.

use crate::failure::{Failure, Problem};
use crate::host::wasi;
use crate::log::escape;
use wasm_cpi_checks::Check;
use wasmparser::{BinaryReaderError, Parser, Payload, TypeRef};

/// The custom section in which a guest declares what it needs.
pub const NEEDS_SECTION: &str = "bosh-cpi:needs";

/// The version of `wit/` that this runtime offers.
pub const WORLD_VERSION: &str = "0.1.0";

const INTERFACES: &[&str] = &["agent", "clock", "config", "http", "image", "log", "random", "registry", "types"];

/// The longest name that is shown. No interface has a longer one.
const MAX_SHOWN: usize = 200;

/// What a guest's file declares: its imports, its needs, and whether it names its functions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Declarations {
    pub imports: Vec<String>,
    pub needs: Option<String>,
    pub has_names: bool,
}

/// Returns the declarations of a file, or every reason why the file is rejected.
pub fn inspect(bytes: &[u8]) -> Result<Declarations, Vec<Problem>> {
    if !Parser::is_component(bytes) {
        return Err(vec![Problem::new(not_a_component(bytes))]);
    }
    let mut declarations = Declarations::default();
    let mut problems = Vec::new();
    let mut depth = 0_usize;
    // The memories of the core module that is being read. Core modules do not nest.
    let (mut memories, mut several_memories) = (0_u64, false);
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = match payload {
            Ok(payload) => payload,
            Err(error) => return Err(vec![Problem::new(damaged(&error))]),
        };
        match payload {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => {
                depth = depth.saturating_sub(1);
                several_memories |= memories > 1;
                memories = 0;
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    match import {
                        Ok(import) => memories += u64::from(matches!(import.ty, TypeRef::Memory(_))),
                        Err(error) => return Err(vec![Problem::new(damaged(&error))]),
                    }
                }
            }
            Payload::MemorySection(section) => memories += u64::from(section.count()),
            Payload::ComponentImportSection(imports) if depth == 1 => {
                for import in imports {
                    match import {
                        Ok(import) => declarations.imports.push(import.name.name.to_owned()),
                        Err(error) => return Err(vec![Problem::new(damaged(&error))]),
                    }
                }
            }
            Payload::CustomSection(section) if section.name() == NEEDS_SECTION => {
                let twice = || {
                    Problem::new(format!(
                        "declares its needs twice (section {NEEDS_SECTION}); build it with one such section"
                    ))
                };
                problems.extend(Check::NeedsTwice.ensure(declarations.needs.is_none(), twice).err());
                match std::str::from_utf8(section.data()) {
                    Ok(text) => declarations.needs = Some(text.to_owned()),
                    Err(_) => {
                        let what =
                            format!("declares needs that are not UTF-8 (section {NEEDS_SECTION}); write them in UTF-8");
                        problems.push(Problem::new(what));
                    }
                }
            }
            Payload::CustomSection(section) if section.name() == "name" => declarations.has_names = true,
            _ => {}
        }
    }
    // The engine accepts several memories, because its adapters between nested components have one for each side.
    let several =
        || Problem::new("has a core module with several memories; build it without the proposal multi-memory");
    problems.extend(Check::MultiMemory.ensure(!several_memories, several).err());
    let refused = |import: &String| Check::Imports.reject(refusal(import), Problem::new).err();
    problems.extend(declarations.imports.iter().filter_map(refused));
    if problems.is_empty() { Ok(declarations) } else { Err(problems) }
}

/// Returns one failure for all reasons why a guest's file is rejected. Its message starts with `subject`
/// and has all reasons, so its check is the first that one of them has.
pub fn to_failure(subject: &str, problems: &[Problem]) -> Failure {
    let texts: Vec<&str> = problems.iter().map(|problem| problem.text.as_str()).collect();
    let reports: Vec<String> = problems.iter().map(Problem::text_with_code).collect();
    let check = problems.iter().find_map(|problem| problem.check);
    let failure = Failure::config(format!("{subject} {}", texts.join("; it "))).with_detail(reports.join("\n"));
    Failure { check, ..failure }
}

/// Returns why an import is not offered, if it is not. Names are escaped, because the guest chooses them.
fn refusal(import: &str) -> Option<String> {
    let shown = |name: &str| escape(name, MAX_SHOWN);
    if let Some(ours) = import.strip_prefix("bosh:cpi/") {
        let (interface, version) = ours.split_once('@').unwrap_or((ours, ""));
        if version != WORLD_VERSION {
            return Some(format!(
                "imports bosh:cpi@{}, but this runtime offers {WORLD_VERSION}; build it with the SDK of that version",
                shown(version)
            ));
        }
        if !INTERFACES.contains(&interface) {
            return Some(format!(
                "imports {}, which bosh:cpi does not have; build it with this runtime's SDK",
                shown(import)
            ));
        }
        return None;
    }
    if wasi::is_offered(import) {
        return None;
    }
    let why = match import.split('/').next().unwrap_or_default() {
        "wasi:http" => "; use bosh:cpi/http, which the operator's policy governs",
        _ => "",
    };
    Some(format!("imports {}, which this runtime does not offer{why}", shown(import)))
}

/// Returns the parser's error in one line.
fn damaged(error: &BinaryReaderError) -> String {
    let words: Vec<String> = error.to_string().split_whitespace().map(str::to_owned).collect();
    format!("is a damaged component: {}", escape(&words.join(" "), MAX_SHOWN))
}

fn not_a_component(bytes: &[u8]) -> String {
    let what = match bytes {
        [] => "is empty",
        _ if Parser::is_core_wasm(bytes) => {
            "is a core module, not a component: build it for wasm32-wasip2, or turn it into a component with wit-component"
        }
        [0x7f, b'E', b'L', b'F', ..] => "is native or precompiled code (ELF); use the .wasm component itself",
        [b'(', ..] => "is WebAssembly text; use the binary component",
        _ => "is not WebAssembly; use a component built for wasm32-wasip2",
    };
    what.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_that_is_not_a_component_is_rejected_with_what_it_is() {
        for (bytes, said) in [
            (&b""[..], "is empty"),
            (b"\0asm\x01\0\0\0", "core module"),
            (b"\x7fELF", "ELF"),
            (b"(component)", "text"),
            (b"#!/bin/sh", "not WebAssembly"),
            (b"\0asm\x0d\0\x01\0\xff", "damaged"),
        ] {
            assert!(inspect(bytes).unwrap_err()[0].text.contains(said), "{said}");
        }
    }

    #[test]
    fn damage_is_reported_in_one_line() {
        let problems = inspect(b"\0asm\x0d\0\x01\0\x01\x04abcd").unwrap_err();
        assert!(problems[0].text.contains("damaged") && !problems[0].text.contains('\n'), "{problems:?}");
    }

    #[test]
    fn several_memories_in_one_core_module_are_refused_and_one_in_each_of_several_is_not() {
        // A component with core modules, each with an import section and a memory section.
        let module = |imported: u8, own: u8| {
            let mut imports = vec![imported];
            (0..imported).for_each(|_| imports.extend(b"\0\0\x02\0\0"));
            let own: Vec<u8> = [vec![own], vec![0; 2 * usize::from(own)]].concat();
            let section = |id: u8, content: &[u8]| [&[id, u8::try_from(content.len()).unwrap()], content].concat();
            section(1, &[b"\0asm\x01\0\0\0".to_vec(), section(2, &imports), section(5, &own)].concat())
        };
        let component = |modules: &[Vec<u8>]| [b"\0asm\x0d\0\x01\0".to_vec(), modules.concat()].concat();
        for (imported, own) in [(0, 2), (1, 1), (2, 0)] {
            let problems = inspect(&component(&[module(0, 1), module(imported, own), module(2, 2)])).unwrap_err();
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert_eq!(problems[0].check, Some(Check::MultiMemory), "{problems:?}");
        }
        inspect(&component(&[module(0, 1), module(1, 0), module(0, 1)])).unwrap();
    }

    #[test]
    fn imports_outside_the_world_are_refused_with_a_reason() {
        for (import, said) in [
            ("wasi:http/outgoing-handler@0.2.0", "use bosh:cpi/http"),
            ("bosh:cpi/http@0.2.0", "offers 0.1.0"),
            ("bosh:cpi/files@0.1.0", "does not have"),
            ("acme:x/y", "this runtime does not offer"),
            ("acme:x/\u{1b}[2J\u{202e}", "acme:x/\\u{1b}[2J\\u{202e}, which this runtime does not offer"),
            ("bosh:cpi/x@\u{7}", "bosh:cpi@\\u{7}"),
        ] {
            assert!(refusal(import).unwrap().contains(said), "{import}");
        }
        assert_eq!(refusal("bosh:cpi/http@0.1.0"), None);
        assert_eq!(refusal("wasi:io/poll@0.2.3"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(tail in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
            bytes.extend(tail);
            let _ = inspect(&bytes);
        }
    }
}
