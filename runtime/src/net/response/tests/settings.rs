//! Agent settings are recognised in every form, and replaced or withheld.

use super::*;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE};
use std::time::{Duration, Instant};

fn settings() -> String {
    let data = json!({format!("_{MARKER}"): true, "a": "x".repeat(300), format!("__{MARKER}"): true});
    data.to_string()
}

/// The forms in which a response may show a text.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned(), format!("user-data: '{text}' # end"), json!(text).to_string()];
    for before in ["", "a", "ab", "abc"] {
        let longer = format!("{before}{text}{before}");
        forms.push(BASE64_STANDARD.encode(&longer));
        forms.push(BASE64_URL_SAFE.encode(&longer));
        forms.push(BASE64_STANDARD.encode(BASE64_STANDARD.encode(&longer)));
        for (width, end) in [
            (76, "\n"),
            (60, "\r\n"),
            (19, "\n    "),
            (1, " "),
            (30, "%0A"),
            (30, "%0d%0a"),
            (30, "<br>"),
            (30, "<br class=\"line\" />\n"),
            (30, "&#10;"),
            (30, "\\n"),
        ] {
            forms.push(wrapped(&BASE64_STANDARD.encode(&longer), width, end));
            forms.push(wrapped(&BASE64_STANDARD.encode(BASE64_STANDARD.encode(&longer)), width, end));
        }
    }
    forms
}

fn wrapped(text: &str, width: usize, end: &str) -> String {
    let lines: Vec<&str> = text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
    lines.join(end)
}

#[test]
fn marked_settings_are_replaced_in_every_form() {
    let policy = policy(json!({}));
    for form in forms(&settings()) {
        let body = json!({"vms": [{"id": 7, "data": form, "cmd": ["sh", form]}]}).to_string();
        let left = cleaned(&policy, &[], 200, &[("content-type", "application/json"), ("x-data", &form)], &body);
        assert_eq!(left.result, Ok(None));
        let expected = json!({"vms": [{"id": 7, "data": PLACEHOLDER, "cmd": ["sh", PLACEHOLDER]}]});
        assert_eq!(serde_json::from_str::<Value>(&left.body).unwrap(), expected, "{form}");
        assert_eq!(left.headers[1].1, PLACEHOLDER);
        let escaped = form.replace('&', "&amp;").replace('<', "&lt;");
        let xml = cleaned(&policy, &[], 200, &[], &format!("<r><a>{escaped}</a><b>1</b></r>"));
        assert_eq!(xml.body, format!("<r><a>{PLACEHOLDER}</a><b>1</b></r>"), "{form}");
        // An unstructured body is withheld.
        let failure =
            cleaned(&policy, &[], 200, &[("content-type", "text/plain")], &format!("log: {form}")).result.unwrap_err();
        assert_eq!(failure.check, Some(Check::SettingsWithheld));
        assert_eq!(cleaned(&policy, &[], 500, &[], &format!("log: {form}")).body, "");
    }
    let object: Value = serde_json::from_str(&settings()).unwrap();
    let left = cleaned(&policy, &[], 200, JSON, &json!({"env": {"deep": object}, "b": 1}).to_string());
    assert_eq!(left.body, json!({"env": {"deep": PLACEHOLDER}, "b": 1}).to_string());
    // Servers may sort keys.
    let sorted = json!({"__x": 1, format!("__{MARKER}"): true, format!("_{MARKER}"): true, "a": "x"});
    let left = cleaned(&policy, &[], 200, JSON, &json!({"env": sorted, "b": 1}).to_string());
    assert_eq!(left.body, json!({"env": PLACEHOLDER, "b": 1}).to_string());
    // Neither do tags, whose attributes may hold it.
    let attribute = format!("<r a=\"_{MARKER} __{MARKER}\"/>");
    assert!(!cleaned(&policy, &[], 200, &[], &attribute).body.contains(MARKER));
    // Escapes do not hide the marker, and a document that is ambiguous is withheld.
    let both = format!("_{MARKER} __{MARKER}").replace('w', "\\u0077");
    let escaped = format!("{{\"a\": \"{both}\"}}");
    assert_eq!(cleaned(&policy, &[], 200, JSON, &escaped).body, json!({"a": PLACEHOLDER}).to_string());
    let twice = format!("{{\"a\": \"{}\", \"a\": 1}}", MARKER.replace('w', "\\u0077"));
    // Of a key that occurs twice, the guest gets what was searched.
    assert_eq!(cleaned(&policy, &[], 200, JSON, &twice).body, "{\"a\":1}");
}

