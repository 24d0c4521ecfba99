//! Secrets and seals in a text, in the encodings that the vault knows: redaction removes
//! them, and the tripwire finds them.

use crate::bytes::{base64, base64_url, contains, hex, shows};
use crate::input::parts;
use wasm_cpi::fuzzing::Vault;
use wasm_cpi_policy::secret::{Layer, Secret};

/// The input is the letters of encodings, a secret, and the text before and after it.
pub(crate) fn fuzz(data: &[u8]) {
    let Some(parts) = parts(data) else { return };
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    let (secret, before, after) = (part(1).trim(), part(2), part(3));
    let vault = Vault::new();
    let seal = vault.seal("settings", Secret::new("settings-of-an-agent"), Layer::Call);
    vault.register("password", Secret::new(part(1)));
    check_redaction(&vault, secret, &format!("{before}{after}"));

    let encoding = Encoding::from_letters(part(0));
    let encoded = encoding.encode(&format!("{before}{secret}{after}"));
    if secret.len() >= 12 {
        assert!(vault.leak_in(encoded.as_bytes()).unwrap().is_some(), "the leak in {encoded:?} is not detected");
    }
    check_redaction(&vault, secret, &encoded);

    let encoded = encoding.encode(&format!("{before}{seal}{after}"));
    if encoding.is_plain() {
        assert_eq!(vault.seals_in(encoded.as_bytes()), std::slice::from_ref(&seal));
    } else if !encoded.contains(&seal) {
        assert!(vault.transformed_seal_in(encoded.as_bytes()).is_some(), "{encoded:?} hides a seal");
    }
    assert!(!contains(vault.redact(&encoded).as_bytes(), seal.as_bytes()), "{encoded:?} shows a seal");
}

/// Asserts that redaction removes the secret, and that redacting again changes nothing.
fn check_redaction(vault: &Vault, secret: &str, text: &str) {
    let redacted = vault.redact(text);
    // A secret that is part of a mark cannot be redacted.
    let in_marks = secret.contains(['<', '>']) || "<redacted> <sealed:settings>".contains(secret);
    if secret.len() >= 6 && !in_marks {
        assert!(!shows(redacted.as_bytes(), secret.as_bytes()), "{redacted:?} shows {secret:?} of {text:?}");
        assert_eq!(vault.redact(&redacted), redacted);
    }
}

/// The encodings that the vault promises to detect, from the inside out.
struct Encoding {
    whole: char,
    single: char,
    json: usize,
}

impl Encoding {
    fn from_letters(letters: &str) -> Encoding {
        let among = |known: &str| letters.chars().find(|letter| known.contains(*letter)).unwrap_or('-');
        Encoding {
            whole: among("hHbuj"),
            single: among("pPfxXw"),
            json: letters.chars().filter(|letter| *letter == 'J').count().min(3),
        }
    }

    fn is_plain(&self) -> bool {
        (self.whole, self.single, self.json) == ('-', '-', 0)
    }

    fn encode(&self, text: &str) -> String {
        let whole = match self.whole {
            'h' => hex(text.as_bytes()),
            'H' => hex(text.as_bytes()).to_ascii_uppercase(),
            'b' => base64(text.as_bytes()),
            'u' => base64_url(text.as_bytes()),
            'j' => base64(json(text).as_bytes()),
            _ => text.to_owned(),
        };
        let each = |write: fn(char) -> String| whole.chars().map(write).collect::<String>();
        let encoded =
            match self.single {
                'p' => each(|c| {
                    if c.is_ascii_alphanumeric() || "-._~".contains(c) { c.to_string() } else { percent_escapes(c) }
                }),
                'P' => each(percent_escapes),
                'f' => url::form_urlencoded::byte_serialize(whole.as_bytes()).collect(),
                'x' => whole.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;"),
                'X' => each(|c| format!("&#x{:x};", u32::from(c))),
                'w' if self.whole != '-' => wrapped(&whole),
                _ => whole,
            };
        (0..self.json).fold(encoded, |text, _| json(&text))
    }
}

fn percent_escapes(c: char) -> String {
    c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Wraps a text into lines of 76 characters, like base64 in mail.
fn wrapped(text: &str) -> String {
    let lines: Vec<String> =
        text.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    lines.join("\r\n")
}
