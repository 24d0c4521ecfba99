//! Removes headers from which a guest could learn about the parts of an answer that it does not
//! see: validators, digests and lengths.

/// Parts of the names of headers that hold a digest.
const DIGESTS: [&str; 7] = ["checksum", "crc32", "digest", "-hash", "md5", "sha1", "sha256"];

pub(super) fn remove(method: &str, status: u16, headers: &mut Vec<(String, String)>) {
    // The body that a length belongs to is not there to be cleaned.
    let without_body = method == "HEAD" || status == 304;
    headers.retain(|(name, _)| {
        let name = name.to_ascii_lowercase().replace('_', "-");
        match name.as_str() {
            "etag" | "last-modified" | "content-range" | "accept-ranges" => false,
            "content-length" => !without_body,
            name => !name.ends_with("-length") && !DIGESTS.iter().any(|part| name.contains(part)),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validators_digests_and_lengths_are_removed() {
        let names = "ETag Last-Modified Content-MD5 Digest Content-Digest Repr-Digest X-Checksum-Sha1 x-amz-checksum-crc32 \
                     X-Goog-Hash Content-Range X-Uncompressed-Content-Length x_content_length Content-Length Content-Type \
                     Retry-After X-Request-Id Date Location";
        let left = |method: &str| {
            let mut headers: Vec<(String, String)> =
                names.split(' ').map(|name| (name.to_owned(), "1".into())).collect();
            headers.retain(|(name, _)| !name.is_empty());
            remove(method, 200, &mut headers);
            headers.into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(left("GET"), "Content-Length Content-Type Retry-After X-Request-Id Date Location");
        assert_eq!(left("HEAD"), "Content-Type Retry-After X-Request-Id Date Location");
    }
}