#[test]
fn a_marker_that_is_divided_between_values_withholds_the_answer() {
    let policy = policy(json!({}));
    let text = BASE64_STANDARD.encode(BASE64_STANDARD.encode(settings()));
    let lines: Vec<&str> = text.as_bytes().chunks(20).map(|line| std::str::from_utf8(line).unwrap()).collect();
    let body = json!({"lines": lines}).to_string();
    assert_eq!(cleaned(&policy, &[], 200, JSON, &body).result.unwrap_err().check, Some(Check::SettingsWithheld));
    assert_eq!(clean_json(&body), "{}");
    // In UTF-16, the marker is found as well.
    let wide: String = settings().chars().flat_map(|c| [c, '\0']).collect();
    assert_eq!(cleaned(&policy, &[], 200, JSON, &wide).result.unwrap_err().check, Some(Check::SettingsWithheld));
}

/// The ways in which a server shows a text in pieces: headers and body.
fn in_pieces(pieces: &[&str]) -> Vec<(Vec<(String, String)>, String)> {
    let escape = |piece: &&str| piece.replace('&', "&amp;").replace('<', "&lt;");
    let numbered = pieces.iter().enumerate();
    let lines: Vec<Value> =
        numbered.map(|(at, line)| json!({"n": at, "at": "2026-11-18T10:00:00Z", "t": line})).collect();
    let fields: serde_json::Map<String, Value> =
        pieces.iter().enumerate().map(|(at, line)| (format!("line{at}"), json!(line))).collect();
    let elements: String = pieces.iter().map(|piece| format!("<l>{}</l>", escape(piece))).collect();
    let header = |(at, piece): (usize, &&str)| (format!("x-data-{at}"), (*piece).to_owned());
    let json = |value: Value| (vec![("content-type".to_owned(), "application/json".to_owned())], value.to_string());
    vec![
        json(json!({"console": pieces})),
        json(json!({"console": lines})),
        json(json!(fields)),
        (Vec::new(), format!("<r>{elements}</r>")),
        (pieces.iter().enumerate().map(header).collect(), "{}".to_owned()),
    ]
}

fn is_withheld(policy: &Policy, headers: &[(String, String)], body: &str) -> bool {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let failed = cleaned(policy, &[], 404, &headers, body);
    let same = failed.body.is_empty() && failed.headers.is_empty();
    let answer = cleaned(policy, &[], 200, &headers, body);
    same && answer.result.is_err_and(|withheld| withheld.check == Some(Check::SettingsWithheld))
}

#[test]
fn settings_that_a_server_shows_in_pieces_withhold_the_answer() {
    let policy = policy(json!({}));
    for name in 0..40 {
        let data = json!({format!("_{MARKER}"): true, "agent_id": "agent-1", "vm": {"name": "v".repeat(name)},
                          "env": {"key": "SECRET ".repeat(90 - name / 7)}, format!("__{MARKER}"): true});
        let plain = data.to_string();
        for text in [plain.clone(), BASE64_STANDARD.encode(&plain), BASE64_STANDARD.encode(format!("x{plain}"))] {
            // The shape of other CPIs' settings must not matter here, so the width divides its keys or not.
            for width in [7, 10, 24, 33, 48, 64, 72, 76, 80, 100, 120, 132, 200, 400] {
                let pieces: Vec<&str> =
                    text.as_bytes().chunks(width).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
                for (headers, body) in in_pieces(&pieces) {
                    let numbered = body.contains("\"line0\"") || headers.len() > 1;
                    if width >= 24 || !numbered {
                        assert!(is_withheld(&policy, &headers, &body), "name {name}, width {width}: {body}");
                    }
                }
            }
        }
    }
}

