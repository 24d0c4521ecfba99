//! Signs HTTP requests with version 4 signatures (`AWS4-HMAC-SHA256`).
//!
//! A signature covers the method, the path, the query, the listed headers and the digest of the body. The
//! secret key is not sent: the server knows it, and computes the same signature. The crate computes and does
//! nothing else; the caller says what time it is, adds the headers `x-amz-date` and `x-amz-security-token`,
//! and sends exactly what was signed. Presigned URLs, chunked signatures and the asymmetric variant are not
//! part of it.
//!
//! ```
//! use wasm_cpi_sigv4::{PathRules, Request, Scope, SigningKey, sha256_hex};
//!
//! let scope = Scope { timestamp: "20150830T123600Z", region: "us-east-1", service: "service" };
//! let request = Request {
//!     method: "GET",
//!     path: "/",
//!     path_rules: PathRules::of_service(scope.service),
//!     query: "",
//!     headers: &[("Host", "api.iaas.test"), ("X-Amz-Date", scope.timestamp)],
//!     payload_sha256: &sha256_hex(b""),
//! };
//! let key = SigningKey::derive("a secret", &scope);
//! let value = request.authorization("AKIDEXAMPLE", &key, &scope);
//! assert!(value.contains("SignedHeaders=host;x-amz-date, Signature="));
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod canonical;
#[cfg(test)]
mod tests;

pub use canonical::PathRules;

use ring::digest::{SHA256, digest};
use ring::hmac;
use zeroize::Zeroizing;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The last part of every scope.
const TERMINATOR: &str = "aws4_request";

/// When, where and for which service a signature is valid.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// The time of the request in UTC, like `20150830T123600Z`: also the value of its header `x-amz-date`.
    pub timestamp: &'a str,
    /// The region, such as `us-east-1`.
    pub region: &'a str,
    /// The name by which the service signs, which need not be the one in its host name.
    pub service: &'a str,
}

/// What is signed of a request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method in upper case.
    pub method: &'a str,
    /// The path as it is sent.
    pub path: &'a str,
    /// How the service reads the path.
    pub path_rules: PathRules,
    /// The query as it is sent; empty if there is none.
    pub query: &'a str,
    /// Names and values of the headers to sign, in the order in which they are sent.
    pub headers: &'a [(&'a str, &'a str)],
    /// The SHA-256 digest of the body, in lower-case hexadecimal digits.
    pub payload_sha256: &'a str,
}

/// The key that signs the requests of one day to one service in one region.
pub struct SigningKey(Zeroizing<[u8; 32]>);

impl SigningKey {
    /// Derives the key from a secret access key.
    pub fn derive(secret_access_key: &str, scope: &Scope<'_>) -> SigningKey {
        let first = Zeroizing::new(format!("AWS4{secret_access_key}"));
        let mut key = SigningKey(Zeroizing::new(sign(first.as_bytes(), scope.date())));
        for part in [scope.region, scope.service, TERMINATOR] {
            key = SigningKey(Zeroizing::new(sign(key.0.as_ref(), part)));
        }
        key
    }

    /// Returns the key in lower-case hexadecimal digits.
    pub fn to_hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex(self.0.as_ref()))
    }
}

impl Scope<'_> {
    /// Returns the day, like `20150830`.
    fn date(&self) -> &str {
        self.timestamp.split('T').next().unwrap_or_default()
    }

    fn credential_scope(&self) -> String {
        format!("{}/{}/{}/{TERMINATOR}", self.date(), self.region, self.service)
    }
}

impl Request<'_> {
    /// Returns the value of the header `Authorization`.
    pub fn authorization(&self, access_key_id: &str, key: &SigningKey, scope: &Scope<'_>) -> String {
        let signature = hex(&sign(key.0.as_ref(), &self.string_to_sign(scope)));
        let (scope, signed) = (scope.credential_scope(), canonical::header_names(self.headers));
        format!("{ALGORITHM} Credential={access_key_id}/{scope}, SignedHeaders={signed}, Signature={signature}")
    }

    /// Returns the text that the signature is computed over.
    pub fn string_to_sign(&self, scope: &Scope<'_>) -> String {
        let digest = sha256_hex(self.canonical().as_bytes());
        format!("{ALGORITHM}\n{}\n{}\n{digest}", scope.timestamp, scope.credential_scope())
    }

    /// Returns the canonical form of the request, in which client and server sign it.
    pub fn canonical(&self) -> String {
        let Request { method, payload_sha256, .. } = self;
        let path = self.path_rules.canonical(self.path);
        let (query, headers) = (canonical::query(self.query), canonical::headers(self.headers));
        format!("{method}\n{path}\n{query}\n{headers}\n{}\n{payload_sha256}", canonical::header_names(self.headers))
    }
}

/// Returns the SHA-256 digest of a text in lower-case hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// Returns bytes in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sign(key: &[u8], text: &str) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}
