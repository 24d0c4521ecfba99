use serde_json::{Value, json};

use super::*;
use crate::bindings::bosh::cpi::image as wire_image;
use crate::host::Host;
use crate::{ErrorKind, Json, agent, clock, config, image, log, random, registry};

#[test]
fn the_guest_reads_the_properties_and_call_of_the_test() {
    #[derive(serde::Deserialize, Debug)]
    struct Properties {
        region: String,
        password: crate::Seal,
    }
    let call = config::CallInfo { method: "has_vm".into(), ..Fake::new().call() };
    let _host = Fake::new().properties(json!({"region": "r1", "password": "s"})).call_info(call).install();
    let properties: Properties = config::properties().unwrap();
    assert_eq!((properties.region.as_str(), properties.password.as_str()), ("r1", "s"));
    assert_eq!(config::call().method, "has_vm");
    let error = config::properties::<BTreeMap<String, u8>>().unwrap_err();
    assert!(error.message.starts_with("properties.password: "), "{error}");
}

#[test]
fn dropping_a_host_restores_the_previous_one() {
    let outer = Fake::new().install();
    {
        let inner = Fake::new().install();
        log::info("inner");
        assert_eq!(inner.logs(), [(log::Level::Info, "inner".into())]);
    }
    log::warn("outer");
    log::error("e");
    log::debug("d");
    assert_eq!(outer.logs().len(), 3);
}

#[test]
fn a_server_with_state_answers_requests_without_a_fixed_answer() {
    let mut seen = 0;
    let host = Fake::new()
        .on("GET", "https://c/fixed", Answer::text(204, ""))
        .serve(move |request| {
            seen += 1;
            Answer::json(200, json!({"seen": seen, "url": request.url}))
        })
        .install();
    for url in ["https://c/fixed", "https://c/a", "https://c/b"] {
        crate::http::post(url).json(&json!({"u": url})).send().unwrap();
    }
    let last = crate::http::get("https://c/c").send().unwrap();
    assert_eq!(last.json::<Value>().unwrap(), json!({"seen": 4, "url": "https://c/c"}));
    assert_eq!(host.request_json(1), Some(json!({"u": "https://c/a"})));
    assert_eq!(host.request_json(3), None);
}

#[test]
fn agent_calls_are_recorded_in_order() {
    let host = Fake::new().install();
    let hint = DiskHint::Text("/dev/sdb".into());
    let settings = agent::Settings {
        encodings: vec![agent::Encoding::Base64],
        networks: vec![agent::addition("default")],
        ..agent::settings("vm-1")
    };
    let seal = agent::bootstrap(&settings).unwrap();
    assert_eq!(seal.as_str(), "sealed-user-data-1");
    agent::created("vm-1", "key").unwrap();
    agent::attached("key", "disk-1", &hint).unwrap();
    agent::detached("key", "disk-1").unwrap();
    agent::deleted("key").unwrap();
    let (registry_key, disk) = ("key".to_owned(), "disk-1".to_owned());
    assert_eq!(
        host.agent_events(),
        [
            AgentEvent::Bootstrap(settings),
            AgentEvent::Created { vm: "vm-1".into(), registry_key: registry_key.clone() },
            AgentEvent::Attached { registry_key: registry_key.clone(), disk: disk.clone(), hint },
            AgentEvent::Detached { registry_key: registry_key.clone(), disk },
            AgentEvent::Deleted { registry_key },
        ]
    );
}

#[test]
fn agent_failures_have_the_right_kind() {
    use crate::bindings::bosh::cpi::agent::Error;
    for (failure, kind) in [
        (Error::Refused("too large".into()), ErrorKind::Cpi),
        (Error::Registry("503".into()), ErrorKind::Cloud),
        (Error::Cancelled("stop".into()), ErrorKind::Cloud),
    ] {
        let _host = Fake::new().fail_agent(failure).install();
        let error = agent::bootstrap(&agent::settings("v")).unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(error.message.starts_with("building the user-data: "), "{error}");
    }
}

#[test]
fn the_registry_stores_and_deletes_settings() {
    let host = Fake::new().registry_entry("vm-1", json!({"disks": {}})).install();
    assert_eq!(registry::get("vm-1").unwrap(), Some(json!({"disks": {}})));
    assert_eq!(registry::get("vm-2").unwrap(), None);
    registry::put("vm-2", &json!({"a": 1})).unwrap();
    assert_eq!(host.registry_settings("vm-2"), Some(json!({"a": 1})));
    registry::delete("vm-1").unwrap();
    registry::delete("vm-1").unwrap();
    // The runtime succeeds, too, if there are no settings.
    assert_eq!(host.registry_delete("vm-1"), Ok(()));
    assert_eq!(host.registry_settings("vm-1"), None);
}

