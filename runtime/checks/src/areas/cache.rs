//! The cache of prepared guests. What is refused here is prepared again.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const CacheDirectory: Entry = refusal(
    "cache-directory",
    "Other users can write the cache directory, so they could replace the code that runs.",
    "The operator runs `chown` or `chmod go-w` on the directory, as the message says.",
);
pub(crate) const CacheDirectoryLink: Entry = refusal(
    "cache-directory-link",
    "The cache directory is a symbolic link or a file, and links are not followed.",
    "The operator sets `cache` in the config to the directory itself.",
);
pub(crate) const CacheFile: Entry = refusal(
    "cache-file",
    "Other users can write a file in the cache, so they could replace the code that runs.",
    "The operator deletes the file; the runtime prepares the guest again.",
);
pub(crate) const CacheFileLink: Entry = refusal(
    "cache-file-link",
    "A file in the cache is a symbolic link, and links are not followed.",
    "The operator deletes the link; the runtime prepares the guest again.",
);
pub(crate) const CacheArtifactStamp: Entry =
    safeguard("cache-artifact-stamp", "A compiled guest whose file has changed is hashed again before it is used.");
pub(crate) const CacheDigest: Entry = refusal(
    "cache-digest",
    "The content of a compiled guest does not have the hash in its name, so the file is damaged.",
    "The operator checks the disk; the runtime prepares the guest again.",
);
pub(crate) const CacheManifest: Entry = refusal(
    "cache-manifest",
    "A manifest in the cache is for another format or another guest.",
    "Nothing has to be done: the runtime prepares the guest again.",
);
pub(crate) const CacheStamp: Entry =
    safeguard("cache-stamp", "A guest whose file has changed is hashed again before it is used.");
