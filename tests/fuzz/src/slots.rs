//! Seals are replaced by their secrets only in their slots, and nothing else changes.

use crate::input::{message, parts};
use serde_json::Value;
use wasm_cpi::fuzzing::Vault;
use wasm_cpi::fuzzing::{RequestToFill, fill};
use wasm_cpi_policy::normalize_header_name;
use wasm_cpi_policy::place::Place;
use wasm_cpi_policy::secret::{Layer, Secret};
use wasm_cpi_policy::{PathPattern, Slot};

const AGENT: &str = "agent's <\"settings\"> & \\ é";
const PASSWORD: &str = "password of the job";

type Headers = Vec<(String, String)>;

/// The input is the places of slots, one per line, with the names that they accept; the
/// message; the end of the URL; and the layer of the origin. `@A@` and `@P@` stand for
/// seals.
pub(crate) fn fuzz(data: &[u8]) {
    let Some(parts) = parts(data) else { return };
    let vault = Vault::new();
    let agent = vault.seal("agent", Secret::new(AGENT), Layer::Call);
    let password = vault.seal("password", Secret::new(PASSWORD), Layer::Job);
    let sealed = |at: usize| parts.get(at).map_or("", |part| part).replace("@A@", &agent).replace("@P@", &password);
    let slots: Vec<Slot> = parts[0].lines().filter_map(slot).collect();
    let text = sealed(1);
    let (headers, body) = message(&text);
    let before = (headers, body.as_bytes().to_vec());
    let url = format!("https://api.test/v1/x{}", sealed(2));
    let layer = if parts.get(3).is_some_and(|layer| layer.trim() == "context") { Layer::Context } else { Layer::Job };

    let mut after = before.clone();
    let (headers, body) = (&mut after.0, &mut after.1);
    let to_fill = RequestToFill { method: "POST", path: "/v1/x", operation: None, url: &url, headers, body };
    let filled = match fill(&vault, &slots, layer, to_fill) {
        Err(error) => {
            assert!(before == after, "a refused request was changed");
            assert!(!error.message.contains(AGENT) && !error.message.contains(PASSWORD), "{error}");
            return;
        }
        Ok(filled) => filled,
    };
    let seals = [agent.as_str(), password.as_str()];
    assert_eq!(count(&after, &seals), 0, "a seal was sent");
    assert!(!seals.iter().any(|seal| url.contains(seal)), "a seal was sent in the URL");
    for name in &filled.names {
        assert!(slots.iter().any(|slot| slot.takes.contains(name)), "no slot takes `{name}`");
        assert!(name != "password" || layer == Layer::Job, "the job's secret went to the context's origin");
    }
    assert_eq!(filled.names.is_empty(), count(&before, &seals) == 0);
    if filled.names.is_empty() {
        assert!(before == after);
    } else if let [slot] = slots.as_slice() {
        let (seal, secret) = if filled.names == ["agent"] { (&agent, AGENT) } else { (&password, PASSWORD) };
        assert_eq!(count(&before, &seals), 1, "a seal outside the slot was removed");
        check_place(&slot.place, &before, &after, seal, secret);
    }
}

fn slot(line: &str) -> Option<Slot> {
    let mut words = line.split(' ');
    let place: Place = words.next()?.parse().ok()?;
    let path = PathPattern::parse("/v1/*").ok()?;
    Some(Slot {
        method: "POST".into(),
        path,
        operation: None,
        place,
        takes: words.map(str::to_owned).collect(),
        show: Vec::new(),
        max_bytes: None,
    })
}

fn count((headers, body): &(Headers, Vec<u8>), seals: &[&str]) -> usize {
    let heads = headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    let parts: Vec<&[u8]> = heads.chain([body.as_slice()]).collect();
    let occurrences = |seal: &&str| {
        let found = |part: &&[u8]| part.windows(seal.len()).filter(|window| *window == seal.as_bytes()).count();
        parts.iter().map(found).sum::<usize>()
    };
    seals.iter().map(occurrences).sum()
}

fn is_multipart(headers: &Headers) -> bool {
    let multipart = |value: &str| value.trim_start().to_ascii_lowercase().starts_with("multipart/");
    headers.iter().any(|(name, value)| name.eq_ignore_ascii_case("content-type") && multipart(value))
}

/// Asserts that a form which the host wrote again, with a boundary of its own choice, has the secret
/// in place of the seal.
fn check_multipart(before: &(Headers, Vec<u8>), after: &(Headers, Vec<u8>), seal: &str, secret: &str) {
    let names = |headers: &Headers| headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&before.0), names(&after.0));
    let shown = |message: &(Headers, Vec<u8>)| count(message, &[seal]) + count(message, &[secret]);
    assert!(shown(before) <= shown(after) && count(after, &[secret]) > 0, "the secret is missing");
}

/// Asserts that only the value at the place differs.
fn check_place(place: &Place, before: &(Headers, Vec<u8>), after: &(Headers, Vec<u8>), seal: &str, secret: &str) {
    if is_multipart(&before.0) {
        return check_multipart(before, after, seal, secret);
    }
    match place {
        Place::Header(name) => {
            let put = |(own, value): &(String, String)| {
                // Servers take names for the same that differ in such characters only.
                let slot = normalize_header_name(own) == normalize_header_name(name);
                (own.clone(), if slot { value.replace(seal, secret) } else { value.clone() })
            };
            assert_eq!(before.0.iter().map(put).collect::<Headers>(), after.0);
            assert_eq!(before.1, after.1);
            return;
        }
        Place::Cookie(_) => return assert_eq!(before.1, after.1),
        // The host names the type of a whole body if the guest does not.
        Place::Body if before.0.is_empty() => assert!(after.0.iter().all(|(name, _)| name == "content-type")),
        Place::Body => assert!(after.0.starts_with(&before.0)),
        _ => assert_eq!(before.0, after.0),
    }
    let (old, new) = (text(&before.1), text(&after.1));
    match place {
        Place::Json(tokens) => {
            let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("a slot's body is JSON");
            let (mut old, new) = (parsed(old), parsed(new));
            let pointer: String =
                tokens.iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1"))).collect();
            let value = old.pointer_mut(&pointer).expect("the slot's place exists");
            assert_eq!(*value, Value::from(seal));
            *value = Value::from(secret);
            assert_eq!(old, new);
        }
        Place::Form(field) => {
            let pairs = |text: &str| url::form_urlencoded::parse(text.as_bytes()).into_owned().collect::<Headers>();
            let put = |(name, value): (String, String)| {
                let value = if name == *field && value == seal { secret.to_owned() } else { value };
                (name, value)
            };
            assert_eq!(pairs(old).into_iter().map(put).collect::<Headers>(), pairs(new));
        }
        Place::Xml(_) => {
            let escaped = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let escaped = escaped.replace('"', "&quot;").replace('\'', "&apos;");
            let without = |text: &str| text.trim_start_matches('\u{feff}').replace("<![CDATA[", "").replace("]]>", "");
            assert_eq!(without(&old.replace(seal, &escaped)), without(new));
        }
        Place::Part(_) => panic!("a part of a message that is not a form was filled"),
        _ => assert_eq!((old, new), (seal, secret)),
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a body that has a slot is text")
}
