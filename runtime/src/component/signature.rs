//! Verifies the signatures of a guest: `threshold` of the configured ed25519 keys must have
//! signed its digest.
//!
//! The signed message is one line of text with the guest's sha256, so it cannot be a message of
//! another protocol, and openssl alone can sign it. The pinned digest is verified in every call,
//! before the guest or its prepared form is used, so a key that was removed from the config stops
//! counting at once. Only the file of signatures is read.

mod key;

use crate::failure::{Failure, Problem};
use crate::trust;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use key::Key;
use serde_json::Value;
use std::path::{Path, PathBuf};
use wasm_cpi_checks::{Check, RefusedBy};

/// The most keys, and the most lines of a file of signatures. Longer lists cannot be reviewed.
const KEYS_MAX: usize = 32;
const LINES_MAX: usize = 64;

/// The keys of `guest.signature`.
const FIELDS: [&str; 3] = ["ed25519", "threshold", "file"];

/// The largest file of signatures. 64 signatures take less than 6 KiB.
const FILE_MAX: u64 = 8 << 10;

/// `guest.signature` of the config.
#[derive(Debug)]
pub struct RequiredSignatures {
    keys: Vec<Key>,
    threshold: usize,
    /// The file of signatures. If absent, it is beside the guest.
    file: Option<PathBuf>,
}

/// Returns the message to sign, including the line end. Its prefix ensures that a signature made for
/// another purpose does not count here.
pub fn message(sha256: &str) -> String {
    format!("wasm-cpi guest sha256:{sha256}\n")
}

impl RequiredSignatures {
    /// Parses the section. Returns all problems, each as one sentence.
    pub fn parse(section: &Value, base: &Path) -> Result<RequiredSignatures, Vec<Problem>> {
        let Value::Object(fields) = section else {
            let example = "{\"ed25519\": [\"…\"], \"threshold\": 1}";
            return Err(vec![Problem::new(format!("`guest.signature` must be an object: {example}"))]);
        };
        let mut problems: Vec<Problem> = fields
            .keys()
            .filter(|key| !FIELDS.contains(&key.as_str()))
            .map(|key| {
                let known = FIELDS.join(", ");
                format!(
                    "`guest.signature.{key}` is not a key of the configuration; remove it or correct its \
                     spelling; known here: {known}"
                )
            })
            .map(|text| Problem::new(text).refused_by(Check::UnknownKey))
            .collect();
        let keys = keys(fields.get("ed25519"), &mut problems);
        let threshold = match fields.get("threshold").map(Value::as_u64) {
            None => 1,
            Some(Some(wanted)) => usize::try_from(wanted).unwrap_or(usize::MAX),
            Some(None) => 0,
        };
        let listed = fields.get("ed25519").and_then(Value::as_array).map_or(0, Vec::len);
        if threshold == 0 || (listed > 0 && threshold > listed) {
            let what = format!("must be a number from 1 to {listed}, the number of keys in `ed25519`");
            problems.push(Problem::new(format!("`guest.signature.threshold` {what}")));
        }
        let file = match fields.get("file") {
            None => None,
            Some(Value::String(file)) if !file.is_empty() => Some(base.join(file)),
            Some(_) => {
                problems.push(Problem::new("`guest.signature.file` must be the path of a file"));
                None
            }
        };
        if problems.is_empty() { Ok(RequiredSignatures { keys, threshold, file }) } else { Err(problems) }
    }

    /// Returns the file of signatures for a guest's file.
    fn file(&self, guest: &Path) -> PathBuf {
        self.file.clone().unwrap_or_else(|| {
            let mut name = guest.as_os_str().to_owned();
            name.push(".sig");
            name.into()
        })
    }

    /// Returns the keys that signed the digest, up to the threshold. Rejects a digest with fewer.
    pub fn verify(&self, guest: &Path, sha256: &str) -> Result<Vec<&str>, Failure> {
        let file = self.file(guest);
        let failed = |what: String| Failure::config(format!("guest {}: {what}", guest.display()));
        let unusable = |what: &dyn std::fmt::Display| {
            let wanted = format!("`guest.signature` requires signatures of {} of these keys", self.threshold);
            failed(format!("the file of its signatures, {}, {what}; {wanted}: {}", file.display(), listed(&self.keys)))
        };
        let (text, _) = trust::read(&file, FILE_MAX)
            .map_err(|error| Failure { check: error.check().or(Some(Check::Signature)), ..unusable(&error) })?;
        let mut left = lines(&text).map_err(|what| unusable(&what).refused_by(Check::Signature))?;
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
        Check::Signature.ensure(signed.len() == self.threshold, || {
            let by = if signed.is_empty() { String::new() } else { format!(", by {}", signed.join(", ")) };
            let others = match left.len() {
                0 => String::new(),
                n => format!("; {n} more in that file are by other keys, for another guest, or repeated"),
            };
            failed(format!(
                "{} of {} needed signatures are in {}{by}{others}; sign the text {message:?} with the key of {}, and add the signature to that file, as one line of base64",
                signed.len(),
                self.threshold,
                file.display(),
                unsigned.join(" or "),
            ))
        })?;
        Ok(signed)
    }

    /// Returns a sentence about how many keys must sign, and which did.
    pub fn describe(&self, signed: &[&str]) -> String {
        format!("verified, signed by {} of {} keys: {}", self.threshold, self.keys.len(), signed.join(", "))
    }
}

fn keys(list: Option<&Value>, problems: &mut Vec<Problem>) -> Vec<Key> {
    let list = match list {
        Some(Value::Array(list)) if (1..=KEYS_MAX).contains(&list.len()) => list,
        _ => {
            let what = format!("must be a list of 1 to {KEYS_MAX} public keys");
            problems.push(Problem::new(format!("`guest.signature.ed25519` {what}")));
            return Vec::new();
        }
    };
    let mut keys: Vec<Key> = Vec::new();
    for (index, value) in list.iter().enumerate() {
        let key = match value.as_str() {
            Some(text) => Key::parse(text),
            None => Err(Problem::new("is not a string; write a public key in base64")),
        };
        let key = key.and_then(|key| {
            let twice = || Problem::new("is listed twice; each key counts once, so remove one");
            Check::SignatureTwice.ensure(!keys.contains(&key), twice)?;
            Ok(key)
        });
        match key {
            Ok(key) => keys.push(key),
            Err(Problem { text, check }) => {
                problems.push(Problem { text: format!("`guest.signature.ed25519[{index}]` {text}"), check });
            }
        }
    }
    keys
}

/// Parses a file of signatures: base64, one on each line, and nothing else.
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
        signatures.push(decoded.ok_or_else(|| format!("has no base64 of 64 bytes in line {}", index + 1))?);
    }
    Ok(signatures)
}

fn listed(keys: &[Key]) -> String {
    keys.iter().map(Key::text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
