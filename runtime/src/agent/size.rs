//! Decides about the size of agent settings.
//!
//! A guest must not measure settings, because their length depends on secrets. So what the guest
//! adds is bounded alone, and everything else is compared with the limits before the guest runs:
//! in the largest form that a guest can ask for, with room for its additions.
//!
//! The length is constant before a slot writes the settings. A slot that escapes characters of theirs, such as a form
//! with `+` of base64, makes it depend on how many there are; SECURITY.md lists these slots.

use super::additions::{Additions, Encoding};
use super::{AgentError, networks, settings};
use crate::failure::Failure;
use crate::net::response::agent_settings::holds_marker;
use serde_json::{Map, Value, json};
use wasm_cpi_checks::Check;

/// The most bytes that a guest may add to settings, as JSON text within a JSON string.
pub(super) const RESERVE: usize = 4 * 1024;

/// The length of user-data before base64 is a multiple of this.
const STEP: usize = 1024;

/// The largest user-data if no slot says what the platform accepts. The search for each copy of a
/// secret takes memory.
const MAX_USER_DATA: u64 = 128 * 1024;

/// Rejects additions that are larger than the reserve. It depends on nothing but the additions.
pub(super) fn check_additions(additions: &Additions) -> Result<(), AgentError> {
    let each: Result<Vec<Value>, AgentError> = additions.networks.iter().map(networks::added).collect();
    let dns: Vec<&Vec<String>> = additions.networks.iter().map(|network| &network.dns).collect();
    let added = json!([additions.vm_name, settings::disks(additions)?, each?, dns]);
    // A text with both markers counts as settings as a whole, so a guest must not choose where markers are.
    Check::AgentMarker.ensure(!holds_marker(&added.to_string()), || {
        AgentError::refused(
            "what the guest adds to the agent settings contains their marker; choose other names, disk hints and routes",
        )
    })?;
    let bytes = json_string_length(settings::guest_json(&added));
    Check::AgentReserve.ensure(bytes <= RESERVE, || {
        AgentError::refused(format!(
            "the guest adds {bytes} bytes to the agent settings, but at most {RESERVE} are allowed; shorten names, disk \
             hints and routes"
        ))
    })
}

/// Rejects a disk's ID and hint that are larger than the reserve, wherever they are stored.
pub(super) fn check_disk(disk: &str, hint: &Value) -> Result<(), AgentError> {
    let bytes = json_string_length(settings::ascii_json(&json!([disk, hint])));
    Check::AgentReserve.ensure(bytes <= RESERVE, || {
        AgentError::refused(format!(
            "the disk's ID and hint take {bytes} bytes, but at most {RESERVE} are allowed; shorten them"
        ))
    })
}

/// Rejects encodings that are not allowed together: each can be used once, and one kind of base64
/// at most.
pub(super) fn check_encodings(encodings: &[Encoding]) -> Result<(), AgentError> {
    let count = |kinds: &[Encoding]| encodings.iter().filter(|encoding| kinds.contains(encoding)).count();
    let base64 = count(&[Encoding::Base64, Encoding::Base64Url]);
    Check::AgentEncodings.ensure(base64 <= 1 && count(&[Encoding::JsonString]) <= 1, || {
        AgentError::refused(
            "the guest asks for user-data with one encoding twice, or with two kinds of base64; name each encoding once",
        )
    })
}

/// Rejects user-data that could be larger than the platform accepts. `data` holds everything
/// except the guest's additions, and `max_bytes` comes from the slots that take agent settings.
pub(super) fn check_user_data(data: &Map<String, Value>, max_bytes: Option<u64>) -> Result<(), Failure> {
    let plain = json_string_length(settings::user_data_json(data)) + RESERVE + STEP;
    let sent = plain.div_ceil(3) as u64 * 4 + 2;
    let (max, from) = match max_bytes {
        Some(max) if max <= MAX_USER_DATA => (max, "`max_bytes` of the policy's slot"),
        _ => (MAX_USER_DATA, "a limit of the runtime"),
    };
    Check::AgentSize.ensure(sent <= max, || {
        Failure::config(format!(
            "the agent settings of this VM take up to {sent} bytes as user-data, with base64 and {RESERVE} bytes for what \
             the guest adds, but at most {max} are allowed ({from}); the largest parts are {}; make them smaller in the deployment or in the \
             CPI's config",
            largest(data)
        ))
    })
}

/// Returns the length of user-data, whatever the guest adds: the length of `base`, which has no additions,
/// with the reserve for them. If the length depended on the additions, a guest could add letter by letter
/// until a server finds the user-data too long, and so measure the rest.
pub(super) fn padded_length(base: &str, encodings: &[Encoding]) -> usize {
    (sent_length(base, encodings) + RESERVE).next_multiple_of(STEP)
}

