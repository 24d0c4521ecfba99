//! The fifth step: removes headers from which a guest could learn about the parts of a response that it does not
//! see: validators, digests, signatures and lengths.

/// Parts of the names of headers that say something about the whole response.
const PARTS: [&str; 14] = [
    "blake",
    "checksum",
    "digest",
    "etag",
    "fingerprint",
    "hash",
    "hmac",
    "length",
    "md5",
    "modified",
    "range",
    "signature",
    "size",
    "xxh",
];

/// Starts of the words in such names: `X-Body-SHA512`, `x-amz-crc64`, `X-Body-Len`.
const WORDS: [&str; 8] = ["adler", "bytes", "crc", "len", "mac", "sha", "sig", "sum"];

/// Removes such headers, except the seals of captured values. How a response was framed is removed, too: servers
/// choose between a length and chunks by the size of the whole response.
pub(super) fn remove(headers: &mut Vec<(String, String)>, is_seal: &dyn Fn(&str) -> bool) {
    headers.retain(|(name, value)| {
        let name = name.to_ascii_lowercase().replace('_', "-");
        is_seal(value) || !(is_digest(&name) || name == "transfer-encoding")
    });
}

fn is_digest(name: &str) -> bool {
    let is_word = |word: &str| {
        let rest = WORDS.iter().find_map(|start| word.strip_prefix(start));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    PARTS.iter().any(|part| name.contains(part)) || name.split('-').any(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOVED: &str = "ETag OC-ETag X-Object-Etag Last-Modified Content-MD5 Digest Content-Digest Repr-Digest \
        X-Checksum-Sha1 x-amz-checksum-crc32 X-Goog-Hash Content-Range Accept-Ranges X-Uncompressed-Content-Length \
        x_content_length X-Body-SHA512 X-SHA-384 X-Content-CRC64 Signature Signature-Input X-Hub-Signature-256 \
        X-Image-Meta-Size X-Container-Bytes-Used X-Sum X-Body-Len X-Sig X-Body-Mac X-Sig256";

    const KEPT: &str = "Content-Type Retry-After X-Request-Id X-Cloud-API-Version Cloud-Image-Import-Methods \
        Date Location Link Vary X-Image-Tag X-Shared X-Summary X-Machine X-Lender X-Signal WWW-Authenticate";

    fn left(names: &str) -> String {
        let mut headers: Vec<(String, String)> =
            names.split_whitespace().map(|name| (name.to_owned(), "1".into())).collect();
        remove(&mut headers, &|_| false);
        headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn validators_digests_and_lengths_are_removed() {
        let kept = KEPT.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(left(&format!("{REMOVED} {KEPT}")), kept);
        assert_eq!(left("Content-Length Transfer-Encoding Date"), "Date");
    }

    #[test]
    fn a_captured_value_stays() {
        let mut headers = vec![("X-Signature".to_owned(), "seal".to_owned()), ("ETag".to_owned(), "1".to_owned())];
        remove(&mut headers, &|value| value == "seal");
        assert_eq!(headers.len(), 1);
    }
}
