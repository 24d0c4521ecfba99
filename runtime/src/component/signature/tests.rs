use std::os::unix::fs::{PermissionsExt, symlink};

use proptest::prelude::*;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;

use super::*;

const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Returns the key pair of a seed.
fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn public(seed: u8) -> String {
    STANDARD.encode(pair(seed).public_key())
}

fn signed(seed: u8, text: &str) -> String {
    STANDARD.encode(pair(seed).sign(text.as_bytes()))
}

/// Returns a valid signature of the digest.
fn good(seed: u8) -> String {
    signed(seed, &message(DIGEST))
}

fn parse(section: Value) -> Result<RequiredSignatures, Vec<Problem>> {
    RequiredSignatures::parse(&section, Path::new("/job/config"))
}

/// Returns a section that requires `threshold` of the keys 1 to `n`.
fn wants(threshold: usize, n: u8) -> RequiredSignatures {
    let keys: Vec<String> = (1..=n).map(public).collect();
    parse(json!({"ed25519": keys, "threshold": threshold})).unwrap()
}

/// Verifies the digest with this file of signatures, or without a file.
fn verify(signature: &RequiredSignatures, file: Option<&str>) -> Result<Vec<String>, String> {
    let dir = tempfile::tempdir().unwrap();
    let guest = dir.path().join("guest.wasm");
    if let Some(text) = file {
        let file = dir.path().join("guest.wasm.sig");
        std::fs::write(&file, text).unwrap();
        // Set independent of the umask, because a file that others can write is rejected.
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    match signature.verify(&guest, DIGEST) {
        Ok(signed) => Ok(signed.into_iter().map(str::to_owned).collect()),
        Err(failure) => Err(failure.to_string()),
    }
}

#[test]
fn the_message_is_one_line_with_a_prefix_of_its_own() {
    assert_eq!(message(DIGEST), format!("wasm-cpi guest sha256:{DIGEST}\n"));
}

#[test]
fn enough_distinct_keys_must_have_signed() {
    let other = good(9);
    for (threshold, n, file, found) in [
        (1, 1, vec![good(1)], vec![1]),
        (1, 3, vec![good(3)], vec![3]),
        (2, 3, vec![good(3), good(1)], vec![1, 3]),
        (3, 3, vec![good(1), good(2), good(3)], vec![1, 2, 3]),
        // Signatures by other keys do no harm, because operators trust different keys.
        (1, 2, vec![other.clone(), good(2), other.clone()], vec![2]),
        // More than enough is enough.
        (1, 2, vec![good(2), good(1)], vec![1]),
    ] {
        let found: Vec<String> = found.into_iter().map(public).collect();
        for text in [file.join("\n"), format!("{}\n", file.join("\n"))] {
            assert_eq!(verify(&wants(threshold, n), Some(&text)), Ok(found.clone()), "{threshold} of {n}: {text}");
        }
    }
}

#[test]
fn too_few_signatures_are_rejected_and_the_error_counts_them() {
    let flipped = {
        let mut bytes = STANDARD.decode(good(1)).unwrap();
        bytes[40] ^= 1;
        STANDARD.encode(bytes)
    };
    let elsewhere = message(&"f".repeat(64));
    for (what, threshold, n, file, found) in [
        ("another key", 1, 1, vec![good(2)], "0 of 1 needed"),
        ("another digest", 1, 1, vec![signed(1, &elsewhere)], "0 of 1 needed"),
        ("the digest alone", 1, 1, vec![signed(1, DIGEST)], "0 of 1 needed"),
        ("no line end", 1, 1, vec![signed(1, message(DIGEST).trim_end())], "0 of 1 needed"),
        ("upper case", 1, 1, vec![signed(1, &message(&DIGEST.to_uppercase()))], "0 of 1 needed"),
        ("a flipped bit", 1, 1, vec![flipped], "0 of 1 needed"),
        ("zeros", 1, 1, vec![STANDARD.encode([0; 64])], "0 of 1 needed"),
        ("one too few", 2, 3, vec![good(2)], "1 of 2 needed"),
        ("one too few, and strangers", 3, 3, vec![good(2), good(8), good(9), good(3)], "2 of 3 needed"),
        ("the same key twice", 2, 2, vec![good(1), good(1)], "1 of 2 needed"),
        ("the same key twice, of two messages", 2, 2, vec![good(1), signed(1, &elsewhere)], "1 of 2 needed"),
    ] {
        let said = verify(&wants(threshold, n), Some(&file.join("\n"))).unwrap_err();
        assert!(said.starts_with("config: guest ") && said.contains(found), "{what}: {said}");
        assert!(said.contains(&format!("sign the text \"wasm-cpi guest sha256:{DIGEST}\\n\"")), "{what}: {said}");
    }
    // The error names the keys that signed and those that could, and counts other signatures.
    let said = verify(&wants(2, 3), Some(&[good(2), good(9)].join("\n"))).unwrap_err();
    for part in [
        format!("guest.wasm.sig, by {}; 1 more in that file are by other keys", public(2)),
        format!("with the key of {} or {}, and add", public(1), public(3)),
    ] {
        assert!(said.contains(&part), "no `{part}` in {said}");
    }
}

#[test]
fn a_file_with_anything_but_signatures_is_rejected() {
    let good = good(1);
    let bare = good.trim_end_matches('=');
    for (what, file, said) in [
        ("missing", None, "cannot be read (No such file"),
        ("empty", Some(String::new()), "is empty"),
        ("a line end", Some("\n".into()), "has no base64 of 64 bytes in line 1"),
        ("a blank line", Some(format!("{good}\n\n{good}")), "in line 2"),
        ("two line ends", Some(format!("{good}\n\n")), "in line 2"),
        ("junk behind", Some(format!("{good}\njunk")), "in line 2"),
        ("a comment", Some(format!("# mine\n{good}")), "in line 1"),
        ("a space", Some(format!("{good} ")), "in line 1"),
        ("a carriage return", Some(format!("{good}\r\n")), "in line 1"),
        ("two on a line", Some(format!("{good} {good}")), "in line 1"),
        ("wrapped", Some(format!("{}\n{}", &good[..76], &good[76..])), "in line 1"),
        ("without padding", Some(bare.into()), "in line 1"),
        ("too short", Some(STANDARD.encode([1; 63])), "in line 1"),
        ("too long", Some(STANDARD.encode([1; 65])), "in line 1"),
        ("loose bits", Some(format!("{}h==", &bare[..bare.len() - 1])), "in line 1"),
        ("65 lines", Some(vec![good.as_str(); 65].join("\n")), "has more than 64 lines"),
        ("huge", Some("A".repeat(1 << 20)), "is larger than 8 KiB"),
    ] {
        let failure = verify(&wants(1, 1), file.as_deref()).unwrap_err();
        assert!(failure.starts_with("config: guest ") && failure.contains(said), "{what}: {failure}");
        assert!(failure.contains(&format!("`guest.signature` requires signatures of 1 of these keys: {}", public(1))));
    }
    assert!(verify(&wants(1, 1), Some(&vec![good.as_str(); 64].join("\n"))).is_ok());
}

#[test]
fn a_file_of_signatures_that_other_users_can_write_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let (guest, file) = (dir.path().join("guest.wasm"), dir.path().join("guest.wasm.sig"));
    let signature = wants(1, 1);
    std::fs::write(&file, good(1)).unwrap();
    let mode = |mode| std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    for open in [0o664, 0o646, 0o666] {
        mode(open);
        let said = signature.verify(&guest, DIGEST).unwrap_err().to_string();
        assert!(said.contains(&format!("is writable by group or others (mode {open:o})")), "{said}");
    }
    mode(0o444);
    // A link is trusted like its target.
    let elsewhere = dir.path().join("elsewhere");
    std::fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(signature.verify(&guest, DIGEST).is_ok());
    std::fs::set_permissions(&elsewhere, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(signature.verify(&guest, DIGEST).is_err());
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let said = signature.verify(&guest, DIGEST).unwrap_err().to_string();
    assert!(said.contains("is not a regular file"), "{said}");
}

#[test]
fn the_path_of_the_file_of_signatures_is_relative_to_the_config() {
    let one = parse(json!({"ed25519": [public(1)], "file": "../signatures/guest"})).unwrap();
    assert_eq!(one.file(Path::new("/x/g.wasm")), Path::new("/job/config/../signatures/guest"));
    assert_eq!(wants(1, 1).file(Path::new("/x/g.wasm")), Path::new("/x/g.wasm.sig"));
}

#[test]
fn each_problem_of_the_section_is_reported() {
    let key = |bytes: &[u8]| STANDARD.encode(bytes);
    let with_sign = |mut bytes: [u8; 32]| {
        bytes[31] |= 0x80;
        key(&bytes)
    };
    let mut one = [0; 32];
    one[0] = 1;
    let mut der = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    der.extend([7; 32]);
    let mut wrapped = [0xff; 32];
    (wrapped[0], wrapped[31]) = (0xed, 0x7f);
    let two = [public(1), public(2)];
    for (section, said) in [
        (json!("x"), "`guest.signature` must be an object"),
        (json!([public(1)]), "`guest.signature` must be an object"),
        (json!({}), "`guest.signature.ed25519` must be a list of 1 to 32"),
        (json!({"ed25519": []}), "`guest.signature.ed25519` must be a list of 1 to 32"),
        (json!({"ed25519": public(1)}), "`guest.signature.ed25519` must be a list of 1 to 32"),
        (json!({"ed25519": (0..33).map(public).collect::<Vec<_>>()}), "must be a list of 1 to 32"),
        (json!({"ed25519": [7]}), "`guest.signature.ed25519[0]` is not a string"),
        (json!({"ed25519": [public(1), "?"]}), "`guest.signature.ed25519[1]` is not base64"),
        (json!({"ed25519": [format!("{}\n", public(1))]}), "`guest.signature.ed25519[0]` is not base64"),
        (json!({"ed25519": [public(1).trim_end_matches('=')]}), "is not base64"),
        (json!({"ed25519": [key(&[1; 31])]}), "is not base64 of the 32 bytes"),
        (json!({"ed25519": [key(&[1; 64])]}), "is not base64 of the 32 bytes"),
        (json!({"ed25519": [key(&der)]}), "is a whole public key in DER; write its last 32 bytes"),
        (json!({"ed25519": [public(1), public(1)]}), "`guest.signature.ed25519[1]` is listed twice"),
        (json!({"ed25519": [key(&[0; 32])]}), "proves nothing"),
        (json!({"ed25519": [with_sign([0; 32])]}), "proves nothing"),
        (json!({"ed25519": [key(&one)]}), "proves nothing"),
        (json!({"ed25519": [with_sign(one)]}), "proves nothing"),
        (json!({"ed25519": [key(&wrapped)]}), "proves nothing"),
        (json!({"ed25519": [key(&[0xff; 32])]}), "proves nothing"),
        (json!({"ed25519": two, "threshold": 0}), "`guest.signature.threshold` must be a number from 1 to 2"),
        (json!({"ed25519": two, "threshold": 3}), "`guest.signature.threshold` must be a number from 1 to 2"),
        (json!({"ed25519": two, "threshold": -1}), "from 1 to 2"),
        (json!({"ed25519": two, "threshold": 1.5}), "from 1 to 2"),
        (json!({"ed25519": two, "threshold": "2"}), "from 1 to 2"),
        (json!({"ed25519": two, "threshold": null}), "from 1 to 2"),
        (json!({"ed25519": two, "threshold": u64::MAX}), "from 1 to 2"),
        (json!({"ed25519": two, "file": ""}), "`guest.signature.file` must be the path"),
        (json!({"ed25519": two, "file": 7}), "`guest.signature.file` must be the path"),
        (json!({"ed25519": two, "keys": 7}), "`guest.signature.keys` is not a key"),
    ] {
        let problems = parse(section.clone()).unwrap_err();
        assert_eq!(problems.len(), 1, "{section}: {problems:?}");
        assert!(problems[0].text.contains(said), "{section}: {problems:?}");
    }
    let problems = parse(json!({"ed25519": ["?"], "threshold": 2, "x": 1})).unwrap_err();
    assert_eq!(problems.len(), 3, "{problems:?}");
}

#[test]
fn with_a_point_of_small_order_as_key_anyone_could_sign() {
    // If R is the neutral element and S is zero, the equation holds for any message.
    let mut neutral = [0; 32];
    neutral[0] = 1;
    let mut forged = [0; 64];
    forged[0] = 1;
    let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, neutral);
    assert!(key.verify(b"anything", &forged).is_ok());
    assert!(Key::parse(&STANDARD.encode(neutral)).is_err());
}

proptest! {
    #[test]
    fn no_file_makes_it_panic_and_only_the_owner_of_a_key_can_sign(text in r"([A-Za-z0-9+/]{86}==|\PC{0,20})(\n([A-Za-z0-9+/]{86}==|\PC{0,9})){0,3}") {
        prop_assert!(verify(&wants(1, 2), Some(&text)).is_err());
    }

    #[test]
    fn parsing_never_panics_on_any_section(text in r"\PC{0,50}", bytes in proptest::collection::vec(any::<u8>(), 0..70), threshold in any::<i64>()) {
        let _ = parse(json!({"ed25519": [text, STANDARD.encode(bytes)], "threshold": threshold, "file": text}));
    }
}
