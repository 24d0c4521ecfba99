//! Base64, hex and percent-encoding for scripts.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD, URL_SAFE_NO_PAD};

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

pub(crate) fn to_base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

pub(crate) fn to_base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes base64 in either alphabet, with or without padding.
pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let standard = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
    let url = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);
    standard.decode(text).or_else(|_| url.decode(text)).ok()
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Percent-encodes every byte.
pub(crate) fn to_percent(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_base64_are_decoded() {
        for text in ["+/8=", "+/8", "-_8=", "-_8"] {
            assert_eq!(from_base64(text).as_deref(), Some([0xfb, 0xff].as_slice()), "{text}");
        }
        assert_eq!(from_base64("a"), None);
        assert_eq!(from_base64("a b="), None);
        assert_eq!((to_base64(&[0xfb, 0xff]), to_base64url(&[0xfb, 0xff])), ("+/8=".into(), "-_8".into()));
    }

    #[test]
    fn hex_and_percent_cover_every_byte() {
        assert_eq!(to_hex(b"a/\xff"), "612fff");
        assert_eq!(to_percent(b"a/"), "%61%2F");
    }
}
