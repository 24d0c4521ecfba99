//! Who vouches for a guest: ed25519 signatures of its digest, k of n.
//!
//! What is signed is one line of text with the guest's sha256 in it, so that a
//! signature can mean nothing else and plain openssl makes it. Verified for the
//! pinned digest, before anything of the guest or of its prepared form is used,
//! in every call: a key that is taken out of the config counts no more at once.
//! Only those who configure it pay for it. Reads the signatures' file alone.

mod key;

use crate::failure::Failure;
use crate::trust;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use key::Key;
use serde_json::Value;
use std::path::{Path, PathBuf};
use wasm_cpi_checks::Check;

/// Of keys, and of lines in a file: more is no list that anybody looks through.
const KEYS_MAX: usize = 32;
const LINES_MAX: usize = 64;

/// Of the file of signatures; 64 of them take less than six.
const FILE_MAX: u64 = 8 << 10;

/// `guest.signature` of the config.
#[derive(Debug)]
pub struct Signature {
    keys: Vec<Key>,
    threshold: usize,
    /// Absent: beside the guest.
    file: Option<PathBuf>,
}

/// What is signed, line end included. The words in front keep a signature made
/// for anything else from counting here.
pub fn message(sha256: &str) -> String {
    format!("wasm-cpi guest sha256:{sha256}\n")
}

impl Signature {
    /// All problems of the section, each a sentence.
    pub fn parse(section: &Value, base: &Path) -> Result<Signature, Vec<String>> {
        let Value::Object(fields) = section else {
            return Err(vec!["`guest.signature` must be an object: {\"ed25519\": [\"…\"], \"threshold\": 1}".into()]);
        };
        let mut problems: Vec<String> = fields
            .keys()
            .filter(|key| !["ed25519", "threshold", "file"].contains(&key.as_str()))
            .map(|key| format!("`guest.signature.{key}` is not a key of the configuration; remove it"))
            .collect();
        let keys = keys(fields.get("ed25519"), &mut problems);
        let threshold = match fields.get("threshold").map(Value::as_u64) {
            None => 1,
            Some(Some(wanted)) => usize::try_from(wanted).unwrap_or(usize::MAX),
            Some(None) => 0,
        };
        let listed = fields.get("ed25519").and_then(Value::as_array).map_or(0, Vec::len);
        if threshold == 0 || (listed > 0 && threshold > listed) {
            problems.push(format!(
                "`guest.signature.threshold` must be a number from 1 to {listed}, the number of keys in `ed25519`"
            ));
        }
        let file = match fields.get("file") {
            None => None,
            Some(Value::String(file)) if !file.is_empty() => Some(base.join(file)),
            Some(_) => {
                problems.push("`guest.signature.file` must be the path of a file".into());
                None
            }
        };
        if problems.is_empty() { Ok(Signature { keys, threshold, file }) } else { Err(problems) }
    }

    /// The file of signatures for a guest's file.
    fn file(&self, guest: &Path) -> PathBuf {
        self.file.clone().unwrap_or_else(|| {
            let mut name = guest.as_os_str().to_owned();
            name.push(".sig");
            name.into()
        })
    }

    /// As many keys as are needed that signed the digest.
    pub fn verify(&self, guest: &Path, sha256: &str) -> Result<Vec<&str>, Failure> {
        let file = self.file(guest);
        let failed = |what: String| Failure::config(format!("guest {}: {what}", guest.display()));
        let unusable = |what: &dyn std::fmt::Display| {
            let wanted = format!("`guest.signature` wants {} of these keys to have signed it", self.threshold);
            failed(format!("the file of its signatures, {}, {what}; {wanted}: {}", file.display(), listed(&self.keys)))
        };
        let (text, _) = trust::read(&file, FILE_MAX).map_err(|error| unusable(&error))?;
        let mut left = lines(&text).map_err(|what| unusable(&what))?;
        let message = message(sha256);
        let (mut signed, mut unsigned): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
        for key in &self.keys {
            if signed.len() == self.threshold {
                break;
            }
            match left.iter().position(|signature| key.signed(message.as_bytes(), signature)) {
                Some(at) => {
                    left.remove(at);
                    signed.push(key.text());
                }
                None => unsigned.push(key.text()),
            }
        }
        if signed.len() == self.threshold || !Check::Signature.on() {
            return Ok(signed);
        }
        let by = if signed.is_empty() { String::new() } else { format!(", by {}", signed.join(", ")) };
        let others = match left.len() {
            0 => String::new(),
            n => format!("; {n} others there are by other keys, of another module, or there twice"),
        };
        Err(failed(format!(
            "{} of {} needed signatures are in {}{by}{others}; sign the text {message:?} with the key of {}, and add the signature to that file: base64, a line of its own",
            signed.len(),
            self.threshold,
            file.display(),
            unsigned.join(" or "),
        )))
    }

    /// For people: how many must sign, and who did.
    pub fn describe(&self, signed: &[&str]) -> String {
        format!("signed as it must be, by {} of {} keys: {}", self.threshold, self.keys.len(), signed.join(", "))
    }
}

fn keys(list: Option<&Value>, problems: &mut Vec<String>) -> Vec<Key> {
    let list = match list {
        Some(Value::Array(list)) if (1..=KEYS_MAX).contains(&list.len()) => list,
        _ => {
            problems.push(format!("`guest.signature.ed25519` must be a list of 1 to {KEYS_MAX} public keys"));
            return Vec::new();
        }
    };
    let mut keys: Vec<Key> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        match value.as_str().ok_or("is no string").and_then(Key::parse) {
            Ok(key) if Check::SignatureTwice.on() && keys.contains(&key) => {
                problems.push(format!("`guest.signature.ed25519[{index}]` stands there twice; each key counts once"));
            }
            Ok(key) => keys.push(key),
            Err(what) => problems.push(format!("`guest.signature.ed25519[{index}]` {what}")),
        }
    }
    keys
}

/// The signatures in a file: base64, one on each line, and nothing else.
fn lines(text: &str) -> Result<Vec<[u8; 64]>, String> {
    if text.is_empty() {
        return Err("is empty".into());
    }
    let mut signatures = Vec::new();
    for (index, line) in text.strip_suffix('\n').unwrap_or(text).split('\n').enumerate() {
        if index == LINES_MAX {
            return Err(format!("has more than {LINES_MAX} lines"));
        }
        let decoded = STANDARD.decode(line).ok().and_then(|bytes| bytes.try_into().ok());
        signatures.push(decoded.ok_or_else(|| format!("holds no base64 of 64 bytes in line {}", index + 1))?);
    }
    Ok(signatures)
}

fn listed(keys: &[Key]) -> String {
    keys.iter().map(Key::text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
