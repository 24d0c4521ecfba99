//! The signatures of the requests that the host signed, which no response may hold.
//!
//! A call may sign hundreds of thousands of requests, and the needles of so many secrets would take too much time and
//! memory. A signature has one form, 64 hexadecimal digits, so each run of such digits is compared with all of them at
//! once.

use super::{Vault, views};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The number of digits that are compared: the first half of a signature, which nobody guesses either.
const DIGITS: usize = 32;

/// The shortest text in base64 that can hold these digits.
const MIN_BASE64: usize = DIGITS * 4 / 3;

/// Where a text in base64 ends need not be known.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The signatures of a call.
#[derive(Default)]
pub(super) struct Signatures(HashSet<u128>);

impl Vault {
    /// Registers a signature in hexadecimal digits for the tripwire.
    pub fn register_signature(&self, digits: &str) {
        let start = digits.get(..DIGITS).and_then(|start| u128::from_str_radix(start, 16).ok());
        self.lock().signatures.0.extend(start);
    }

    /// Returns true if a text holds a signature of this call: as it is, with escapes, or in base64.
    pub(super) fn holds_signature(&self, bytes: &[u8]) -> bool {
        let inner = self.lock();
        let signatures = &inner.signatures;
        if signatures.0.is_empty() {
            return false;
        }
        let visit = &mut |view: &views::View, _| match signatures.occur_in(&view.bytes) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        views::visit_all(bytes, views::Track::No, visit).is_break()
    }
}

impl Signatures {
    fn occur_in(&self, text: &[u8]) -> bool {
        let in_base64 = |run: &[u8]| run.len() >= MIN_BASE64 && (0..4).any(|start| self.are_in_base64(&run[start..]));
        self.occur_plainly_in(text) || text.split(|byte| !is_base64(*byte)).any(in_base64)
    }

    fn occur_plainly_in(&self, text: &[u8]) -> bool {
        let (mut digits, mut value) = (0, 0_u128);
        text.iter().any(|byte| {
            let digit = char::from(*byte).to_digit(16);
            (digits, value) = digit.map_or((0, 0), |digit| (digits + 1, value << 4 | u128::from(digit)));
            digits >= DIGITS && self.0.contains(&value)
        })
    }

    /// Reads a text as base64 that begins with a whole group.
    fn are_in_base64(&self, text: &[u8]) -> bool {
        let standard = |byte: &u8| match byte {
            b'-' => b'+',
            b'_' => b'/',
            same => *same,
        };
        let whole: Vec<u8> = text[..text.len() - text.len() % 4].iter().map(standard).collect();
        BASE64.decode(whole).is_ok_and(|decoded| self.occur_plainly_in(&decoded))
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

    const ONE: &str = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";

    fn found(vault: &Vault, text: impl AsRef<[u8]>) -> bool {
        vault.leak_in(text.as_ref()).unwrap().is_some()
    }

    #[test]
    fn a_signature_is_found_in_every_form() {
        let vault = Vault::new();
        assert!(!found(&vault, ONE));
        vault.register_signature(ONE);
        for text in
            [ONE.to_owned(), ONE.to_uppercase(), format!("Signature={ONE}, 0123abcdef{ONE}0"), format!("abc{ONE}")]
        {
            assert!(found(&vault, &text), "{text}");
            assert!(found(&vault, text.replace("d7", "%64%37").replace("5d", "\\u0035d")), "{text}");
            for start in ["", "a", "ab", "abc"] {
                let whole = format!("{start}{text} and more");
                assert!(found(&vault, BASE64_STANDARD.encode(&whole)), "{whole}");
                assert!(
                    found(&vault, format!("https://x/{start}/{}", BASE64_URL_SAFE_NO_PAD.encode(&whole))),
                    "{whole}"
                );
            }
        }
        let wide: Vec<u8> = ONE.bytes().flat_map(|byte| [byte, 0]).collect();
        assert!(found(&vault, wide));
    }

    #[test]
    fn other_digits_and_texts_that_a_guest_does_not_get_are_no_leak() {
        let vault = Vault::new();
        vault.register_signature(ONE);
        for text in [&ONE[..31], &ONE[1..], &format!("{}x{}", &ONE[..20], &ONE[20..])] {
            assert!(!found(&vault, text), "{text}");
        }
        // An honest server quotes it in an error, which the host withholds.
        assert!(vault.leak_in_unseen(ONE.as_bytes()).unwrap().is_none());
    }
}
