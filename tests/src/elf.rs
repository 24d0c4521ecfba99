//! Reads as much of ELF as it takes to tell a static binary from a dynamic one.

/// Whether the binary asks for a dynamic loader: a program header of the type
/// `PT_INTERP`. Panics on what is no 64-bit little-endian ELF.
pub fn wants_a_loader(binary: &[u8]) -> bool {
    const PT_INTERP: u64 = 3;
    assert_eq!(&binary[..6], b"\x7fELF\x02\x01", "no 64-bit little-endian ELF");
    let number = |at: u64, size: usize| {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        binary[at..at + size].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    (0..count).any(|index| number(table + index * size, 4) == PT_INTERP)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_header(kind: u8) -> Vec<u8> {
        let mut binary = vec![0; 64 + 56];
        binary[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (binary[32], binary[54], binary[56]) = (64, 56, 1);
        binary[64] = kind;
        binary
    }

    #[test]
    fn a_loader_is_seen_where_one_is_asked_for() {
        assert!(wants_a_loader(&with_header(3)));
        assert!(!wants_a_loader(&with_header(1)));
    }
}
