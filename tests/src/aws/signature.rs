//! Version 4 signatures: what is signed, and the signature itself.

use super::clock;
use crate::gateway::{Request, percent_decode};
use ring::{digest, hmac};
use std::fmt::Write as _;
use std::time::SystemTime;

pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";
pub(super) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// The header `Authorization` of a signed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authorization {
    pub(super) key: String,
    pub(super) scope: Scope,
    pub(super) signed: Vec<String>,
    pub(super) signature: String,
}

/// What a signing key is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scope {
    /// `20260131`
    pub(super) date: String,
    pub(super) region: String,
    pub(super) service: String,
}

impl Scope {
    pub(super) fn new(time: SystemTime, region: &str, service: &str) -> Scope {
        let date = clock::format_basic(time)[..8].to_owned();
        Scope { date, region: region.to_owned(), service: service.to_owned() }
    }

    pub(super) fn text(&self) -> String {
        format!("{}/{}/{}/aws4_request", self.date, self.region, self.service)
    }

    /// Returns the key that is derived from a secret for this scope.
    fn key(&self, secret: &str) -> hmac::Key {
        let parts = [&self.date, &self.region, &self.service, "aws4_request"];
        let key = |bytes: &[u8]| hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let first = key(format!("AWS4{secret}").as_bytes());
        parts.iter().fold(first, |last, part| key(hmac::sign(&last, part.as_bytes()).as_ref()))
    }
}

impl Authorization {
    /// Reads the header; an error says what is wrong.
    pub(super) fn parse(header: &str) -> Result<Authorization, String> {
        let rest = header.strip_prefix(ALGORITHM).and_then(|rest| rest.strip_prefix(' '));
        let rest = rest.ok_or_else(|| format!("Authorization header requires the algorithm {ALGORITHM}."))?;
        let (mut credential, mut signed, mut signature) = (None, None, None);
        for part in rest.split(',') {
            let (name, value) = part.trim().split_once('=').ok_or("Authorization header has a part without value.")?;
            let place = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut signed,
                "Signature" => &mut signature,
                other => return Err(format!("Authorization header has the unknown part '{other}'.")),
            };
            if place.replace(value.to_owned()).is_some() {
                return Err(format!("Authorization header has '{name}' twice."));
            }
        }
        let required = |part: Option<String>, name| {
            part.filter(|part| !part.is_empty()).ok_or(format!("Authorization header requires '{name}' parameter."))
        };
        let credential = required(credential, "Credential")?;
        let parts: Vec<&str> = credential.split('/').collect();
        let [key, date, region, service, "aws4_request"] = parts.as_slice() else {
            return Err(format!("Credential must be KEY/DATE/REGION/SERVICE/aws4_request, got '{credential}'."));
        };
        let text = |text: &&str| (*text).to_owned();
        let scope = Scope { date: text(date), region: text(region), service: text(service) };
        let signed: Vec<String> = required(signed, "SignedHeaders")?.split(';').map(str::to_owned).collect();
        let lower = |name: &String| !name.is_empty() && !name.bytes().any(|byte| byte.is_ascii_uppercase());
        if !signed.iter().all(lower) || !signed.is_sorted_by(|one, next| one < next) {
            return Err("SignedHeaders must be in lower case, sorted, and without repetition.".to_owned());
        }
        Ok(Authorization { key: text(key), scope, signed, signature: required(signature, "Signature")? })
    }

    pub(super) fn text(&self) -> String {
        format!(
            "{ALGORITHM} Credential={}/{}, SignedHeaders={}, Signature={}",
            self.key,
            self.scope.text(),
            self.signed.join(";"),
            self.signature
        )
    }
}

/// Returns the canonical form of a request with these signed headers.
pub(super) fn canonical_request(request: &Request, signed: &[String], payload: &str) -> String {
    let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (encode(&percent_decode(name), ""), encode(&percent_decode(value), "")))
        .collect();
    pairs.sort();
    let query: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut headers = String::new();
    for name in signed {
        let values: Vec<String> = request
            .headers
            .iter()
            .filter(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let _ = writeln!(headers, "{name}:{}", values.join(","));
    }
    // The path is encoded once more than it was sent.
    let path = encode(path, "/");
    format!("{}\n{path}\n{}\n{headers}\n{}\n{payload}", request.method, query.join("&"), signed.join(";"))
}

/// Returns the text whose signature a request carries.
pub(super) fn string_to_sign(time: &str, scope: &Scope, canonical: &str) -> String {
    format!("{ALGORITHM}\n{time}\n{}\n{}", scope.text(), sha256(canonical.as_bytes()))
}

pub(super) fn sign(secret: &str, scope: &Scope, text: &str) -> String {
    hex(hmac::sign(&scope.key(secret), text.as_bytes()).as_ref())
}

/// Returns the SHA-256 digest in hex.
pub(super) fn sha256(content: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, content).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Escapes all but letters, digits, `-._~` and the characters of `kept`.
fn encode(text: &str, kept: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.as_bytes().contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

    fn scope(service: &str) -> Scope {
        Scope { date: "20150830".to_owned(), region: "us-east-1".to_owned(), service: service.to_owned() }
    }

    /// The example in the documentation of version 4 signatures.
    #[test]
    fn the_published_example_has_its_published_signature() {
        let headers = [
            ("Host", "iam.amazonaws.com"),
            ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"),
            ("X-Amz-Date", "20150830T123600Z"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let request = Request::new("GET", "/?Action=ListUsers&Version=2010-05-08", headers);
        let signed = ["content-type", "host", "x-amz-date"].map(str::to_owned);
        let canonical = canonical_request(&request, &signed, &sha256(b""));
        assert_eq!(sha256(canonical.as_bytes()), "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59");
        let text = string_to_sign("20150830T123600Z", &scope("iam"), &canonical);
        assert_eq!(
            sign(SECRET, &scope("iam"), &text),
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
        );
    }

    #[test]
    fn an_authorization_is_read_as_it_is_written_and_mistakes_are_refused() {
        let whole = Authorization {
            key: "AKIA".to_owned(),
            scope: scope("ec2"),
            signed: ["host", "x-amz-date"].map(str::to_owned).to_vec(),
            signature: "ab".to_owned(),
        };
        assert_eq!(Authorization::parse(&whole.text()), Ok(whole.clone()));
        for (from, to) in [
            (ALGORITHM, "AWS4-ECDSA-P256-SHA256"),
            ("host;x-amz-date", "x-amz-date;host"),
            ("host;x-amz-date", "Host;x-amz-date"),
            ("host;x-amz-date", "host;host"),
            ("aws4_request", "aws4"),
            ("Signature=ab", "Signature="),
            (", Signature=ab", ""),
            ("Signature=ab", "Signature=ab, Signature=ab"),
        ] {
            let text = whole.text().replace(from, to);
            assert!(Authorization::parse(&text).is_err(), "{text}");
        }
    }
}