#[test]
fn what_the_needs_do_not_declare_is_denied_with_the_need_to_add() {
    let needs = r#"{"version":1,"http":[{"id":"vms","to":"${url}","methods":["GET"],"paths":["/vms/*"]}]}"#;
    let host = Fake::new()
        .properties(json!({"url": "https://c/v1"}))
        .needs(needs)
        .serve(|_| Answer::text(200, ""))
        .image("x")
        .registry_entry("vm-1", json!({}))
        .session("main", json!({"id": "s"}))
        .install();
    crate::http::get("https://c/v1/vms/1?x=y").send().unwrap();
    let error = crate::http::post("https://c/v1/vms").send().unwrap_err();
    let denied = http::ErrorKind::Denied(http::Denial::Undeclared);
    assert!(matches!(&error.cause, crate::http::Cause::Transport { kind, .. } if *kind == denied), "{error:?}");
    let expected = r#"add {"id":"new-need","methods":["POST"],"paths":["/vms"],"to":"${url}"} to "http" in needs.json"#;
    assert!(error.to_string().contains(expected), "{error}");
    assert_eq!(host.requests().len(), 2);
    assert!(image::size().unwrap_err().message.contains(r#"add `"image": true` to them"#));
    assert!(registry::get("vm-1").unwrap_err().message.contains("do not declare `registry`"));
    let error = crate::http::session::<Value>("main").unwrap_err();
    assert!(matches!(&error.cause, crate::http::Cause::Transport { kind, .. } if *kind == denied), "{error:?}");
    assert!(error.to_string().contains(r#"add "main" to "logins" in needs.json"#), "{error}");
    let _host = Fake::new().needs(r#"{"version":1,"image":true,"registry":true}"#).image("x").install();
    assert_eq!(image::size().unwrap(), 1);
    for (logins, declared) in [(r#"["other","main"]"#, true), (r#""*""#, true), (r#"["other"]"#, false), ("[]", false)]
    {
        let needs = format!(r#"{{"version":1,"logins":{logins}}}"#);
        let _host = Fake::new().needs(&needs).session("main", json!({"id": "s"})).install();
        assert_eq!(crate::http::session::<Value>("main").is_ok(), declared, "{needs}");
    }
}

#[test]
fn more_than_a_mebibyte_of_an_image_at_once_is_refused() {
    let image = vec![7; 2 << 20];
    let _host = Fake::new().image(image.clone()).image_member("m", image).install();
    assert_eq!(image::read(0, 1 << 20).unwrap().len(), 1 << 20);
    assert_eq!(image::read_member("m", 1 << 20).unwrap().len(), 1 << 20);
    for refused in [image::read(0, (1 << 20) + 1), image::read_member("m", (1 << 20) + 1)] {
        let message = refused.unwrap_err().message;
        assert!(
            message.contains("1048577 bytes are too many for one read; read at most 1048576 bytes at once"),
            "{message}"
        );
    }
}

#[test]
fn an_image_can_be_read_in_parts() {
    let _host = Fake::new().image("0123456789").image_member("root.img", "abcdef").install();
    assert_eq!(image::size().unwrap(), 10);
    assert_eq!(image::sha256().unwrap().len(), 64);
    assert_eq!(image::read(8, 100).unwrap(), b"89");
    assert_eq!(image::read(10, 1).unwrap(), b"");
    assert_eq!(image::read(11, 1).unwrap_err().kind, ErrorKind::Cpi);
    assert_eq!(image::members().unwrap(), [wire_image::Member { name: "root.img".into(), size: 6 }]);
    assert_eq!(image::read_member("root.img", 3).unwrap(), b"abc");
    assert!(image::read_member("other", 3).unwrap_err().message.contains("no member `other`"));
}

#[test]
fn a_call_without_an_image_denies_it_and_a_plain_image_has_no_members() {
    {
        let _host = Fake::new().install();
        assert!(image::size().unwrap_err().message.starts_with("reading the stemcell image: "));
    }
    let _host = Fake::new().image("x").install();
    assert!(image::members().unwrap_err().message.contains("not an archive"));
}

#[test]
fn time_passes_only_by_sleeping() {
    let _host = Fake::new().install();
    let (now, monotonic) = (clock::now_ms(), clock::monotonic());
    clock::sleep(std::time::Duration::from_millis(2500)).unwrap();
    assert_eq!(clock::now_ms() - now, 2500);
    assert_eq!((clock::monotonic() - monotonic).as_millis(), 2500);
}

#[test]
fn an_ending_call_cancels_everything_except_http_and_log() {
    let host = Fake::new()
        .image("x")
        .registry_entry("i", json!({}))
        .on("DELETE", "https://c/vm", Answer::text(204, ""))
        .end_after_ms(10)
        .install();
    assert_eq!(clock::ending(), None);
    let cancelled = clock::sleep(std::time::Duration::from_secs(1)).unwrap_err();
    assert_eq!(cancelled.to_string(), "the call is ending: undo what is unfinished, and return");
    assert_eq!(clock::ending(), Some(cancelled));
    for error in [
        image::size().unwrap_err(),
        registry::get("i").unwrap_err(),
        registry::put("i", &json!({})).unwrap_err(),
        agent::deleted("i").unwrap_err(),
    ] {
        assert_eq!(error.kind, ErrorKind::Cloud);
        assert!(error.message.contains("the call is ending"), "{error}");
    }
    assert_eq!(crate::http::delete("https://c/vm").send().unwrap().status, 204);
    log::info("cleaned up");
    assert_eq!(host.logs().len(), 1);
}

#[test]
fn random_bytes_differ_within_a_test_and_repeat_in_the_next() {
    let first = {
        let _host = Fake::new().install();
        let (a, b) = (random::bytes(8), random::bytes(8));
        assert_ne!(a, b);
        a
    };
    let _host = Fake::new().install();
    assert_eq!(random::bytes(8), first);
    assert_eq!(random::hex(4).len(), 8);
}

#[test]
fn a_thread_without_an_installed_host_has_an_empty_one() {
    assert_eq!(Json::raw(crate::host::current().properties()).value().unwrap(), json!({}));
}

#[test]
fn the_digests_of_blocks_are_those_of_the_host() {
    let host = Fake::new().image([1, 2, 3, 0, 0, 4]).serve(|_| Answer::text(200, "").header("etag", "e")).install();
    let upload = crate::http::put_blocks("https://c/{index}", 2).header("x-digest", "{sha256-base64}");
    let sent = upload.skip_zero_blocks().send().unwrap();
    assert_eq!(
        host.requests()[0].headers,
        [("x-digest".into(), "oShx/uIQ+4YZKR6uoZRYHL0lMeSyN1nSJfaAaSP2MiI=".into())]
    );
    // The digest is that of the digests' bytes: [1, 2], [3, 0] and [0, 4].
    assert_eq!(sent.sha256_of_digests, "BI/iIGR4iOTpF/b6EVyO37cImNQtmKJfgi1NdzTVfco=");
    assert_eq!((sent.sent, sent.etags.len()), (3, 3));
}

#[test]
fn an_upload_in_blocks_that_the_host_refuses_is_refused() {
    let kind = |error: crate::http::RequestError| match error.cause {
        crate::http::Cause::Transport { kind, sent, .. } => (kind, sent),
        other => panic!("{other:?}"),
    };
    let with = |needs: &str, url: &str, block_bytes: u32, first: u32| {
        let _host = Fake::new().needs(needs).image([0; 9]).serve(|_| Answer::text(200, "")).install();
        let upload = crate::http::put_blocks(url, block_bytes).first_index(first).skip_zero_blocks();
        upload.send().err().map(kind)
    };
    let needs =
        r#"{"version":1,"image":true,"http":[{"id":"b","to":"https://c","methods":["PUT"],"paths":["/b/*","/"]}]}"#;
    let invalid = Some((http::ErrorKind::InvalidRequest, false));
    for url in ["https://c/b/{index}", "https://c/b/1?id={index}", "https://c?{index}", "https://c/b/{index}#{index}"] {
        assert_eq!(with(needs, url, 4, 0), None, "{url}");
    }
    for url in ["https://c/b/1", "https://c/b/1#{index}", "https://c{index}/b/1", "https://c{index}/b/{index}"] {
        assert_eq!(with(needs, url, 4, 0), invalid, "{url}");
    }
    let url = "https://c/b/{index}";
    assert_eq!(with(needs, url, 4, u32::MAX - 2), invalid);
    assert_eq!(with(&needs.replace("true", "false"), url, 4, 0), invalid);
    let undeclared = http::ErrorKind::Denied(http::Denial::Undeclared);
    assert_eq!(with(needs, "https://c/other/{index}", 4, 0), Some((undeclared, false)));
    let limit = http::ErrorKind::Limit("http_blocks_mib".to_owned());
    assert_eq!(with(needs, url, 22 << 20, 0), Some((limit, false)));
    // A block was sent before the one that fails.
    let _host = Fake::new().image([1; 9]).on("PUT", "https://c/b/0", Answer::text(200, "")).install();
    let error = crate::http::put_blocks(url, 4).send().unwrap_err();
    assert_eq!(kind(error), (http::ErrorKind::Denied(http::Denial::Undeclared), true));
}

#[test]
fn an_ending_call_can_upload_the_image() {
    let _host = Fake::new().image([1; 9]).end_after_ms(0).serve(|_| Answer::text(200, "")).install();
    assert!(image::size().is_err());
    assert_eq!(crate::http::put_blocks("https://c/{index}", 4).send().unwrap().sent, 3);
}
