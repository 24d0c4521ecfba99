//! Unique names. An object can then be found by its name if the answer with its ID
//! was lost.

use wasm_cpi_sdk::random;

/// Returns a random UUID, version 4.
pub(crate) fn uuid() -> String {
    let hex = random::hex(16);
    let digit = |at: usize| hex.get(at..=at).unwrap_or("0");
    let variant = match digit(16) {
        "0" | "4" | "8" | "c" => "8",
        "1" | "5" | "9" | "d" => "9",
        "2" | "6" | "a" | "e" => "a",
        _ => "b",
    };
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-{variant}{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

/// Returns a unique name: `vm-…`, `volume-…`, `snapshot-…`.
pub(crate) fn unique(prefix: &str) -> String {
    format!("{prefix}-{}", uuid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasm_cpi_sdk::fake::Fake;

    #[test]
    fn names_are_uuids_and_differ() {
        let _host = Fake::new().install();
        let (one, two) = (unique("vm"), unique("vm"));
        assert_ne!(one, two);
        assert_eq!(one.len(), 3 + 36);
        let dashes: Vec<usize> = uuid().match_indices('-').map(|(at, _)| at).collect();
        assert_eq!(dashes, [8, 13, 18, 23]);
        assert_eq!(&uuid()[14..15], "4");
    }
}
