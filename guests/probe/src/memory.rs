//! Searches the guest's own memory, which must never hold a secret. The needle is
//! masked as soon as it is decoded, or the search would find the needle itself. Only
//! this module reads memory directly.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ops::Failure;

/// The bytes to search for, in a form that does not contain them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Needle {
    /// The bytes in hex.
    hex: Option<String>,
    /// The text in reverse.
    reversed: Option<String>,
}

/// A mask that turns no common byte into another common one.
const MASK: u8 = 0xa5;

/// The number of offsets that an outcome lists.
const LISTED: usize = 8;

impl Needle {
    pub(crate) fn find(&self) -> Result<Value, Failure> {
        let masked = self
            .masked()
            .filter(|masked| masked.len() >= 4)
            .ok_or_else(|| Failure::new("script", "`find` needs `hex` or `reversed` with at least four bytes"))?;
        let hits = whole_memory(|memory| search(memory, &masked))?;
        Ok(json!({"count": hits.len(), "at": hits.iter().take(LISTED).collect::<Vec<_>>()}))
    }

    fn masked(&self) -> Option<Vec<u8>> {
        match (&self.hex, &self.reversed) {
            (Some(hex), None) => {
                let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
                let byte = |pair: &[u32]| u8::try_from(pair.first()? * 16 + pair.get(1)?).ok();
                digits.chunks(2).map(|pair| Some(byte(pair)? ^ MASK)).collect()
            }
            // Reversing bytes reverses characters only in ASCII.
            (None, Some(text)) if text.is_ascii() => Some(text.bytes().rev().map(|byte| byte ^ MASK).collect()),
            _ => None,
        }
    }
}

/// Returns the offsets of the masked needle. It never builds the needle itself.
fn search(memory: &[u8], masked: &[u8]) -> Vec<usize> {
    let here = |window: &[u8]| window.iter().zip(masked).all(|(byte, masked)| byte ^ MASK == *masked);
    memory.windows(masked.len()).enumerate().filter(|(_, window)| here(window)).map(|(at, _)| at).collect()
}

/// Passes the whole linear memory to `look`, including freed and unused parts.
#[cfg(target_family = "wasm")]
#[allow(unsafe_code)]
fn whole_memory<T>(look: impl FnOnce(&[u8]) -> T) -> Result<T, Failure> {
    const PAGE: usize = 64 * 1024;
    // Address 0 is not a valid reference, and the first 16 bytes hold no data.
    const START: usize = 16;
    let length = core::arch::wasm32::memory_size::<0>() * PAGE - START;
    // SAFETY: every address below the memory's size can be read, and `look` only
    // compares bytes. It may or may not see what it allocates meanwhile.
    let memory = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(START), length) };
    Ok(look(memory))
}

#[cfg(not(target_family = "wasm"))]
fn whole_memory<T>(_: impl FnOnce(&[u8]) -> T) -> Result<T, Failure> {
    Err(Failure::new("unsupported", "only wasm has a linear memory to search"))
}

/// Returns a string that is not valid UTF-8, which the host must reject.
#[allow(unsafe_code)]
pub(crate) fn invalid_utf8() -> String {
    // SAFETY: no function of std reads the text. It goes directly to the host, which
    // has to reject it.
    unsafe { String::from_utf8_unchecked(vec![b'v', b'm', b'-', 0xff, 0xfe, 0xc0]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needle(hex: Option<&str>, reversed: Option<&str>) -> Needle {
        Needle { hex: hex.map(str::to_owned), reversed: reversed.map(str::to_owned) }
    }

    #[test]
    fn both_forms_find_every_occurrence() {
        let memory = b"..secret...secsecret";
        for form in [needle(Some("736563726574"), None), needle(None, Some("terces"))] {
            assert_eq!(search(memory, &form.masked().unwrap()), [2, 14]);
        }
        assert!(search(b"sec", &needle(None, Some("terces")).masked().unwrap()).is_empty());
    }

    #[test]
    fn the_masked_needle_is_not_the_needle() {
        assert_ne!(needle(None, Some("terces")).masked().unwrap(), b"secret");
    }

    #[test]
    fn invalid_needles_are_rejected() {
        for form in [
            needle(None, None),
            needle(Some("zz"), None),
            needle(Some("736"), None),
            needle(Some("61"), None),
            needle(None, Some("ü123")),
            needle(Some("736563726574"), Some("terces")),
        ] {
            assert_eq!(form.find().unwrap_err().kind, "script");
        }
        assert_eq!(needle(None, Some("terces")).find().unwrap_err().kind, "unsupported");
    }
}
