//! The canonical forms of the parts of a request.

/// How a service reads the path of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRules {
    /// True if the path, which is sent encoded, is encoded once more.
    pub encodes_twice: bool,
    /// True if empty segments, `.` and `..` are removed.
    pub normalizes: bool,
}

impl PathRules {
    /// Returns the rules of a service. Object storage takes paths as they are, since they are the names of objects.
    pub fn of_service(service: &str) -> PathRules {
        let is_plain = service != "s3";
        PathRules { encodes_twice: is_plain, normalizes: is_plain }
    }

    pub(super) fn canonical(self, path: &str) -> String {
        let normalized = if self.normalizes { normalized(path) } else { path.to_owned() };
        let bytes = if self.encodes_twice { normalized.into_bytes() } else { decoded(&normalized, false) };
        match encoded(&bytes, true) {
            path if path.is_empty() => "/".to_owned(),
            path => path,
        }
    }
}

fn normalized(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            segment => kept.push(segment),
        }
    }
    let is_directory = !kept.is_empty() && ["/", "/.", "/.."].iter().any(|end| path.ends_with(end));
    format!("/{}{}", kept.join("/"), if is_directory { "/" } else { "" })
}

/// Returns the parameters in the order of their encoded names and values.
pub(super) fn query(query: &str) -> String {
    let parameter = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let part = |text: &str| encoded(&decoded(text, true), false);
        (part(name), part(value))
    };
    let mut parameters: Vec<(String, String)> =
        query.split('&').filter(|pair| !pair.is_empty()).map(parameter).collect();
    parameters.sort_unstable();
    let pairs: Vec<String> = parameters.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join("&")
}

/// Returns a line for each name. Values of the same name stay in their order.
pub(super) fn headers(headers: &[(&str, &str)]) -> String {
    let line = |name: &String| {
        let named = headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let values: Vec<String> = named.map(|(_, value)| without_padding(value)).collect();
        format!("{name}:{}\n", values.join(","))
    };
    names(headers).iter().map(line).collect()
}

/// Returns the list of names.
pub(super) fn header_names(headers: &[(&str, &str)]) -> String {
    names(headers).join(";")
}

fn names(headers: &[(&str, &str)]) -> Vec<String> {
    let mut names: Vec<String> = headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns a value without blanks around it, and with one blank in place of several.
fn without_padding(value: &str) -> String {
    let words: Vec<&str> = value.trim().split(' ').filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// Returns the bytes that a percent-encoded text stands for. A broken escape stands for itself.
fn decoded(text: &str, plus_is_blank: bool) -> Vec<u8> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let escape = digit(after.first()).zip(digit(after.get(1))).filter(|_| *first == b'%');
        let (byte, length) = match (escape, first) {
            (Some((high, low)), _) => (u8::try_from(high * 16 + low).unwrap_or_default(), 3),
            (None, b'+') if plus_is_blank => (b' ', 1),
            (None, byte) => (*byte, 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    bytes
}

/// Encodes everything but the characters that no URL needs to encode.
fn encoded(bytes: &[u8], keeps_slashes: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (keeps_slashes && byte == b'/') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}
