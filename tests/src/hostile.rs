//! Guests that no compiler would make, written as WebAssembly text in
//! `tests/hostile/`.
//!
//! A file with a `(component` is taken as it is. A file with a `(module` holds
//! only what it is about; whatever else the world `bosh:cpi` demands is added
//! here: exports that trap, a memory, an allocator, and a `describe` that is
//! all right and lists the methods below. A line `;; world: NAME` says in which of
//! `worlds/` it lives, if it imports or exports more than `bosh:cpi`.

pub mod binary;

use crate::dist;
use binary::{leb, section};
use std::fmt::Write as _;
use std::path::PathBuf;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// What the default `describe` lists: the others answer NotImplemented.
pub const METHODS: [&str; 4] = ["has_vm", "create_vm", "create_disk", "attach_disk"];

/// Exports of the world and their core types: parameters, `p` for i32 and `l`
/// for i64; all answer one i32.
const EXPORTS: [(&str, &str); 21] = [
    ("stemcells@0.1.0#create-stemcell", "pppp"),
    ("stemcells@0.1.0#delete-stemcell", "pp"),
    ("vms@0.1.0#create-vm", "pppppppppppp"),
    ("vms@0.1.0#delete-vm", "pp"),
    ("vms@0.1.0#has-vm", "pp"),
    ("vms@0.1.0#reboot-vm", "pp"),
    ("vms@0.1.0#set-vm-metadata", "pppp"),
    ("vms@0.1.0#calculate-vm-cloud-properties", "lpl"),
    ("disks@0.1.0#create-disk", "lppppp"),
    ("disks@0.1.0#delete-disk", "pp"),
    ("disks@0.1.0#has-disk", "pp"),
    ("disks@0.1.0#attach-disk", "pppp"),
    ("disks@0.1.0#detach-disk", "pppp"),
    ("disks@0.1.0#set-disk-metadata", "pppp"),
    ("disks@0.1.0#get-disks", "pp"),
    ("disks@0.1.0#resize-disk", "ppl"),
    ("disks@0.1.0#update-disk", "pplpp"),
    ("snapshots@0.1.0#snapshot-disk", "pppp"),
    ("snapshots@0.1.0#delete-snapshot", "pp"),
    ("networks@0.1.0#create-network", "pppppppppppp"),
    ("networks@0.1.0#delete-network", "pp"),
];

/// Where the default `describe` keeps its answer; a `describe` of a file's own
/// can answer it, too.
const DESCRIPTION_AT: u32 = 0x1000;

pub fn directory() -> PathBuf {
    dist::root().join("tests/hostile")
}

