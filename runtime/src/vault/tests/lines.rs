//! Secrets of several lines.

use super::*;

#[test]
fn a_short_line_of_a_key_is_redacted_and_is_no_leak() {
    let vault = Vault::new();
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAvk3x9Qz7mB4tY1wLpR6vNsecretsecretsecretsecret00\nQz7mB4tY1w==\n\
               -----END RSA PRIVATE KEY-----\n";
    vault.register("key", Secret::new(key));
    assert_eq!(vault.redact("the end is Qz7mB4tY1w== of -----END RSA"), "the end is <redacted> of -----END RSA");
    assert_eq!(vault.leak_in(b"Qz7mB4tY1w==").unwrap(), None);
    assert!(vault.leak_in(key.as_bytes()).unwrap().is_some());
}

#[test]
fn a_secret_of_short_lines_is_found_with_other_line_ends_and_indentation() {
    let lines = ["db_user: admin", "db_pass: hunter2-s3cret-x", "port: 1"];
    for end in ["\n", "\r\n"] {
        let vault = Vault::new();
        vault.register("settings", Secret::new(lines.join(end)));
        for other in ["\n", "\r\n", "\r", "\n    ", "\r\n\t", "  \n"] {
            let shown = lines.join(other);
            assert_eq!(vault.leak_in(shown.as_bytes()), Ok(Some("settings".into())), "{end:?} as {other:?}");
            let redacted = vault.redact(&format!("1: {shown}"));
            assert!(!redacted.contains("hunter2") && !redacted.contains("admin"), "{redacted}");
        }
        for other in ["\n", "\r\n"] {
            let encoded = STANDARD.encode(lines.join(other));
            assert_eq!(vault.leak_in(encoded.as_bytes()), Ok(Some("settings".into())), "{end:?} as {other:?}");
        }
        // One line alone is redacted, but it does not count as a leak: a guest could guess it.
        assert_eq!(vault.redact("- db_pass: hunter2-s3cret-x"), "- <redacted>");
        assert_eq!(vault.leak_in(b"- db_pass: hunter2-s3cret-x"), Ok(None));
    }
}

#[test]
fn long_lines_of_a_secret_are_found_separately() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ";
    let vault = Vault::new();
    vault.register("key", Secret::new(format!("-----BEGIN ENCRYPTED PRIVATE KEY-----\r\n{line}\r\nshort\r\n-----END")));
    assert_eq!(vault.redact(&format!("  {line}  short")), "  <redacted>  short");
    assert_eq!(vault.leak_in(STANDARD.encode(format!("\t{line}\n")).as_bytes()).unwrap().as_deref(), Some("key"));
    assert_eq!(vault.leak_in(b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nxyz").unwrap(), None);
}
