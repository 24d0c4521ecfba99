//! Seals: how they are made, opened and found.

use super::*;

#[test]
fn a_seal_can_be_opened_and_is_redacted_to_its_name() {
    let vault = Vault::new();
    let seal = vault.seal("user.password", Secret::new("correct horse"), Layer::Job);
    assert!(seal.len() == 40 && seal.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{seal}");
    let sealed = vault.open(&seal).unwrap();
    assert_eq!(
        (sealed.name.as_str(), sealed.secret.reveal(), sealed.layer),
        ("user.password", "correct horse", Layer::Job)
    );
    assert!(vault.open(&seal[1..]).is_none() && vault.open("").is_none());
    assert_eq!(vault.redact(&format!("a {seal} {}", hex(&seal))), "a <sealed:user.password> <sealed:user.password>");
    assert_eq!(vault.leak_in(b"correct horse").unwrap().as_deref(), Some("user.password"));
    assert_eq!(vault.leak_in(seal.as_bytes()).unwrap(), None);
}

#[test]
fn every_sealed_value_has_its_own_seal_even_if_it_equals_another_one() {
    let vault = Vault::new();
    let first = vault.seal("a", Secret::new("value-of-a-secret"), Layer::Job);
    assert_ne!(vault.seal("a", Secret::new("value-of-a-secret"), Layer::Job), first);
    let captured = vault.seal_captured("a", Secret::new("value-of-a-secret"), Layer::Context).unwrap();
    assert_ne!(captured, first);
    // The layer of one does not change that of the other.
    assert_eq!(vault.open(&first).unwrap().layer, Layer::Job);
    assert_eq!(vault.open(&captured).unwrap().layer, Layer::Context);
}

#[test]
fn a_captured_value_costs_the_same_whatever_it_is() {
    let captured = |value: &str| {
        let vault = Vault::new();
        vault.register("password", Secret::new("correct horse battery"));
        let seal = || vault.seal_captured("token", Secret::new(value), Layer::Job);
        (0..1000).take_while(|_| seal().is_some()).count()
    };
    assert_eq!(captured("correct horse battery"), captured("something else, long"));
    assert_eq!(captured("correct horse battery"), captured(&"long ".repeat(3000)));
    assert_eq!(captured("correct horse battery"), MAX_CAPTURES);
}

#[test]
fn the_seal_of_a_place_stays_and_represents_what_was_read_last() {
    let vault = Vault::new();
    let read = |place: &str, value: &str| {
        vault.seal_at(place, SecretKind::FromServer, "mbus", Secret::new(value), Layer::Call)
    };
    let first = read("vm-1 mbus", "one");
    assert_eq!(read("vm-1 mbus", "two"), first);
    assert_ne!(read("vm-2 mbus", "two"), first);
    assert_eq!(vault.open(&first).unwrap().secret.reveal(), "two");
}

#[test]
fn unchanged_seals_are_found() {
    let vault = Vault::new();
    assert_eq!(vault.seals_in(b"nothing yet"), Vec::<String>::new());
    let a = vault.seal("a", Secret::new("x"), Layer::Call);
    let b = vault.seal("b", Secret::new("y"), Layer::Call);
    assert_eq!(vault.seals_in(format!("{b}{a}/{b}").as_bytes()), [b.clone(), a.clone()]);
    assert_eq!(vault.seals_in(&a.as_bytes()[..39]), Vec::<String>::new());
}

#[test]
fn a_changed_seal_is_found_with_the_kind_of_its_change() {
    let vault = Vault::new();
    let seal = vault.seal("agent", Secret::new("x"), Layer::Call);
    let escape = |pattern: fn(u8) -> String| seal.bytes().map(pattern).collect::<String>();
    let table = [
        (seal.clone(), None),
        (format!("%20{seal}\\n{seal}&amp;"), None),
        (STANDARD.encode(&seal), Some("base64")),
        (URL_SAFE_NO_PAD.encode(format!("ab{seal}cd")), Some("base64")),
        (STANDARD.encode(format!("a{seal}")), Some("base64")),
        (hex(&seal), Some("hex")),
        (hex(&seal).to_uppercase(), Some("hex")),
        (escape(|byte| format!("%{byte:02X}")), Some("percent-encoding")),
        (escape(|byte| format!("\\u{byte:04x}")), Some("JSON escapes")),
        (escape(|byte| format!("&#{byte};")), Some("XML entities")),
        (format!("{seal} and {}", escape(|byte| format!("%{byte:02x}"))), Some("percent-encoding")),
        (wrapped(&seal), Some("splitting")),
        (format!("{} {}", &seal[..11], &seal[11..]), Some("splitting")),
        (format!("{} {}", &seal[..31], &seal[31..]), Some("splitting")),
        (seal.to_uppercase(), Some("changing its case")),
    ];
    for (text, expected) in table {
        let found = vault.transformed_seal_in(format!("<{text}>").as_bytes());
        let found = found.map(|(name, form)| (name, form.to_string()));
        assert_eq!(found, expected.map(|form| ("agent".to_owned(), form.to_owned())), "{text}");
    }
}