/// The bytes of `tests/hostile/NAME.wat`, as a component.
pub fn guest(name: &str) -> Vec<u8> {
    let path = directory().join(format!("{name}.wat"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    component(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A component from text, completed if it is a core module.
pub fn component(text: &str) -> Result<Vec<u8>, String> {
    let code = text.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with(";;"));
    if code.is_some_and(|line| line.starts_with("(component")) {
        return wat::parse_str(text).map_err(|error| error.to_string());
    }
    let mut module = wat::parse_str(completed(text)).map_err(|error| error.to_string())?;
    let mut resolve = Resolve::default();
    let encoded = resolve.push_dir(dist::root().join("wit")).and_then(|(package, _)| {
        let world = match text.lines().find_map(|line| line.strip_prefix(";; world: ")) {
            None => resolve.select_world(&[package], Some("cpi"))?,
            Some(name) => {
                let package = resolve.push_file(directory().join("worlds").join(format!("{name}.wit")))?;
                resolve.select_world(&[package], Some("guest"))?
            }
        };
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
        ComponentEncoder::default().module(&module)?.encode()
    });
    encoded.map_err(|error| format!("{error:#}"))
}

/// `small` but for one byte: it has no VM.
pub fn other() -> Vec<u8> {
    let path = directory().join("small.wat");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let other = component(&text.replace(r"\00\00\00\00\01", r"\00\00\00\00\00"));
    other.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A component with one more custom section at its end.
pub fn with_section(component: Vec<u8>, name: &str, data: &[u8]) -> Vec<u8> {
    let content = [leb(name.len()).as_slice(), name.as_bytes(), data].concat();
    [component, section(0, &content)].concat()
}

/// A component with another one in it, which it does not use.
pub fn with_component(component: Vec<u8>, inner: &[u8]) -> Vec<u8> {
    [component, section(4, inner)].concat()
}

/// A component with a module in it that it does not use.
pub fn with_module(component: Vec<u8>, text: &str) -> Vec<u8> {
    let module = wat::parse_str(text).unwrap_or_else(|error| panic!("a module: {error}"));
    [component, section(1, &module)].concat()
}

/// A component that instantiates another module as often beside its own; it must
/// have only one of those.
pub fn with_instances(mut component: Vec<u8>, content: &str, count: usize) -> Vec<u8> {
    let instances = "(core instance (instantiate 1))".repeat(count);
    let text = format!("(component (core module) (core module {content}) {instances})");
    let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{content}: {error}"));
    // Without its header and the first module, which stands for the component's own.
    component.extend_from_slice(bytes.get(18..).unwrap_or_default());
    component
}

fn completed(text: &str) -> String {
    let mut added = String::new();
    if !text.contains("(memory") {
        added.push_str("(memory (export \"memory\") 4)\n");
    }
    if !text.contains("\"cabi_realloc\"") {
        added.push_str(ALLOCATOR);
    }
    if !text.contains("describe@0.1.0#describe") {
        added.push_str("(func (export \"bosh:cpi/describe@0.1.0#describe\") (result i32) (i32.const 0x1000))\n");
    }
    if !text.contains("(data (i32.const 0x1000)") {
        added.push_str(&description("hostile", "1.0.0", &["hostile-raw"], &METHODS));
    }
    for (name, parameters) in EXPORTS.iter().filter(|(name, _)| !text.contains(name)) {
        let parameters = parameters.replace('p', "i32 ").replace('l', "i64 ");
        let _ = writeln!(added, "(func (export \"bosh:cpi/{name}\") (param {parameters}) (result i32) unreachable)");
    }
    match text.trim_end().strip_suffix(')') {
        Some(open) => format!("{open}\n{added})"),
        None => text.to_owned(),
    }
}

/// Gives away memory from 128 KiB on and never takes it back.
const ALLOCATOR: &str = r#"
(global $heap (mut i32) (i32.const 0x20000))
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (local $at i32)
  (local.set $at (global.get $heap))
  (global.set $heap (i32.and (i32.add (i32.add (global.get $heap) (local.get 3)) (i32.const 15)) (i32.const -16)))
  (local.get $at))
"#;

/// The record that `describe` answers, as a data segment: four pairs of pointer
/// and length (name, version, formats, methods), then the lists, then the text.
fn description(name: &str, version: &str, formats: &[&str], methods: &[&str]) -> String {
    let count = |length: usize| u32::try_from(length).unwrap_or(0);
    let (formats_at, formats_count, methods_count) = (DESCRIPTION_AT + 32, count(formats.len()), count(methods.len()));
    let methods_at = formats_at + 8 * formats_count;
    let strings_at = methods_at + 8 * methods_count;
    let (mut strings, mut places) = (String::new(), Vec::new());
    for text in [name, version].iter().chain(formats).chain(methods) {
        places.push((strings_at + count(strings.len()), count(text.len())));
        strings.push_str(text);
    }
    let lists = [(formats_at, formats_count), (methods_at, methods_count)];
    let pairs = places[..2].iter().chain(&lists).chain(&places[2..]);
    let bytes = pairs.flat_map(|(pointer, length)| [*pointer, *length]).flat_map(u32::to_le_bytes);
    let mut data = String::new();
    for byte in bytes.chain(strings.bytes()) {
        let _ = write!(data, "\\{byte:02x}");
    }
    format!("(data (i32.const 0x1000) \"{data}\")\n")
}

/// A guest that has these methods, with code for them.
pub fn implementing(methods: &[&str], code: &str) -> Vec<u8> {
    let text = format!("(module {code} {})", description("hostile", "1.0.0", &["hostile-raw"], methods));
    component(&text).unwrap_or_else(|error| panic!("{code}: {error}"))
}

/// A guest that says this about itself.
pub fn describing(name: &str, version: &str, formats: &[&str], methods: &[&str]) -> Vec<u8> {
    let description = description(name, version, formats, methods);
    // All that it says lies in its memory, and then some.
    let pages = description.len() / (3 * 65_536) + 4;
    let text = format!("(module (memory (export \"memory\") {pages}) {description})");
    component(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_module_becomes_a_whole_guest() {
        component("(module)").unwrap();
    }

    #[test]
    fn a_section_is_appended_with_its_length() {
        let with = with_section(Vec::new(), "ab", &[7; 200]);
        assert_eq!(&with[..6], [0, 203 & 0x7f | 0x80, 1, 2, b'a', b'b']);
        assert_eq!(with.len(), 206);
    }
}
