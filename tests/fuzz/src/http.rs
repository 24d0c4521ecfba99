//! A simple HTTP/1.1 parser: lines, headers, chunks. It returns what an answer means,
//! not whether the answer should be accepted.

pub(crate) struct Head {
    pub(crate) status: u16,
    /// Names in lower case, values as text.
    pub(crate) headers: Vec<(String, String)>,
}

pub(crate) enum Framing {
    Chunked,
    Length(usize),
    UntilClose,
}

impl Head {
    /// Returns the final head, after interim ones, and the bytes that follow it.
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
        // All parsers skip empty lines before a message.
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
        let twice = values("transfer-encoding").next().is_some() && values("content-length").next().is_some();
        assert!(!twice, "a response with two framings was accepted");
        match values("transfer-encoding").flat_map(|value| value.split(',')).last() {
            Some(coding) if coding.trim().eq_ignore_ascii_case("chunked") => return Framing::Chunked,
            Some(_) => return Framing::UntilClose,
            None => {}
        }
        match values("content-length").next() {
            Some(length) => Framing::Length(length.parse().expect("an accepted length is a number")),
            None => Framing::UntilClose,
        }
    }
}

/// Returns the first line, without its end, and the rest.
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
