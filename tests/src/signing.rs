//! Keys that sign guests, derived from a number, and their signatures.

use crate::dist;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair};

fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the public key in the encoding of the config.
pub fn public(seed: u8) -> String {
    STANDARD.encode(pair(seed).public_key())
}

/// Signs a text.
pub fn signed(seed: u8, text: &[u8]) -> String {
    STANDARD.encode(pair(seed).sign(text))
}

/// Signs a guest and returns the line for the file of signatures.
pub fn line(seed: u8, guest: &[u8]) -> String {
    let text = format!("wasm-cpi guest sha256:{}\n", dist::sha256(guest));
    format!("{}\n", signed(seed, text.as_bytes()))
}
