//! Code that decides and does nothing else: the policy, and all that it stands on.
//!
//! It may name only what can do no IO, of `std` and of its own crate alike, so
//! that a verdict hangs on its inputs alone. Judged by the names in the text.

/// The policy and every module that it uses.
const PURE: [&str; 7] = ["policy", "place", "secret", "strict_json", "invisible", "net/addresses", "net/destination"];

/// Modules of `std` without IO, clocks or threads; of `net` the addresses, of `sync` what
/// is the same for everybody who looks.
const STD: [&str; 13] =
    ["borrow", "cell", "cmp", "collections", "convert", "fmt", "iter", "mem", "net", "ops", "slice", "str", "string"];
const STD_NET: [&str; 3] = ["IpAddr", "Ipv4Addr", "Ipv6Addr"];
const STD_SYNC: [&str; 2] = ["Arc", "OnceLock"];

/// Crates of which each can do some of that.
const CRATES: [&str; 14] = [
    "domain",
    "futures_util",
    "getrandom",
    "hyper",
    "hyper_util",
    "libc",
    "reqwest",
    "rusqlite",
    "rustix",
    "rustls",
    "signal_hook",
    "tar",
    "tokio",
    "wasmtime",
];

const WORDS: [&str; 5] = ["async ", ".await", "unsafe ", "print!(", "println!("];

/// What a line of a pure file names and must not.
pub(super) fn impurity(path: &str, line: &str) -> Option<String> {
    let module = path.strip_prefix("runtime/src/")?;
    let is = |name: &str| module.strip_prefix(name).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'));
    if !PURE.into_iter().any(is) || line.trim_start().starts_with("//") {
        return None;
    }
    // A list right behind `std` would have to be read as a whole.
    let words = WORDS.into_iter().chain(["std::{", "crate::{"]);
    if let Some(word) = words.into_iter().find(|word| line.contains(word)) {
        return Some(word.trim().to_owned());
    }
    let paths = paths(line);
    let named = paths.iter().find(|path| match path.as_slice() {
        ["std", "net", names @ ..] => names.is_empty() || names.iter().any(|name| !STD_NET.contains(name)),
        ["std", "sync", names @ ..] => names.is_empty() || names.iter().any(|name| !STD_SYNC.contains(name)),
        ["std" | "core" | "alloc", module, ..] => !STD.contains(module),
        // Which check a test has turned off: a constant in every build that ships.
        ["crate", "holes", ..] => false,
        ["crate", rest @ ..] if !rest.is_empty() => {
            !PURE.iter().any(|pure| pure.split('/').enumerate().all(|(i, a)| rest.get(i) == Some(&a)))
        }
        ["super", "super", ..] => true,
        // Beside these two lies what opens sockets.
        ["super", _, ..] => module.starts_with("net/"),
        [head, _, ..] => CRATES.contains(head),
        _ => false,
    });
    named.map(|path| path.join("::"))
}

/// The paths in a line, each split at its `::`; of a list in braces, the names in
/// it follow the path before it.
fn paths(line: &str) -> Vec<Vec<&str>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut paths = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find(is_name) {
        let mut path = Vec::new();
        rest = &rest[start..];
        loop {
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            path.push(&rest[..end]);
            rest = &rest[end..];
            let Some(after) = rest.strip_prefix("::") else { break };
            rest = after;
            if let Some(list) = rest.strip_prefix('{') {
                let (list, after) = list.split_once('}').unwrap_or((list, ""));
                path.extend(list.split(',').map(str::trim).filter(|name| !name.is_empty()));
                rest = after;
                break;
            }
            if !rest.starts_with(is_name) {
                break;
            }
        }
        paths.push(path);
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "runtime/src/policy/judge.rs";

    #[test]
    fn what_does_io_is_found_in_the_policy_and_below_it() {
        for line in [
            "use std::fs;",
            "use std::fs::File;",
            "    let text = std::fs::read_to_string(path);",
            "use std::{fmt, fs};",
            "use std::io::Read;",
            "use std::env;",
            "use std::time::Instant;",
            "use std::thread;",
            "use std::sync;",
            "use std::sync::Mutex;",
            "use std::sync::{Arc, Mutex};",
            "use std::process::Command;",
            "use std::os::unix::fs::MetadataExt;",
            "use std::net::TcpStream;",
            "use std::net::{IpAddr, TcpStream};",
            "    std::net::UdpSocket::bind(x)",
            "use tokio::time::sleep;",
            "    tokio::spawn(x);",
            "use rustix::fs::stat;",
            "use reqwest::Client;",
            "use crate::net::gate::Gate;",
            "use crate::net::own;",
            "use crate::{log, trust};",
            "use crate::config::read;",
            "    crate::trust::read(path, 7)",
            "use super::super::net::gate;",
            "async fn judge() {}",
            "    let x = unsafe { y };",
            "    println!(\"x\");",
        ] {
            for path in [
                POLICY,
                "runtime/src/policy.rs",
                "runtime/src/place/json.rs",
                "runtime/src/net/addresses.rs",
                "runtime/src/secret.rs",
            ] {
                assert!(impurity(path, line).is_some(), "{path}: {line}");
            }
            for path in ["runtime/src/net/gate.rs", "runtime/src/policymaker.rs", "tests/src/policy.rs", "README.md"] {
                assert_eq!(impurity(path, line), None, "{path}: {line}");
            }
        }
        assert!(impurity("runtime/src/net/destination.rs", "use super::own::among;").is_some());
    }

    #[test]
    fn what_only_computes_is_not() {
        for line in [
            "use std::fmt;",
            "use std::net::IpAddr;",
            "use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};",
            "use std::collections::BTreeMap;",
            "use std::sync::{Arc, OnceLock};",
            "use crate::net::addresses::{Addresses, never_net};",
            "use crate::net::destination::Destination;",
            "use crate::place::{Message, Place};",
            "use crate::strict_json;",
            "use crate::secret::Layer;",
            "use super::grant::{Grant, GrantSpec};",
            "use serde_json::{Map, Value};",
            "use crate::holes::Check;",
            "pub(crate) fn parse() {}",
            "    let io = fields.list(\"http\");",
            "// std::fs is not for this file",
            "    /// Like `std::fs`.",
            "url::form_urlencoded::parse(query.as_bytes())",
            "",
        ] {
            assert_eq!(impurity(POLICY, line), None, "{line}");
        }
        assert_eq!(impurity("runtime/src/net/addresses/tests.rs", "use super::*;"), None);
    }
}
