//! Decoded views of a text.
//!
//! JSON escapes (nested up to three times), percent-encoding, XML entities and line breaks can change
//! single characters in too many ways to search for all of them, so they are undone before searching.
//! So are the zeros that UTF-16 and UTF-32 have between letters. Decoding is lenient: invalid escapes
//! stay as they are. A view can map a match to its place in the original.

use std::ops::{ControlFlow, Range};

use zeroize::Zeroizing;

use super::needles::Form;
use wasm_cpi_checks::Check;

/// The depth of JSON within JSON that occurs in practice.
const MAX_NESTED: usize = 3;

/// Whether a view records where its bytes come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Track {
    Yes,
    No,
}

/// A text in one decoding.
pub(super) struct View {
    pub(super) bytes: Zeroizing<Vec<u8>>,
    /// The place of each byte in the original, if the view is tracked.
    origins: Option<Vec<Range<usize>>>,
}

impl View {
    /// Returns the part of the original that was decoded to `span`. Only for tracked views.
    pub(super) fn origin(&self, span: Range<usize>) -> Range<usize> {
        match self.origins.as_ref().and_then(|origins| origins.get(span.clone())) {
            Some([first, .., last]) => first.start..last.end,
            Some([only]) => only.clone(),
            _ => span,
        }
    }

    /// Returns how many bytes of the view come from before this offset of the original. Only for
    /// tracked views.
    pub(super) fn length_before(&self, offset: usize) -> usize {
        let tracked = |origins: &Vec<Range<usize>>| origins.partition_point(|origin| origin.end <= offset);
        self.origins.as_ref().map_or(self.bytes.len().min(offset), tracked)
    }

    /// Returns the decoded view; `None` if there is nothing to decode.
    fn decode(&self, decoder: &Decoder) -> Option<View> {
        decoder.check.perform(|| self.decoded(decoder))?
    }

    fn decoded(&self, decoder: &Decoder) -> Option<View> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.bytes.len()));
        let mut origins = self.origins.as_ref().map(|_| Vec::with_capacity(self.bytes.len()));
        let mut decoded = false;
        let mut at = 0;
        while at < self.bytes.len() {
            let rest = &self.bytes[at..];
            // Bytes before the next possible escape are copied at once.
            let plain = rest.iter().position(|byte| decoder.triggers.contains(byte)).unwrap_or(rest.len());
            let (unit, length) = match (decoder.decode)(&rest[plain..]) {
                Some(escape) => escape,
                None => (Unit::NOTHING, 0),
            };
            // A trigger without a valid escape is plain, too.
            let plain = if length == 0 { rest.len().min(plain + 1) } else { plain };
            bytes.extend_from_slice(&rest[..plain]);
            bytes.extend_from_slice(unit.as_slice());
            if let Some(origins) = &mut origins {
                origins.extend((at..at + plain).map(|at| self.origin(at..at + 1)));
                let origin = self.origin(at + plain..at + plain + length);
                origins.extend(unit.as_slice().iter().map(|_| origin.clone()));
            }
            decoded |= length > 0;
            at += plain + length;
        }
        decoded.then_some(View { bytes, origins })
    }
}

/// Visits the text as it is, then all its decodings, with their forms.
pub(super) fn visit_all<B>(
    bytes: &[u8],
    track: Track,
    visit: &mut dyn FnMut(&View, Form) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let origins = (track == Track::Yes).then(|| (0..bytes.len()).map(|at| at..at + 1).collect());
    let mut level = View { bytes: Zeroizing::new(bytes.to_vec()), origins };
    let mut form = Form::Plain;
    for _ in 0..=MAX_NESTED {
        visit(&level, form)?;
        for decoder in DECODERS {
            if let Some(view) = level.decode(decoder) {
                visit(&view, decoder.form)?;
            }
        }
        let Some(next) = level.decode(&JSON) else { break };
        (level, form) = (next, JSON.form);
    }
    ControlFlow::Continue(())
}

/// Visits the text as it is, then all its decodings.
pub fn visit_decoded(bytes: &[u8], visit: &mut dyn FnMut(&[u8])) {
    let visited: ControlFlow<()> = visit_all(bytes, Track::No, &mut |view, _| {
        visit(&view.bytes);
        ControlFlow::Continue(())
    });
    debug_assert!(visited.is_continue());
}

struct Decoder {
    check: Check,
    form: Form,
    /// Bytes that may start an escape.
    triggers: &'static [u8],
    /// Returns the character that the escape at the start of the bytes means, and the length of
    /// the escape.
    decode: fn(&[u8]) -> Option<(Unit, usize)>,
}

const JSON: Decoder = Decoder { check: Check::FormJson, form: Form::Json, triggers: b"\\", decode: json };