#[test]
fn one_marker_alone_withholds_the_answer() {
    let policy = policy(json!({}));
    let (first, last) = (format!("_{MARKER}"), format!("__{MARKER}"));
    let secret = json!({"bosh": {"blob": "SECRET"}});
    for body in [
        json!({"items": [{"k": first, "v": true}, {"k": "env", "v": secret}, {"k": last, "v": true}]}),
        json!({"items": [{first.as_str(): true}, {"env": secret}, {last.as_str(): true}]}),
        json!({"items": [{"env": secret}, {last.as_str(): true}]}),
        json!({"lines": [format!("{{\"{first}\":true,"), "\"env\":\"SECRET\",", format!("\"{last}\":true}}")]}),
        json!({"cut": format!("{{\"{first}\":true,\"env\":"), "rest": "SECRET"}),
        json!({"start": "SECRET", "end": format!("SECRET\",\"{last}\":true}}")}),
        // A second copy of the first marker does not count as the last marker.
        json!({"a": format!("{first} {first}"), "rest": "SECRET"}),
        json!({"a": format!("{last} {first}"), "rest": "SECRET"}),
        json!({"a": &first[..20], "rest": "SECRET"}),
        json!({"a": "SECRET", "rest": &last[18..]}),
    ] {
        assert!(is_withheld(&policy, &[], &body.to_string()), "{body}");
        assert_eq!(clean_json(&body.to_string()), "{}");
    }
    let xml = format!("<r><e k=\"{first}\">true</e><e k=\"env\">SECRET</e></r>");
    assert!(is_withheld(&policy, &[], &xml));
    let headers = [(format!("x-meta-{first}"), "true".to_owned()), ("x-meta-env".to_owned(), "SECRET".to_owned())];
    assert!(is_withheld(&policy, &headers, "{}"));
    // Names of this program are no part of a marker.
    for harmless in
        [json!({"agent": "wasm-cpi", "settings": "wasm-cpi-agent"}), json!({"wasm-cpi-": ["agent-settings"]})]
    {
        assert_eq!(cleaned(&policy, &[], 200, JSON, &harmless.to_string()).body, harmless.to_string());
    }
}

#[test]
fn what_a_guest_does_not_see_decides_nothing() {
    let show = json!(["json:/id", "header:X-Request-Id"]);
    let mut dropping = slot(show.clone());
    dropping.as_object_mut().unwrap().insert("drop".to_owned(), json!(["json:/data"]));
    let keys = BASE64_STANDARD.encode("agent_id:vm:env:networks:disks:123456789012345678");
    for (policy, secret_names) in [(policy(slot(show)), &["password"][..]), (policy(dropping), &["password"])] {
        for (status, content_type) in
            [(200, "text/plain"), (400, "text/plain"), (200, "application/json"), (400, "text/html")]
        {
            let mut seen = Vec::new();
            // A guest's text becomes one run of base64 with what follows it, if that is long enough.
            for secret in
                ["", "hunter2", "k3x9Qz7mB4tY1wLpR6vN", "abc!defgh", &format!("_{MARKER}"), "agent_id:env:vm:"]
            {
                let body = format!("exec: run {} {secret}", &keys[..60]);
                let headers = [("content-type", content_type), ("x-request-id", "r-1")];
                let left = cleaned(&policy, secret_names, status, &headers, &body);
                seen.push((left.result.map(drop), left.headers, left.body));
            }
            assert!(seen.iter().all(|one| *one == seen[0]), "{status} {content_type}: {seen:?}");
        }
    }
    // A text that is withheld in any case has one message.
    let policy = policy(json!({"drop": ["json:/data"]}));
    let messages = ["harmless", &settings(), "agent_id: x\nenv: y\nvm: z"]
        .map(|text| cleaned(&policy, &[], 200, &[("content-type", "text/plain")], text).result.unwrap_err());
    assert!(messages.iter().all(|one| *one == messages[0]), "{messages:?}");
    // Operators see no settings either.
    let shown = cleaned(&policy, &[], 400, &[("content-type", "text/plain")], &settings()).result.unwrap().unwrap();
    assert!(!shown.contains("xxx"), "{shown}");
}

