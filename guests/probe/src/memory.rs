//! Searching the guest's own memory, where no secret may ever have been. The
//! needle is kept masked from the moment it is decoded, or the search would
//! find itself. The only module that reads memory as such.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ops::Failure;

/// What to look for, in a form that does not contain it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Needle {
    /// The bytes in hex.
    hex: Option<String>,
    /// The text, backwards.
    reversed: Option<String>,
}

/// Any value that turns no common byte into another common one.
const MASK: u8 = 0xa5;

/// Offsets of the first hits that an outcome lists.
const LISTED: usize = 8;

impl Needle {
    pub(crate) fn find(&self) -> Result<Value, Failure> {
        let masked = self.masked().filter(|masked| masked.len() >= 4).ok_or_else(|| {
            Failure::new("script", "find takes `hex` or `reversed` with at least four bytes to look for")
        })?;
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
            // Backwards by bytes is backwards by characters only in ASCII.
            (None, Some(text)) if text.is_ascii() => Some(text.bytes().rev().map(|byte| byte ^ MASK).collect()),
            _ => None,
        }
    }
}

/// Where the masked needle occurs, without ever building it.
fn search(memory: &[u8], masked: &[u8]) -> Vec<usize> {
    let here = |window: &[u8]| window.iter().zip(masked).all(|(byte, masked)| byte ^ MASK == *masked);
    memory.windows(masked.len()).enumerate().filter(|(_, window)| here(window)).map(|(at, _)| at).collect()
}

/// Hands out all of the linear memory, freed and unused parts included.
#[cfg(target_family = "wasm")]
#[allow(unsafe_code)]
fn whole_memory<T>(look: impl FnOnce(&[u8]) -> T) -> Result<T, Failure> {
    const PAGE: usize = 64 * 1024;
    // Address 0 is no valid reference; nothing of interest lies before 16.
    const START: usize = 16;
    let length = core::arch::wasm32::memory_size::<0>() * PAGE - START;
    // SAFETY: every address below the memory's size can be read, and `look`
    // only compares bytes; what it allocates meanwhile may or may not be seen.
    let memory = unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(START), length) };
    Ok(look(memory))
}

#[cfg(not(target_family = "wasm"))]
fn whole_memory<T>(_: impl FnOnce(&[u8]) -> T) -> Result<T, Failure> {
    Err(Failure::new("unsupported", "only wasm has a linear memory to search"))
}

/// A string that is no text, which a component must not be able to return.
#[allow(unsafe_code)]
pub(crate) fn invalid_utf8() -> String {
    // SAFETY: none of std's functions looks into it: it goes straight to the
    // host, which has to refuse it.
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
    fn needles_that_cannot_be_meant_are_refused() {
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