const DECODERS: &[Decoder] = &[
    Decoder { check: Check::FormPercent, form: Form::Percent, triggers: b"%", decode: percent },
    Decoder { check: Check::FormPercent, form: Form::Percent, triggers: b"+%", decode: form_field },
    Decoder { check: Check::FormXml, form: Form::Xml, triggers: b"&", decode: entity },
    Decoder { check: Check::FormLines, form: Form::Wrapped, triggers: b"\r\n", decode: line_break },
    Decoder { check: Check::FormLines, form: Form::Wrapped, triggers: b"\r\n\t ", decode: indented_break },
    Decoder { check: Check::FormWide, form: Form::Utf16, triggers: b"\0", decode: zero },
];

/// A decoded character of up to four bytes.
struct Unit([u8; 4], usize);

impl Unit {
    const NOTHING: Unit = Unit([0; 4], 0);

    fn byte(byte: u8) -> Unit {
        Unit([byte, 0, 0, 0], 1)
    }

    fn char(c: char) -> Unit {
        let mut bytes = [0; 4];
        let length = c.encode_utf8(&mut bytes).len();
        Unit(bytes, length)
    }

    fn as_slice(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// Decodes escapes of JSON, and similar ones of other languages.
fn json(bytes: &[u8]) -> Option<(Unit, usize)> {
    let byte = match bytes.get(1)? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'0' => 0,
        quoted @ (b'"' | b'\'' | b'\\' | b'/') => *quoted,
        b'x' => u8::try_from(digits(bytes.get(2..4)?, 16)?).ok()?,
        b'u' if bytes.get(2) == Some(&b'{') => {
            let length = bytes[3..].iter().take(7).position(|byte| *byte == b'}')?;
            return Some((Unit::char(char::from_u32(digits(&bytes[3..3 + length], 16)?)?), length + 4));
        }
        b'u' => return utf16(bytes),
        _ => return None,
    };
    Some((Unit::byte(byte), if bytes[1] == b'x' { 4 } else { 2 }))
}

/// Decodes `\u` and four digits, twice for characters beyond 16 bits.
fn utf16(bytes: &[u8]) -> Option<(Unit, usize)> {
    let first = digits(bytes.get(2..6)?, 16)?;
    if let Some(c) = char::from_u32(first) {
        return Some((Unit::char(c), 6));
    }
    let low = bytes.get(6..12).filter(|rest| rest.starts_with(b"\\u"))?;
    let units = [first, digits(&low[2..], 16)?].map(|unit| u16::try_from(unit).unwrap_or_default());
    let c = char::decode_utf16(units).next()?.ok()?;
    Some((Unit::char(c), 12))
}

fn percent(bytes: &[u8]) -> Option<(Unit, usize)> {
    let escape = bytes.strip_prefix(b"%")?.get(..2)?;
    Some((Unit::byte(u8::try_from(digits(escape, 16)?).ok()?), 3))
}

fn form_field(bytes: &[u8]) -> Option<(Unit, usize)> {
    if bytes.starts_with(b"+") { Some((Unit::byte(b' '), 1)) } else { percent(bytes) }
}

fn entity(bytes: &[u8]) -> Option<(Unit, usize)> {
    let rest = bytes.strip_prefix(b"&")?;
    let length = rest.iter().take(10).position(|byte| *byte == b';')?;
    let c = match &rest[..length] {
        b"amp" => '&',
        b"lt" => '<',
        b"gt" => '>',
        b"quot" => '"',
        b"apos" => '\'',
        [b'#', b'x' | b'X', hex @ ..] => char::from_u32(digits(hex, 16)?)?,
        [b'#', decimal @ ..] => char::from_u32(digits(decimal, 10)?)?,
        _ => return None,
    };
    Some((Unit::char(c), length + 2))
}

/// Removes the line break of a wrapped encoded text, in which the next line continues without
/// indentation.
fn line_break(bytes: &[u8]) -> Option<(Unit, usize)> {
    let length = bytes.iter().take(2).take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let next = bytes.get(length)?;
    let wrapped = next.is_ascii_alphanumeric() || b"+/-_=".contains(next);
    wrapped.then_some((Unit::NOTHING, length))
}

/// The most white space that is removed around a line break.
const MAX_INDENT: usize = 64;

/// Removes a line break with the white space around it, as in a text that is indented or has other line ends.
fn indented_break(bytes: &[u8]) -> Option<(Unit, usize)> {
    let length = bytes.iter().take(MAX_INDENT).take_while(|byte| b"\r\n\t ".contains(byte)).count();
    bytes[..length].iter().any(|byte| matches!(byte, b'\r' | b'\n')).then_some((Unit::NOTHING, length))
}

/// Removes a zero, which UTF-16 and UTF-32 have beside every ASCII character.
fn zero(bytes: &[u8]) -> Option<(Unit, usize)> {
    bytes.starts_with(b"\0").then_some((Unit::NOTHING, 1))
}

fn digits(text: &[u8], radix: u32) -> Option<u32> {
    if text.is_empty() || text.len() > 8 {
        return None;
    }
    text.iter()
        .try_fold(0u32, |number, byte| number.checked_mul(radix)?.checked_add(char::from(*byte).to_digit(radix)?))
}
