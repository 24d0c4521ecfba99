//! Encodes modules and components byte by byte, where the text format would be too
//! large or cannot express the content.

/// Encodes a number as unsigned LEB128.
pub fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap_or(0));
    bytes
}

pub fn section(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind], leb(content.len()).as_slice(), content].concat()
}

/// Encodes a vector that repeats one element `count` times.
pub fn vector(count: usize, element: &[u8]) -> Vec<u8> {
    [leb(count), element.repeat(count)].concat()
}

/// Encodes a core module with these sections as a section of a component.
pub fn module(sections: &[u8]) -> Vec<u8> {
    section(1, &[b"\0asm\x01\0\0\0", sections].concat())
}

pub fn component(sections: &[Vec<u8>]) -> Vec<u8> {
    [b"\0asm\x0d\0\x01\0".as_slice(), &sections.concat()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_many_bytes_as_they_need() {
        for (number, bytes) in [(0, vec![0]), (127, vec![127]), (128, vec![0x80, 1]), (624_485, vec![0xe5, 0x8e, 0x26])]
        {
            assert_eq!(leb(number), bytes);
        }
    }
}
