//! URL to `Destination`: its parts must be those of the text, and parsing its own
//! canonical form again must change nothing.

use crate::bytes::percent_decoded;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wasm_cpi_policy::destination::{Destination, Host};

const MAX: u64 = 512;

pub(crate) fn fuzz(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Destination::parse(text, MAX) {
        Err(invalid) => {
            let said = invalid.to_string();
            assert!(said.len() < 200 && !said.contains(char::is_control), "{said:?}");
        }
        Ok(destination) => {
            assert!(text.len() as u64 <= MAX);
            check_form(&destination);
            check_parts(text, &destination);
        }
    }
}

fn check_form(destination: &Destination) {
    let url = destination.to_url();
    let line = url.as_str();
    assert!(line.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\'), "{line}");
    assert!(url.username().is_empty() && url.password().is_none() && url.fragment().is_none(), "{line}");
    // Escapes can make it longer than the guest's text.
    assert_eq!(Destination::parse(line, u64::MAX).as_ref(), Ok(destination), "{line} is not canonical");
    let shown = destination.to_string();
    assert_eq!(shown, format!("{}{}", destination.origin(), destination.path()));
    assert!(!shown.contains(['?', '#']), "{shown}");
    let authority = line.split('/').nth(2).unwrap_or_default();
    let authority = authority.split(['?', '#']).next().unwrap_or_default();
    assert_eq!(authority, destination.host_header(), "{line}");
    let upper = destination.path().to_ascii_uppercase();
    for escape in ["%2F", "%5C", "%0", "%1", "%7F", "%2E", "%2525", "%252F", "%252E", "%253B"] {
        assert!(!upper.contains(escape), "{escape} in {line}");
    }
}

fn check_parts(text: &str, destination: &Destination) {
    let (scheme, rest) = text.split_once("://").expect("an accepted URL has a scheme and an authority");
    assert_eq!(scheme.to_ascii_lowercase(), destination.scheme().as_str());
    let (rest, _) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let decoded = |text: Option<&str>| text.map(|text| percent_decoded(text.as_bytes()));
    assert_eq!(decoded(query), decoded(destination.query()), "{text}");
    // The `url` crate does not let `..` remove a drive letter, which is right only for files. It does no harm, as the
    // URL that is checked is also the one that is sent.
    if !segments(path)
        .iter()
        .any(|segment| matches!(segment.as_slice(), [letter, b':' | b'|'] if letter.is_ascii_alphabetic()))
    {
        assert_eq!(resolved(path), segments(destination.path()), "{text}");
    }

    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().expect("an accepted port is a number")),
        _ => (authority, destination.scheme().default_port()),
    };
    assert_eq!(port, destination.port(), "{text}");
    if host.is_ascii() {
        assert_eq!(*destination.host(), host_of(host), "{text}");
    }
}

fn host_of(host: &str) -> Host {
    if let Some(v6) = host.strip_prefix('[') {
        let address: Ipv6Addr = v6.trim_end_matches(']').parse().expect("an accepted address is valid");
        return Host::Ip(IpAddr::V6(address).to_canonical());
    }
    numeric(host).map_or_else(|| Host::Name(host.to_ascii_lowercase()), |ip| Host::Ip(IpAddr::V4(ip)))
}

/// Parses an address like the C library's `inet_aton` and browsers: up to four
/// numbers in decimal, octal or hex, of which the last one fills the rest.
fn numeric(host: &str) -> Option<Ipv4Addr> {
    let mut numbers = Vec::new();
    for part in host.strip_suffix('.').unwrap_or(host).split('.') {
        let lower = part.to_ascii_lowercase();
        let number = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
            (Some(""), _) | (_, Some("")) => 0,
            (Some(hex), _) => u64::from_str_radix(hex, 16).ok()?,
            (None, Some(octal)) => u64::from_str_radix(octal, 8).ok()?,
            (None, None) => lower.parse().ok()?,
        };
        numbers.push(number);
    }
    let last = numbers.pop()?;
    if numbers.len() > 3 || numbers.iter().any(|number| *number > 255) || last >= 1 << (8 * (4 - numbers.len())) {
        return None;
    }
    let head = numbers.iter().enumerate().map(|(at, number)| number << (24 - 8 * at)).sum::<u64>();
    u32::try_from(head + last).ok().map(Ipv4Addr::from)
}

/// Returns the decoded segments of a path.
fn segments(path: &str) -> Vec<Vec<u8>> {
    path.split('/').skip(1).map(|segment| percent_decoded(segment.as_bytes())).collect()
}

/// Returns the decoded segments of a path, with `.` and `..` resolved.
fn resolved(path: &str) -> Vec<Vec<u8>> {
    let segments = segments(if path.is_empty() { "/" } else { path });
    let (mut kept, last): (Vec<Vec<u8>>, usize) = (Vec::new(), segments.len() - 1);
    for (at, segment) in segments.into_iter().enumerate() {
        let dots = matches!(segment.as_slice(), b"." | b"..");
        if segment == b".." {
            kept.pop();
        }
        if !dots {
            kept.push(segment);
        } else if at == last {
            kept.push(Vec::new());
        }
    }
    kept
}