/// Pads the text of a JSON object with blanks before its last brace to a length of `padded_length`.
/// Blanks behind the brace could be cut off on the way.
pub(super) fn pad(mut text: String, length: usize, encodings: &[Encoding]) -> String {
    let unpadded = sent_length(&text, encodings);
    if text.pop().is_some() {
        let blanks = length.max(unpadded).next_multiple_of(STEP) - unpadded;
        text.push_str(&" ".repeat(blanks));
        text.push('}');
    }
    text
}

/// Returns the length of a text before base64, which is what a server measures. A JSON string of base64
/// adds two quotes to it, whatever the text is.
fn sent_length(text: &str, encodings: &[Encoding]) -> usize {
    let is_base64 = |encoding: &&Encoding| matches!(encoding, Encoding::Base64 | Encoding::Base64Url);
    let before_base64 = encodings.iter().take_while(|encoding| !is_base64(encoding));
    match before_base64.into_iter().any(|encoding| *encoding == Encoding::JsonString) {
        true => Value::String(text.to_owned()).to_string().len(),
        false => text.len(),
    }
}

/// Returns the length of a text as a JSON string.
fn json_string_length(text: String) -> usize {
    Value::String(text).to_string().len()
}

fn largest(data: &Map<String, Value>) -> String {
    let mut parts: Vec<(&String, usize)> = data.iter().map(|(name, part)| (name, part.to_string().len())).collect();
    parts.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    parts.iter().take(3).map(|(name, size)| format!("`{name}` ({size} bytes)")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{DiskHint, NetworkAddition};

    #[test]
    fn the_reserve_is_for_the_guests_additions_alone() {
        let named = |name: String| Additions { vm_name: name, ..Additions::default() };
        assert_eq!(check_additions(&named("vm-1".into())), Ok(()));
        for large in [
            named("x".repeat(RESERVE)),
            // Within JSON within a JSON string, a quote takes seven bytes.
            named("\"".repeat(RESERVE / 7)),
            named("&".repeat(RESERVE / 7)),
            Additions { system_disk: Some("d".repeat(RESERVE)), ..Additions::default() },
            Additions { raw_ephemeral_disks: vec![DiskHint::Text("d".into()); 400], ..Additions::default() },
            Additions {
                networks: vec![NetworkAddition { alias: Some("a".repeat(RESERVE)), ..NetworkAddition::default() }],
                ..Additions::default()
            },
            Additions {
                networks: vec![NetworkAddition { dns: vec!["10.0.0.1".into(); 200], ..NetworkAddition::default() }],
                ..Additions::default()
            },
        ] {
            let error = check_additions(&large).unwrap_err();
            assert!(error.message.contains("at most 4096 are allowed"), "{error}");
            assert_eq!(error.check, Some(Check::AgentReserve));
        }
    }

    #[test]
    fn a_guest_adds_no_marker_in_any_form() {
        use base64::Engine;
        let marker = format!("__{}", crate::net::response::agent_settings::MARKER);
        let in_base64 = base64::prelude::BASE64_STANDARD.encode(format!("x{marker}y"));
        for additions in [
            Additions { vm_name: marker.clone(), ..Additions::default() },
            Additions { vm_name: in_base64, ..Additions::default() },
            Additions { system_disk: Some(format!("/dev/{marker}")), ..Additions::default() },
        ] {
            assert_eq!(check_additions(&additions).unwrap_err().check, Some(Check::AgentMarker), "{additions:?}");
        }
    }

    #[test]
    fn each_encoding_is_used_once_and_base64_in_one_kind() {
        use Encoding::{Base64, Base64Url, JsonString};
        for fine in [&[][..], &[JsonString], &[Base64], &[Base64Url, JsonString], &[JsonString, Base64]] {
            assert_eq!(check_encodings(fine), Ok(()), "{fine:?}");
        }
        for twice in [&[Base64, Base64][..], &[Base64, Base64Url], &[JsonString, Base64, JsonString]] {
            assert!(check_encodings(twice).is_err(), "{twice:?}");
        }
    }

    #[test]
    fn padded_text_is_the_same_json() {
        for length in [0, 1, 500, 1013, 1014, 1015, 1016, 3000] {
            let value = json!({"a": "x".repeat(length)});
            let wanted = padded_length(&value.to_string(), &[]);
            let padded = pad(value.to_string(), wanted, &[]);
            assert!(padded.len() == wanted && wanted.is_multiple_of(STEP), "{length}");
            assert_eq!(serde_json::from_str::<Value>(&padded).unwrap(), value);
        }
    }

    #[test]
    fn the_length_of_user_data_does_not_depend_on_the_additions() {
        let base = json!({"password": "\"quoted\"", "name": ""}).to_string();
        for encodings in [&[][..], &[Encoding::JsonString]] {
            let length = padded_length(&base, encodings);
            for name in ["", "x", "\"\"", &"x".repeat(1024), &"\"".repeat(1000)] {
                let text = json!({"password": "\"quoted\"", "name": name}).to_string();
                assert_eq!(sent_length(&pad(text, length, encodings), encodings), length, "{name}");
            }
        }
    }

    #[test]
    fn the_length_that_is_sent_is_one_for_all_additions_and_settings_of_about_one_size() {
        use Encoding::{Base64, Base64Url, JsonString};
        // The settings have the same length; in a JSON string, each line break takes one more character.
        let secrets = ["k".repeat(600), "k\n".repeat(100) + &"k".repeat(300)];
        for encodings in [
            &[][..],
            &[JsonString],
            &[Base64],
            &[JsonString, Base64],
            &[Base64, JsonString],
            &[Base64Url, JsonString],
            &[JsonString, Base64Url],
        ] {
            let data = |secret: &str, name: &str| json!({"key": secret, "name": name}).as_object().unwrap().clone();
            let length = |secret: &str, name: &str| {
                settings::encode(data(secret, name), data(secret, ""), encodings).pop().unwrap().len()
            };
            let lengths: Vec<usize> = secrets
                .iter()
                .flat_map(|secret| {
                    ["", "x", "\"", &"\"".repeat(50), &"\"".repeat(900)].map(|name| length(secret, name))
                })
                .collect();
            assert!(lengths.iter().all(|length| *length == lengths[0]), "{encodings:?}: {lengths:?}");
        }
    }

    /// Returns the length of a body in which this place holds the text.
    fn length_in_slot(place: &str, kind: &str, body: &str, text: &str) -> usize {
        use wasm_cpi_policy::place::Place;
        let mut headers = vec![("content-type".to_owned(), kind.to_owned())];
        let mut body = body.as_bytes().to_vec();
        let place: Place = place.parse().unwrap();
        assert!(place.replace(&mut headers, &mut body, &mut |_| Some(text.to_owned())).unwrap());
        body.len()
    }

    #[test]
    fn secrets_of_one_length_have_one_length_in_slots_that_do_not_escape_what_they_hold() {
        use Encoding::{Base64, Base64Url, JsonString};
        let (json, xml) = (("json:/a", "application/json", r#"{"a":"x"}"#), ("xml:E", "text/xml", "<E>x</E>"));
        let form = ("form:F", "application/x-www-form-urlencoded", "F=x");
        let plain = ("body", "text/plain", "x");
        let secrets = ["ab~c?d>eoo~p", "ab~c?dreoo~p", "abocndreoovp", "a<b&c>d'eoop"];
        for (slots, encodings) in [
            (&[plain][..], &[][..]),
            (&[plain], &[JsonString]),
            (&[plain, json, xml], &[Base64]),
            (&[plain, json, xml], &[JsonString, Base64]),
            (&[plain, json, xml, form], &[Base64Url]),
            (&[plain, json, xml, form], &[JsonString, Base64Url]),
            (&[plain, json, xml, form], &[Base64Url, JsonString]),
        ] {
            for (place, kind, body) in slots {
                let length = |secret: &str, name: &str| {
                    let data = |name: &str| json!({"key": secret, "name": name}).as_object().unwrap().clone();
                    let text = settings::encode(data(name), data(""), encodings).pop().unwrap();
                    length_in_slot(place, kind, body, &text)
                };
                let lengths: Vec<usize> =
                    secrets.iter().flat_map(|secret| ["", "x", "xy", "xyz"].map(|name| length(secret, name))).collect();
                assert!(lengths.iter().all(|length| *length == lengths[0]), "{place} {encodings:?}: {lengths:?}");
            }
        }
    }

    #[test]
    fn user_data_too_large_for_the_platform_is_refused_with_the_names_of_its_largest_parts() {
        let data = json!({"env": {"x": "hunter2".repeat(100)}, "networks": "n".repeat(50), "mbus": "m", "vm": {}});
        let data = data.as_object().unwrap().clone();
        let failure = check_user_data(&data, Some(1)).unwrap_err();
        let text = failure.message.clone();
        let sent: u64 = text.split("take up to ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(check_user_data(&data, Some(sent)).is_ok() && check_user_data(&data, Some(sent - 1)).is_err());
        assert!(text.contains("`env` (708 bytes), `networks` (52 bytes), `mbus` (3 bytes)"), "{text}");
        assert!(!text.contains("hunter2") && !text.contains("nnn"), "{text}");
        assert!(check_user_data(&data, None).is_ok());
        let huge = json!({"env": "x".repeat(100_000)});
        let failure = check_user_data(huge.as_object().unwrap(), Some(u64::MAX)).unwrap_err();
        assert!(failure.message.contains("at most 131072 are allowed (a limit of the runtime)"), "{failure}");
    }
}
