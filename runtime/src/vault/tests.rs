mod cuts;
mod lines;
mod seals;

use super::*;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

/// A text with characters that each encoding changes.
const HARD: &str = "p\u{e4}ss <w>/\"\\'&%+?~\n\u{1f511}\u{ff}\u{ff}x";

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Escapes all other characters than ASCII letters and digits, as some JSON writers do.
fn json_ascii(text: &str) -> String {
    let unit = |unit: u16| match u8::try_from(unit) {
        Ok(byte) if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        Ok(b'/') => "\\/".to_owned(),
        _ => format!("\\u{unit:04X}"),
    };
    text.encode_utf16().map(unit).collect()
}

fn percent(text: &str) -> String {
    escaped(text, |byte| format!("%{byte:02x}"))
}

fn percent_upper(text: &str) -> String {
    escaped(text, |byte| format!("%{byte:02X}"))
}

fn escaped(text: &str, escape: fn(u8) -> String) -> String {
    let byte = |byte: u8| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { escape(byte) };
    text.bytes().map(byte).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn mixed(text: &str) -> String {
    let upper = |(i, c): (usize, char)| if i % 3 == 0 { c.to_ascii_uppercase() } else { c };
    text.chars().enumerate().map(upper).collect()
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
        .replace('\u{e4}', "&#xE4;")
}

fn wrapped(text: &str) -> String {
    let lines: Vec<&str> = text.as_bytes().chunks(7).map(|line| std::str::from_utf8(line).unwrap()).collect();
    lines.join("\r\n")
}

type Encoder = fn(&str) -> String;

const ENCODERS: &[(&str, Encoder)] = &[
    ("raw", |text| text.to_owned()),
    ("json", json),
    ("json, ascii", json_ascii),
    ("json in json", |text| json(&json(text))),
    ("json in json in json", |text| json(&json(&json_ascii(text)))),
    ("debug", |text| format!("{text:?}")),
    ("percent", percent),
    ("percent, upper case", percent_upper),
    ("form", |text| url::form_urlencoded::byte_serialize(text.as_bytes()).collect()),
    ("xml", xml),
    ("hex", hex),
    ("hex, upper case", |text| hex(text).to_uppercase()),
    ("hex, mixed case", |text| mixed(&hex(text))),
    ("utf-16", |text| text.chars().flat_map(|c| [c, '\0']).collect()),
    ("base64", |text| STANDARD.encode(text)),
    ("base64, second alignment", |text| STANDARD.encode(format!("a{text}b"))),
    ("base64, third alignment", |text| STANDARD.encode(format!("ab{text}b"))),
    ("base64url", |text| URL_SAFE_NO_PAD.encode(format!("a{text}"))),
    ("base64, percent", |text| percent(&STANDARD.encode(text))),
    ("base64, json", |text| STANDARD.encode(text).replace('/', "\\/")),
    ("base64, wrapped", |text| wrapped(&STANDARD.encode(format!("ab{text}")))),
    ("base64, wrapped in json", |text| json(&wrapped(&STANDARD.encode(text)))),
    ("json in base64", |text| STANDARD.encode(serde_json::json!({"a": text}).to_string())),
];

#[test]
fn a_secret_is_found_and_redacted_in_every_encoding() {
    let vault = Vault::new();
    vault.register("password", Secret::new(HARD));
    for (name, encode) in ENCODERS {
        let text = format!("before {} after", encode(HARD));
        assert_eq!(vault.leak_in(text.as_bytes()).unwrap().as_deref(), Some("password"), "{name}: {text}");
        let redacted = vault.redact(&text);
        assert!(redacted.contains("<redacted>"), "{name}: {redacted}");
        assert!(redacted.starts_with("before ") && redacted.ends_with(" after"), "{name}: {redacted}");
        assert_eq!(vault.leak_in(redacted.as_bytes()).unwrap(), None, "{name}: {redacted}");
    }
}

#[test]
fn text_without_secrets_is_not_changed() {
    let vault = Vault::new();
    vault.register("password", Secret::new("correct horse battery"));
    for text in
        ["", "correct horse", "\\u0000%zz%&#x;&&amp\\", "gr\u{fc}\u{df} \u{1f511}\r\n", "\\ud800", "Y29ycmVjdCBob3JzZQ"]
    {
        assert_eq!(vault.redact(text), text);
        assert_eq!(vault.leak_in(text.as_bytes()).unwrap(), None);
    }
    assert_eq!(vault.redact("a correct horse battery\r\nb"), "a <redacted>\r\nb");
}

#[test]
fn a_long_secret_in_another_case_is_redacted_but_is_not_a_leak() {
    let vault = Vault::new();
    vault.register("host", Secret::new("Api.Cloud.TEST"));
    vault.register("short", Secret::new("ElevenBytes"));
    for text in ["https://api.cloud.test:443/V1", "https://API.CLOUD.TEST:443/V1", "https://API.cloud.test:443/V1"] {
        assert_eq!(vault.redact(text), "https://<redacted>:443/V1");
        assert_eq!(vault.leak_in(text.as_bytes()).unwrap(), None);
    }
    assert_eq!(vault.leak_in(b"https://Api.Cloud.TEST").unwrap().as_deref(), Some("host"));
    assert_eq!(vault.redact("api.cloud.tes elevenbytes"), "api.cloud.tes elevenbytes");
}

#[test]
fn short_secrets_are_not_redacted_or_searched_for() {
    let vault = Vault::new();
    for (name, value) in [("five", "hunt5"), ("six", "hunt66"), ("eleven", "hunt1111111"), ("twelve", "hunt22222222")] {
        vault.register(name, Secret::new(value));
    }
    assert_eq!(vault.redact("hunt5 hunt66 hunt1111111 hunt22222222"), "hunt5 <redacted> <redacted> <redacted>");
    assert_eq!(vault.leak_in(b"hunt5 hunt66 hunt1111111").unwrap(), None);
    assert_eq!(vault.leak_in(b"hunt22222222").unwrap().as_deref(), Some("twelve"));
}

#[test]
fn overlapping_and_nested_secrets_are_all_redacted() {
    let vault = Vault::new();
    vault.register("long", Secret::new("abcdefghijkl"));
    vault.register("inner", Secret::new("cdefghi"));
    vault.register("overlap", Secret::new("ijklmnop"));
    vault.register("periodic", Secret::new("zazazaza"));
    assert_eq!(vault.redact("-abcdefghijklmnop-cdefghi-zazazazazaz"), "-<redacted>-<redacted>-<redacted>z");
}

#[test]
fn debug_shows_counts_only() {
    let vault = Vault::new();
    let seal = vault.seal("name", Secret::new("correct horse"), Layer::Job);
    vault.register("other", Secret::new("battery staple"));
    assert_eq!(format!("{vault:?}"), "Vault(2 secrets, 1 seals)");
    assert!(!format!("{:?}", vault.open(&seal)).contains("horse"));
}

#[test]
fn the_password_in_a_url_is_found_separately() {
    let vault = Vault::new();
    vault.register("mbus", Secret::new("nats://u:hunter2%21hunter2@h:4222"));
    assert_eq!(vault.leak_in(b"it is hunter2!hunter2.").unwrap(), Some("mbus.password".to_owned()));
    assert_eq!(vault.redact("it is hunter2!hunter2."), "it is <redacted>.");
}

proptest! {
    #[test]
    fn redaction_leaves_no_secret_in_any_encoding(
        secrets in prop::collection::vec("[ -~\u{e4}\u{20ac}\u{1f511}]{0,4}[!-~]{12,24}", 1..4),
        which in 0..3usize,
        encoder in 0..ENCODERS.len(),
        before in "[a-z \u{fc}\n]{0,9}",
        after in "[a-z \u{fc}\n]{0,9}",
    ) {
        let vault = Vault::new();
        for (index, secret) in secrets.iter().enumerate() {
            vault.seal(&index.to_string(), Secret::new(secret.clone()), Layer::Call);
        }
        let secret = &secrets[which % secrets.len()];
        let (name, encode) = ENCODERS[encoder];
        let text = format!("{before} {} {after}", encode(secret));
        prop_assert!(vault.leak_in(text.as_bytes()).unwrap().is_some(), "{}: {}", name, text);
        let redacted = vault.redact(&text);
        prop_assert!(redacted.contains("<redacted>"));
        prop_assert_eq!(vault.leak_in(redacted.as_bytes()).unwrap(), None, "{}: {}", name, redacted);
        prop_assert_eq!(vault.redact(&redacted), redacted);
    }

    #[test]
    fn no_text_makes_the_vault_panic(
        text in prop_oneof!["\\PC{0,60}", "[\\\\u{}dDfF0-9%&#x;+\r\na\u{1f511}]{0,60}"],
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let vault = Vault::new();
        vault.seal("a", Secret::new("aaaaaa"), Layer::Call);
        vault.register("b", Secret::new("\u{1f511}\u{1f511}"));
        vault.redact(&text);
        for bytes in [text.as_bytes(), &bytes] {
            vault.leak_in(bytes).unwrap();
            vault.seals_in(bytes);
            vault.transformed_seal_in(bytes);
        }
    }
}

#[test]
fn a_text_that_is_made_to_slow_the_search_is_still_searched_exactly() {
    let vault = Vault::new();
    let secret = format!("{}b", "a".repeat(60_000));
    vault.seal("token", Secret::new(secret.clone()), Layer::Call);
    let almost = "a".repeat(100_000);
    assert_eq!(vault.leak_in(almost.as_bytes()).unwrap(), None);
    assert_eq!(vault.leak_in(format!("{almost}b").as_bytes()).unwrap().as_deref(), Some("token"));
    // The half of it is redacted as well.
    assert_eq!(vault.redact(&format!("{almost}b")), "<redacted>");
}

/// 20 KB of private keys, as a job for a large cloud has them.
fn keys() -> Vec<String> {
    let key = |seed: u32| {
        let lines = (0..50).map(|line| STANDARD.encode(blake3::hash(format!("{seed} {line}").as_bytes()).as_bytes()));
        let lines: Vec<String> = lines.map(|line| format!("{line}{}", &line[..20])).collect();
        format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n", lines.join("\n"))
    };
    (0..6).map(key).collect()
}

#[test]
fn dashes_are_not_a_secret_however_many_keys_begin_with_them() {
    let vault = Vault::new();
    for key in keys() {
        vault.seal("key", Secret::new(key), Layer::Job);
    }
    vault.seal("password", Secret::new("hunter2!"), Layer::Job);
    let dashes = "-".repeat(4_000);
    assert_eq!(vault.leak_in(dashes.as_bytes()).unwrap(), None);
    let url = format!("https://api.test/{}/hunt/hunter2/hunter2!", "-".repeat(3_100));
    assert_eq!(vault.redact(&url), url.replace("hunter2!", "<redacted>"));
    // Many texts do not exhaust anything either.
    for _ in 0..20 {
        assert_eq!(vault.leak_in(dashes.as_bytes()).unwrap(), None);
    }
    assert_eq!(vault.leak_in(format!("{dashes}{}", keys()[0]).as_bytes()).unwrap().as_deref(), Some("key"));
}

#[test]
fn only_credentials_are_leaks_and_all_secrets_are_redacted() {
    let vault = Vault::new();
    vault.seal_as(SecretKind::Value, "region", Secret::new("europe-west-frankfurt"), Layer::Job);
    vault.seal_as(SecretKind::Value, "endpoint", Secret::new("https://u:hunter2-hunter2@a.test/europe"), Layer::Job);
    vault.register_as(SecretKind::FromServer, "token", Secret::new("token-of-a-login"));
    assert_eq!(vault.leak_in(b"the region is europe-west-frankfurt").unwrap(), None);
    assert_eq!(vault.leak_in(b"token-of-a-login").unwrap().as_deref(), Some("token"));
    assert_eq!(vault.leak_in(b"hunter2-hunter2").unwrap().as_deref(), Some("endpoint.password"));
    assert_eq!(vault.redact("europe-west-frankfurt token-of-a-login"), "<redacted> <redacted>");
}

#[test]
fn captured_values_do_not_count_in_what_a_guest_does_not_get() {
    let vault = Vault::new();
    vault.register("password", Secret::new("password-of-the-job"));
    vault.seal_captured("guess", Secret::new("admin password: h"), Layer::Job).unwrap();
    assert_eq!(vault.leak_in_unseen(b"admin password: hunter2").unwrap(), None);
    assert_eq!(vault.leak_in(b"admin password: hunter2").unwrap().as_deref(), Some("guess"));
    assert_eq!(vault.leak_in_unseen(b"x password-of-the-job y").unwrap().as_deref(), Some("password"));
}

#[test]
fn values_of_servers_hide_nothing_in_targets() {
    let vault = Vault::new();
    vault.seal("password", Secret::new("correct-horse"), Layer::Job);
    let seal = vault.seal_captured("token", Secret::new("https://api.test/v1/"), Layer::Job).unwrap();
    let target = format!("https://api.test/v1/evil/correct-horse/{seal}");
    assert_eq!(vault.redact_audit(&target), "https://api.test/v1/evil/<redacted>/<sealed:token>");
    assert_eq!(vault.redact(&target), "<redacted>evil/<redacted>/<sealed:token>");
}

#[test]
fn secrets_are_found_at_every_position_even_if_many_have_the_same_prefix() {
    let vault = Vault::new();
    for secret in ["password-one-1", "password-one-12", "PASSWORD-two-2", "passed-by-all-x"] {
        vault.seal(secret, Secret::new(secret), Layer::Call);
        for text in [secret.to_owned(), format!("x{secret}"), format!("pass{secret}y"), format!("papassword{secret}")] {
            assert!(vault.leak_in(text.as_bytes()).unwrap().is_some(), "{text}");
        }
    }
    assert_eq!(vault.leak_in(b"password-one-, passed-by-all, pass").unwrap(), None);
}

#[test]
fn one_half_of_a_long_secret_is_redacted_and_does_not_count_as_a_leak() {
    let vault = Vault::new();
    vault.register("token", Secret::new("first-half-of-it/second-half-of"));
    for quoted in ["x-auth: first-half-of-it/second-ha", "half-of-it/second-half-of\r\n"] {
        let redacted = vault.redact(quoted);
        assert!(redacted.contains("<redacted>") && redacted.len() < quoted.len(), "{redacted}");
        assert_eq!(vault.leak_in(quoted.as_bytes()), Ok(None));
    }
}

#[test]
fn a_search_that_takes_long_stops_when_the_call_is_over() {
    let vault = Vault::new();
    let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = Arc::clone(&is_over);
    vault.stop_searches_when(Box::new(move || flag.load(std::sync::atomic::Ordering::Relaxed)));
    vault.register("key", Secret::new(format!("-----BEGIN PRIVATE KEY-----{}", "k".repeat(1000))));
    let slow = "-----BEGIN PRIVATE KEY-----".repeat(10_000);
    assert_eq!(vault.leak_in(slow.as_bytes()), Ok(None));
    assert_eq!(vault.redact(&slow), slow);
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(vault.leak_in(slow.as_bytes()), Err(SearchStopped));
    let printed = "<redacted: the call was over before the search for secrets was finished>";
    assert_eq!(vault.redact_start(&slow, 100_000), (printed.to_owned(), slow.len()));
}

#[test]
fn a_long_secret_is_found_after_short_texts_were_searched() {
    let vault = Vault::new();
    let long = "correct horse battery staple ".repeat(200);
    vault.register("settings", Secret::new(long.as_str()));
    assert_eq!(vault.redact("a short line"), "a short line");
    assert_eq!(vault.leak_in(b"a short line"), Ok(None));
    assert!(!vault.redact(&long).contains("horse"));
    assert_eq!(vault.leak_in(long.as_bytes()), Ok(Some("settings".to_owned())));
    let half = &long.trim()[..long.trim().len() / 2];
    assert!(!vault.redact(half).contains("horse"));
}

proptest! {
    #[test]
    fn no_needle_is_shorter_than_the_shortest_one(text in "[ -~]{0,80}|[a-z]{20,40}\n[a-z]{0,50}") {
        let secret = Secret::new(text);
        let shortest = needles::shortest(&secret);
        for needle in needles::of_secret(0, &secret) {
            prop_assert!(needle.len() >= shortest, "{} < {shortest}", needle.len());
        }
    }
}
