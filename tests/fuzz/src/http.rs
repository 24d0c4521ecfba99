//! A plain reading of HTTP/1.1: lines, headers, chunks. It says what an answer
//! means, not whether it should be taken.

pub(crate) struct Head {
    pub(crate) status: u16,
    /// Names in lower case, values as text.
    pub(crate) headers: Vec<(String, String)>,
}

pub(crate) enum Framing {
    Chunked,
    Length(usize),
    ToTheEnd,
}

impl Head {
    /// The head that counts, after those that only inform, and what follows it.
    pub(crate) fn last(answer: &[u8]) -> Option<(Head, &[u8])> {
        let mut rest = answer;
        loop {
            let (head, after) = Head::read(rest)?;
            if !(100..200).contains(&head.status) {
                return Some((head, after));
            }
            rest = after;
        }
    }

    fn read(bytes: &[u8]) -> Option<(Head, &[u8])> {
        let (mut first, mut rest) = line(bytes)?;
        // Empty lines before a message are skipped by everybody.
        while first.is_empty() {
            (first, rest) = line(rest)?;
        }
        let status = std::str::from_utf8(first.get(9..12)?).ok()?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let (header, after) = line(rest)?;
            rest = after;
            if header.is_empty() {
                return Some((Head { status, headers }, rest));
            }
            let colon = header.iter().position(|byte| *byte == b':')?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes.trim_ascii()).into_owned();
            headers.push((text(&header[..colon]).to_ascii_lowercase(), text(&header[colon + 1..])));
        }
    }

    pub(crate) fn framing(&self) -> Framing {
        let values =
            |name: &'static str| self.headers.iter().filter(move |(own, _)| own == name).map(|(_, value)| value);
        // Any coding at all overrules a length.
        match values("transfer-encoding").flat_map(|value| value.split(',')).last() {
            Some(coding) if coding.trim().eq_ignore_ascii_case("chunked") => return Framing::Chunked,
            Some(_) => return Framing::ToTheEnd,
            None => {}
        }
        match values("content-length").next() {
            Some(length) => Framing::Length(length.parse().expect("a length that was taken is a number")),
            None => Framing::ToTheEnd,
        }
    }
}

fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..]))
}

pub(crate) fn dechunked(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut body, mut rest) = (Vec::new(), bytes);
    loop {
        let (size, after) = line(rest)?;
        let digits = size.split(|byte| *byte == b';').next()?.trim_ascii();
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(after.get(..size)?);
        rest = after.get(size..)?.strip_prefix(b"\r\n")?;
    }
}
