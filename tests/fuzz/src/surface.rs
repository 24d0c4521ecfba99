//! The check of a component's imports: an accepted component imports only what is listed
//! below. The imports are read by a parser of this target.

use crate::input::is_printable;
use wasm_cpi::fuzzing::{Declarations, inspect};

const OURS: [&str; 9] = ["agent", "clock", "config", "http", "image", "log", "random", "registry", "types"];

const WASI: [&str; 27] = [
    "cli/environment",
    "cli/exit",
    "cli/stderr",
    "cli/stdin",
    "cli/stdout",
    "cli/terminal-input",
    "cli/terminal-output",
    "cli/terminal-stderr",
    "cli/terminal-stdin",
    "cli/terminal-stdout",
    "clocks/monotonic-clock",
    "clocks/wall-clock",
    "filesystem/preopens",
    "filesystem/types",
    "io/error",
    "io/poll",
    "io/streams",
    "random/insecure",
    "random/insecure-seed",
    "random/random",
    "sockets/instance-network",
    "sockets/ip-name-lookup",
    "sockets/network",
    "sockets/tcp",
    "sockets/tcp-create-socket",
    "sockets/udp",
    "sockets/udp-create-socket",
];

pub(crate) fn fuzz(data: &[u8]) {
    // The first eight bytes are the same in all components.
    let mut file = b"\0asm\x0d\0\x01\0".to_vec();
    if data.starts_with(b"\0asm") {
        file = data.to_vec()
    } else {
        file.extend_from_slice(data)
    }
    match inspect(&file) {
        Ok(declarations) => check(&file, &declarations),
        Err(problems) => {
            assert!(!problems.is_empty());
            assert!(
                problems.iter().all(|problem| is_printable(&problem.text) && problem.text.len() < 1000),
                "{problems:?}"
            );
        }
    }
}

fn check(file: &[u8], declarations: &Declarations) {
    for import in &declarations.imports {
        assert!(is_listed(import), "{import} was accepted");
    }
    let imports = imports(file).expect("an accepted component can be parsed");
    assert_eq!(imports, declarations.imports);
}

fn is_listed(import: &str) -> bool {
    let Some((name, version)) = import.split_once('@') else { return false };
    match (name.strip_prefix("bosh:cpi/"), name.strip_prefix("wasi:")) {
        (Some(ours), _) => OURS.contains(&ours) && version == "0.1.0",
        (_, Some(wasi)) => WASI.contains(&wasi) && version.starts_with("0.2."),
        _ => false,
    }
}

/// Returns the names of the imports in the sections of the outermost component.
fn imports(file: &[u8]) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut file = Bytes(file.get(8..)?);
    while !file.0.is_empty() {
        let (id, size) = (file.byte()?, file.number()?);
        // The compiler finds a last section that is cut off.
        let mut section = Bytes(file.take(size.min(file.0.len()))?);
        if id == 10 {
            for _ in 0..section.number()? {
                names.push(section.import()?);
            }
        }
    }
    Some(names)
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// Reads a LEB128 number. The sign of a type does not matter here.
    fn number(&mut self) -> Option<usize> {
        let (mut number, mut shift) = (0_usize, 0);
        loop {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
    }

    /// Reads an import and returns its name. Its type is skipped.
    fn import(&mut self) -> Option<String> {
        let kind = self.byte()?;
        let length = self.number()?;
        let name = String::from_utf8(self.take(length)?.to_vec()).ok()?;
        if kind == 2 {
            let length = self.number()?;
            self.take(length)?;
        }
        match self.byte()? {
            // A core module has one more byte, and a type can have a bound.
            0 => drop((self.byte()?, self.number()?)),
            3 if self.byte()? == 1 => {}
            _ => drop(self.number()?),
        }
        Some(name)
    }
}
