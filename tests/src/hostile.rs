//! Guests that no compiler would produce, written as WebAssembly text in
//! `tests/hostile/`.
//!
//! A file with a `(component` is used as it is. A file with a `(module` contains
//! only the part under test. This module adds everything else that the world
//! `bosh:cpi` requires: exports that trap, a memory, an allocator, and a correct
//! `describe` that lists the methods below. A line `;; world: NAME` selects a world
//! from `worlds/`, for modules that import or export more than `bosh:cpi`.

pub mod binary;

use crate::dist;
use binary::{leb, section};
use std::fmt::Write as _;
use std::path::PathBuf;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// The methods that the default `describe` lists. All others return NotImplemented.
pub const METHODS: [&str; 4] = ["has_vm", "create_vm", "create_disk", "attach_disk"];

/// The exports of the world with their core parameter types, `p` for i32 and `l`
/// for i64. All return one i32.
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

/// The address of the record that the default `describe` returns. A `describe` in a
/// file can return it, too.
const DESCRIPTION_AT: u32 = 0x1000;

pub fn directory() -> PathBuf {
    dist::root().join("tests/hostile")
}

/// Returns `tests/hostile/NAME.wat` as the bytes of a component.
pub fn guest(name: &str) -> Vec<u8> {
    let path = directory().join(format!("{name}.wat"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    component(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Compiles text to a component; a core module is completed first.
pub fn component(text: &str) -> Result<Vec<u8>, String> {
    let code = text.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with(";;"));
    if code.is_some_and(|line| line.starts_with("(component")) {
        return wat::parse_str(text).map_err(|error| error.to_string());
    }
    let mut module = wat::parse_str(complete_module(text)).map_err(|error| error.to_string())?;
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

/// Returns the guest `small` with one byte changed: its `has_vm` returns false.
pub fn small_without_vm() -> Vec<u8> {
    let path = directory().join("small.wat");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let guest = component(&text.replace(r"\00\00\00\00\01", r"\00\00\00\00\00"));
    guest.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Appends a custom section to a component.
pub fn with_section(component: Vec<u8>, name: &str, data: &[u8]) -> Vec<u8> {
    let content = [leb(name.len()).as_slice(), name.as_bytes(), data].concat();
    [component, section(0, &content)].concat()
}

/// Appends an unused inner component to a component.
pub fn with_component(component: Vec<u8>, inner: &[u8]) -> Vec<u8> {
    [component, section(4, inner)].concat()
}

/// Appends an unused core module to a component.
pub fn with_module(component: Vec<u8>, text: &str) -> Vec<u8> {
    let module = wat::parse_str(text).unwrap_or_else(|error| panic!("a module: {error}"));
    [component, section(1, &module)].concat()
}

/// Appends a core module to a component and instantiates it `count` times. The
/// component must have exactly one core module.
pub fn with_instances(mut component: Vec<u8>, content: &str, count: usize) -> Vec<u8> {
    let instances = "(core instance (instantiate 1))".repeat(count);
    let text = format!("(component (core module) (core module {content}) {instances})");
    let bytes = wat::parse_str(text).unwrap_or_else(|error| panic!("{content}: {error}"));
    // Skips the header and the first module, which stands for the component's own.
    component.extend_from_slice(bytes.get(18..).unwrap_or_default());
    component
}

fn complete_module(text: &str) -> String {
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

/// Allocates memory from 128 KiB on and never frees it.
const ALLOCATOR: &str = r#"
(global $heap (mut i32) (i32.const 0x20000))
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
  (local $at i32)
  (local.set $at (global.get $heap))
  (global.set $heap (i32.and (i32.add (i32.add (global.get $heap) (local.get 3)) (i32.const 15)) (i32.const -16)))
  (local.get $at))
"#;

/// Returns a data segment with the record of `describe`: four pairs of pointer and
/// length (name, version, formats, methods), then the lists, then the strings.
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

/// Returns a guest that lists these methods and contains this code.
pub fn implementing(methods: &[&str], code: &str) -> Vec<u8> {
    let text = format!("(module {code} {})", description("hostile", "1.0.0", &["hostile-raw"], methods));
    component(&text).unwrap_or_else(|error| panic!("{code}: {error}"))
}

/// Returns a guest with this description.
pub fn describing(name: &str, version: &str, formats: &[&str], methods: &[&str]) -> Vec<u8> {
    let description = description(name, version, formats, methods);
    // The memory must hold the whole description.
    let pages = description.len() / (3 * 65_536) + 4;
    let text = format!("(module (memory (export \"memory\") {pages}) {description})");
    component(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_module_is_completed_to_a_guest() {
        component("(module)").unwrap();
    }

    #[test]
    fn a_section_is_appended_with_its_length() {
        let with = with_section(Vec::new(), "ab", &[7; 200]);
        assert_eq!(&with[..6], [0, 203 & 0x7f | 0x80, 1, 2, b'a', b'b']);
        assert_eq!(with.len(), 206);
    }
}
