//! The needs of a guest: JSON in a custom section of its file. The runtime
//! reads it before it runs any code of the guest. A need grants nothing: a
//! request is allowed only if the guest declares it and the operator grants it.

/// Declares the needs of this guest: a JSON text known at compile time, such as
/// `needs!(include_str!("../needs.json"))`. Use it once, at the root of the
/// guest's crate. It also defines the constant `NEEDS` with the text, for the
/// guest's tests.
#[macro_export]
macro_rules! needs {
    ($text:expr) => {
        /// The needs of this guest, as the runtime reads them.
        #[allow(dead_code, unreachable_pub)]
        pub const NEEDS: &str = $text;

        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code)]
        const _: () = {
            #[used]
            #[unsafe(link_section = "bosh-cpi:needs")]
            static SECTION: [u8; NEEDS.len()] = $crate::section(NEEDS);
        };
    };
}

/// Returns the bytes of a text as an array, as a `link_section` needs it.
pub const fn section<const N: usize>(text: &str) -> [u8; N] {
    let (bytes, mut array, mut i) = (text.as_bytes(), [0; N], 0);
    while i < N {
        array[i] = bytes[i];
        i += 1;
    }
    array
}

#[cfg(test)]
mod tests {
    crate::needs!(r#"{"version":1}"#);

    #[test]
    fn the_section_holds_the_text() {
        const BYTES: [u8; NEEDS.len()] = super::section(NEEDS);
        assert_eq!(BYTES.as_slice(), NEEDS.as_bytes());
    }
}