#[test]
fn settings_of_other_cpis_are_recognised_by_their_keys() {
    let policy = policy(json!({}));
    let full = json!({"agent_id": "a", "vm": {"name": "v"}, "networks": {}, "disks": {}, "env": {"bosh": {"password": "SECRET"}}});
    let registry =
        json!({"registry": {"endpoint": "http://u:SECRET@10.0.0.1:25777"}, "server": {"name": "vm-1"}, "dns": {}});
    let stored = json!({"settings": full.to_string(), "status": "ok"});
    for settings in [&full, &registry, &stored] {
        for value in [settings.clone(), json!(settings.to_string())] {
            let left = cleaned(&policy, &[], 200, JSON, &json!({"data": value, "id": 1}).to_string());
            assert!(!left.body.contains("SECRET") && left.body.contains("\"id\":1"), "{}", left.body);
        }
        let yaml = "a:\n  agent_id: x\n  networks: {}\n  env:\n    password: SECRET\n";
        let as_yaml = [("content-type", "application/yaml")];
        assert!(cleaned(&policy, &[], 200, &as_yaml, yaml).result.is_err());
        for form in forms(&settings.to_string()) {
            // Base64 that starts within a group is not decoded; the marker is for that.
            let left = cleaned(&policy, &[], 200, JSON, &json!({"data": form}).to_string());
            assert_eq!(left.body, json!({"data": PLACEHOLDER}).to_string(), "{form}");
        }
    }
    // Escaped for XML, for a URL, for both, and with the quotes of other languages.
    let escaped =
        |text: &str| text.replace('&', "&amp;").replace('"', "&quot;").replace('{', "&#123;").replace('_', "&#x5f;");
    let percent = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    for settings in [full.to_string(), registry.to_string()] {
        for text in [
            escaped(&settings),
            escaped(&escaped(&settings)),
            percent(&settings),
            settings.replace('"', "%22").replace('_', "%5f"),
            percent(&escaped(&settings)),
            percent(&percent(&settings)),
            settings.replace('"', "'"),
            format!("data={}", percent(&BASE64_STANDARD.encode(&settings))),
        ] {
            let left = cleaned(&policy, &[], 200, JSON, &json!({"data": text}).to_string());
            assert_eq!(left.body, json!({"data": PLACEHOLDER}).to_string(), "{text}");
            let plain = cleaned(&policy, &[], 200, &[("content-type", "text/plain")], &format!("log: {text}"));
            assert!(plain.result.is_err(), "{text}");
        }
    }
    for harmless in [
        json!({"agent_id": "a", "name": "an agent"}),
        json!({"text": "the &quot;agent_id&quot; and 100%22 of env%3A"}),
        json!({"registry": {"endpoint": "x"}}),
        json!({"server": {"name": "vm", "networks": {}}, "disks": [], "env": {}}),
        json!({"key": "A".repeat(400)}),
        json!({"text": "the agent_id and env and networks of a VM"}),
    ] {
        assert_eq!(cleaned(&policy, &[], 200, JSON, &harmless.to_string()).body, harmless.to_string());
    }
}

#[test]
fn a_long_key_above_many_texts_takes_neither_time_nor_memory_for_each_of_them() {
    // Both were the product of the two numbers.
    let (key, texts) = ("k".repeat(1_000_000), vec!["a"; 200_000]);
    let fields: serde_json::Map<String, Value> = (0..20_000).map(|at| (at.to_string(), json!("a"))).collect();
    for below in [json!(texts), json!(fields)] {
        let (before, body) = (Instant::now(), json!({key.as_str(): below, "agent_id": 1}).to_string());
        assert_eq!(cleaned(&policy(json!({})), &[], 200, JSON, &body).body, body);
        assert!(before.elapsed() < Duration::from_secs(10), "{:?}", before.elapsed());
    }
}

#[test]
fn texts_below_other_fields_are_not_put_together() {
    let (start, end) = MARKER.split_at(20);
    for (pieces, is_shown) in [
        (json!([{"a": {"b": &start[..10]}}, {"a": {"b": &start[10..]}}, {"a": {"b": end}}]), false),
        (json!([{"a": {"b": &start[..10]}}, {"a": {"c": &start[10..]}}, {"a": {"b": &end[..10]}}]), true),
        (json!([{"a": {"b": &start[..10]}}, {"ab": &start[10..]}, {"a/b": &end[..10]}]), true),
    ] {
        let body = json!({"l": pieces, "agent_id": 1}).to_string();
        assert_eq!(cleaned(&policy(json!({})), &[], 200, JSON, &body).result.is_ok(), is_shown, "{body}");
    }
}
