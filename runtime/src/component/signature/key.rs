//! A public key of ed25519, which the config has as base64 of its 32 bytes.
//!
//! Rejects keys with which anyone can sign, and non-canonical encodings of keys.

use crate::failure::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, UnparsedPublicKey};
use wasm_cpi_checks::Check;

/// The first bytes of a public key in DER, as openssl writes it.
const DER_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The points of small order, without their sign bit. If one of them is the key, anyone can sign
/// any message.
const SMALL_ORDER: [[u8; 32]; 5] = [
    [0; 32],
    with_ends(1, 0, 0),
    with_ends(0xec, 0xff, 0x7f),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf,
        0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20,
        0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
];

const fn with_ends(first: u8, between: u8, last: u8) -> [u8; 32] {
    let mut bytes = [between; 32];
    bytes[0] = first;
    bytes[31] = last;
    bytes
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key {
    bytes: [u8; 32],
    /// The key as the config has it, which is its only encoding.
    text: String,
}

impl Key {
    /// Parses a key. Returns the problem if it is not one.
    pub(super) fn parse(text: &str) -> Result<Key, Problem> {
        let bytes = STANDARD.decode(text);
        let bytes = bytes.map_err(|_| {
            Problem::new(
                "is not base64 (with `+`, `/` and `=`) of a public key; copy the line that the signer gave you",
            )
        })?;
        if bytes.starts_with(&DER_HEAD) {
            return Err(Problem::new(
                "is a whole public key in DER; write its last 32 bytes: `openssl pkey -pubin -in KEY.pem -outform DER | tail -c 32 | base64`",
            ));
        }
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| {
            Problem::new(
                "is not base64 of the 32 bytes of an ed25519 public key; copy the line that the signer gave you",
            )
        })?;
        let mut point = bytes;
        point[31] &= 0x7f;
        // The field has 2^255 - 19 elements, so the last 19 numbers below 2^255 are not canonical.
        let not_canonical = point[0] >= 0xed && point[1..31] == [0xff; 30] && point[31] == 0x7f;
        Check::SignatureKey.ensure(!SMALL_ORDER.contains(&point) && !not_canonical, || {
            Problem::new("is a key with which anyone can sign, so it proves nothing; ask the signer for another key")
        })?;
        Ok(Key { bytes, text: text.to_owned() })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn signed(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.bytes).verify(message, signature).is_ok()
    }
}
