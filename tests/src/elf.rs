//! Reads as much of an ELF file as needed to distinguish static from dynamic programs.

/// Returns true if the program needs a dynamic loader: it has a program header of the
/// type `PT_INTERP`. Panics if the file is not a 64-bit little-endian ELF file.
pub fn needs_loader(binary: &[u8]) -> bool {
    const PT_INTERP: u64 = 3;
    assert_eq!(&binary[..6], b"\x7fELF\x02\x01", "not a 64-bit little-endian ELF file");
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
    fn a_program_with_an_interpreter_header_needs_a_loader() {
        assert!(needs_loader(&with_header(3)));
        assert!(!needs_loader(&with_header(1)));
    }
}
