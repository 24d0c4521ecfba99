//! What a guest needs, as JSON in a custom section of its module, where the
//! runtime reads it before any of the guest runs. A need grants nothing: what
//! a guest may do is what it declares and its operator grants.

/// Declares what this guest needs: a JSON text known at compile time, such as
/// `needs!(include_str!("../needs.json"))`. Call it once, at the root of the
/// guest's crate; it also defines `NEEDS`, the text, for the guest's tests.
#[macro_export]
macro_rules! needs {
    ($text:expr) => {
        /// What this guest needs, as the runtime reads it.
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

/// The bytes of a text as an array, which a section must be.
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
