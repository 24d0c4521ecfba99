use super::line::LINE_MAX;
use super::*;
use crate::lock_down::landlock::Landlock;
use crate::lock_down::{LockDownReport, Network};
use crate::log::Format;
use crate::vault::Vault;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::net::Ipv4Addr;
use wasm_cpi_policy::invisible::is_invisible;
use wasm_cpi_policy::secret::{Layer, Secret};

struct Fixture {
    dir: tempfile::TempDir,
    vault: Arc<Vault>,
    audit: Audit,
}

fn request(method: &str, id: &str, uuid: &str) -> Request {
    let context = json!({"request_id": id, "director_uuid": uuid});
    let request = json!({"method": method, "arguments": [], "context": context});
    Request::parse(request.to_string().as_bytes(), 3).unwrap()
}

fn start(request: &Request) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let vault = Arc::new(Vault::new());
    let log = Arc::new(Log::new(Level::Error, Format::Text, None, Arc::clone(&vault)));
    let section = AuditConfig { path: dir.path().join("audit.log"), max_bytes: None };
    let audit = Audit::open(Some(&section), Some(request), &log);
    Fixture { dir, vault, audit }
}

impl Fixture {
    /// Returns the lines of the file. Checks that each is JSON and within the bounds.
    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("audit.log")).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'));
        assert!(text.chars().all(|c| c == '\n' || !(c.is_control() || is_invisible(c))), "{text:?}");
        text.lines()
            .map(|line| {
                assert!(line.len() < LINE_MAX, "{} bytes", line.len());
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }
}

fn event(target: &str, outcome: Result<u16, HttpErrorKind>, sent: bool) -> HttpEvent {
    HttpEvent {
        method: "GET".into(),
        target: target.into(),
        operation: None,
        grant: Some("api".into()),
        login: None,
        credentials: None,
        address: Some(Ipv4Addr::LOCALHOST.into()),
        refused_address: None,
        outcome: outcome.map_or_else(HttpOutcome::Failed, HttpOutcome::Status),
        check: None,
        sent,
        detail: String::new(),
        hidden: String::new(),
        hint: String::new(),
        seals: Vec::new(),
        leaked: None,
        blocks: None,
        bytes_sent: 1,
        bytes_received: 2,
        elapsed: Duration::from_millis(3),
    }
}

#[test]
fn the_kind_of_a_line_follows_from_the_outcome_of_its_request() {
    let fixture = start(&request("has_vm", "r", "u"));
    let denied = HttpErrorKind::Denied;
    let rows = [
        (Ok(404), true, "use", "status", json!(404)),
        (Err(denied(DenialReason::Host)), false, "denied", "reason", json!("host")),
        (Err(denied(DenialReason::Credential)), true, "denied", "reason", json!("credential")),
        (Err(denied(DenialReason::Leak)), true, "leak", "reason", json!("leak")),
        (Err(HttpErrorKind::InvalidRequest), false, "denied", "reason", json!("invalid-request")),
        (Err(HttpErrorKind::Limit("url_bytes")), false, "denied", "reason", json!("limit(url_bytes)")),
        (Err(HttpErrorKind::Limit("http_response_mib")), true, "use", "error", json!("limit(http_response_mib)")),
        (Err(HttpErrorKind::Connect), false, "use", "error", json!("connect")),
        (Err(HttpErrorKind::Cancelled), true, "use", "error", json!("cancelled")),
    ];
    for (outcome, sent, ..) in &rows {
        fixture.audit.http(&event("https://a.test/v1", *outcome, *sent));
    }
    let lines = fixture.lines();
    assert_eq!(lines.len(), rows.len());
    for (line, (_, sent, kind, key, value)) in lines.iter().zip(&rows) {
        assert_eq!((&line["kind"], &line[*key], &line["sent"]), (&json!(kind), value, &json!(sent)), "{line}");
        assert_eq!(
            ["status", "reason", "error"].iter().filter(|key| line.get(**key).is_some()).count(),
            1,
            "one of the three: {line}"
        );
        assert_eq!((&line["target"], &line["address"]), (&json!("https://a.test/v1"), &json!("127.0.0.1")));
    }
}

#[test]
fn only_host_calls_with_effects_outside_get_a_line() {
    let fixture = start(&request("has_vm", "r", "u"));
    let call = |name, outcome| HostCall { name, target: "t", outcome, check: None, elapsed: Duration::ZERO, bytes: 5 };
    for name in ["log.log", "clock.sleep", "random.bytes", "config.properties"] {
        fixture.audit.host(&call(name, HostCallOutcome::Succeeded));
    }
    let refused = HostCallOutcome::Refused(Cow::Borrowed("denied"));
    fixture.audit.host(&HostCall { check: Some(Check::RegistryIds), ..call("registry.get", refused) });
    fixture.audit.host(&call("http.session", HostCallOutcome::Denied(DenialReason::Leak)));
    fixture.audit.host(&call("image.read", HostCallOutcome::Succeeded));
    fixture.audit.host(&call("agent.created", HostCallOutcome::Failed("registry".into())));
    let found: Vec<Value> = fixture
        .lines()
        .iter()
        .map(|line| {
            json!([line["kind"], line["capability"], line["operation"], line["reason"], line["error"], line["code"]])
        })
        .collect();
    let expected = [
        json!(["denied", "registry", "get", "denied", null, "registry-ids"]),
        json!(["leak", "session", "session", "leak", null, null]),
        json!(["use", "image", "read", null, null, null]),
        json!(["use", "agent", "created", null, "registry", null]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn the_lines_of_a_call_are_limited_and_dropped_lines_are_counted() {
    let fixture = start(&request("has_vm", "r", "u"));
    let call = HostCall {
        name: "image.size",
        target: "",
        outcome: HostCallOutcome::Succeeded,
        check: None,
        elapsed: Duration::ZERO,
        bytes: 0,
    };
    (0..10_050).for_each(|_| fixture.audit.host(&call));
    // Another capability has its own count.
    fixture.audit.host(&HostCall { name: "registry.delete", ..call });
    fixture.audit.conclude(Ok(()), None);
    let lines = fixture.lines();
    assert_eq!(lines.len(), 10_002);
    assert_eq!(lines[10_000]["capability"], "registry");
    assert_eq!((&lines[10_001]["kind"], &lines[10_001]["dropped"]), (&json!("call"), &json!(50)));
}

#[test]
fn secrets_are_redacted_and_seals_are_shown_by_name() {
    let fixture = start(&request("has_vm", "r", "u"));
    let seal = fixture.vault.seal("api.password", Secret::new("correct-horse-battery"), Layer::Job);
    let target = format!("https://a.test/correct%2Dhorse-battery/{seal}");
    fixture.audit.http(&event(&target, Ok(200), true));
    assert_eq!(fixture.lines()[0]["target"], "https://a.test/<redacted>/<sealed:api.password>");
}

#[test]
fn a_value_that_a_server_chose_hides_no_field() {
    let fixture = start(&request("delete_vm", "cpi-104523", "director-1"));
    fixture.audit.set_guest(&GuestDescription {
        name: "probe-guest".into(),
        version: "version-1.2".into(),
        stemcell_formats: Vec::new(),
        methods: Vec::new(),
        needs: None,
        has_names: true,
    });
    let chosen = [
        "DELETE",
        "delete_vm",
        "cpi-104523",
        "director-1",
        "servers-delete",
        "cloud-login",
        "probe-guest",
        "version-1.2",
        "seal-name",
        "https://a.test/victim",
        "vm-of-the-call",
    ];
    for value in chosen {
        fixture.vault.seal_captured("token", Secret::new(value), Layer::Job).unwrap();
    }
    fixture.audit.http(&HttpEvent {
        method: "DELETE".into(),
        grant: Some("servers-delete".into()),
        login: Some("cloud-login".into()),
        seals: vec!["seal-name".into()],
        ..event("https://a.test/victim", Ok(204), true)
    });
    let undelivered = Undelivered { created: Some("vm-of-the-call"), undo: None };
    fixture.audit.conclude_undelivered(Ok(()), None, &undelivered);
    let lines = fixture.lines();
    assert!(!lines.iter().any(|line| line.to_string().contains("<redacted>")), "{lines:?}");
    let shown = json!([lines[0]["operation"], lines[0]["method"], lines[0]["request_id"], lines[0]["grant"]]);
    assert_eq!(shown, json!(["DELETE", "delete_vm", "cpi-104523", "servers-delete"]));
}

#[test]
fn a_line_with_many_ports_still_reports_what_is_not_restricted() {
    let long = "\"".repeat(200);
    let fixture = start(&request(&long, &long, &long));
    fixture.audit.set_guest(&GuestDescription {
        name: long.clone(),
        version: long,
        stemcell_formats: Vec::new(),
        methods: Vec::new(),
        needs: None,
        has_names: true,
    });
    let report = LockDownReport {
        no_new_privs: Ok(()),
        capabilities: Ok(()),
        landlock: Ok(Landlock { abi: 7, tcp: true }),
        seccomp: Ok(()),
        network: Network::to(60_001..60_121),
    };
    let used = Used {
        wall: Duration::ZERO,
        wall_limit: NamedLimit { name: "wall_seconds", value: 3600 },
        usage: MeterReading::default(),
        network: HttpCounts { requests: u64::MAX, blocks: u64::MAX, bytes_sent: u64::MAX, bytes_received: u64::MAX },
        counts: HostCallCounts { config: u64::MAX, log: u64::MAX, clock: u64::MAX, random: u64::MAX },
        hardening: report.to_string(),
    };
    fixture.audit.conclude(Ok(()), Some(&used));
    let line = fixture.lines().remove(0);
    assert!(line["hardening"].as_str().unwrap().ends_with("60120], seccomp; UDP is not restricted"), "{line}");
    assert!(line.get("cut").is_none(), "{line}");
}

#[test]
fn without_a_usable_file_nothing_is_written_and_nothing_fails() {
    let log = Arc::new(Log::new(Level::Error, Format::Text, None, Arc::default()));
    let nowhere = AuditConfig { path: "/nowhere/audit.log".into(), max_bytes: None };
    for section in [None, Some(&nowhere)] {
        let audit = Audit::open(section, None, &log);
        assert!(!audit.is_on());
        audit.http(&event("", Ok(200), true));
        audit.conclude(Ok(()), None);
    }
    assert!(log.response_log().contains("/nowhere/audit.log cannot be opened"), "{}", log.response_log());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_results_in_one_line_with_the_same_fields(
        texts in proptest::collection::vec(any::<String>().prop_map(|text| text.repeat(1 + text.len() % 40)), 12),
        quotes in 0..9_000_usize,
    ) {
        let [method, id, uuid, name, version, target, grant, login, secret, seal, id_of, rest] = texts.as_slice()
            else { unreachable!() };
        let fixture = start(&request(method, id, uuid));
        let description = GuestDescription {
            name: name.clone(), version: version.clone(), stemcell_formats: Vec::new(), methods: Vec::new(),
            needs: None, has_names: true,
        };
        fixture.audit.set_guest(&description);
        let event = HttpEvent {
            method: method.clone(), grant: Some(grant.clone()), login: Some(login.clone()),
            leaked: Some(secret.clone()), seals: vec![format!("{seal}{}", "\"\\".repeat(quotes)); 20],
            ..event(&format!("{target}{}", "\"\n".repeat(quotes)), Ok(200), true)
        };
        fixture.audit.http(&event);
        let outcome = HostCallOutcome::Succeeded;
        let check = Some(Check::RegistryIds);
        let elapsed = Duration::ZERO;
        fixture.audit.host(&HostCall { name: "registry.get", target: id_of, outcome, check, elapsed, bytes: 0 });
        fixture.audit.cache(&CacheEvent::Doubted { what: rest.clone(), check: None });
        fixture.audit.conclude(Ok(()), None);
        let lines = fixture.lines();
        prop_assert_eq!(lines.len(), 4);
        let kinds: Vec<&str> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
        prop_assert_eq!(kinds, ["use", "use", "cache", "call"]);
        prop_assert_eq!(&lines[0]["status"], 200);
        prop_assert_eq!(&lines[3]["outcome"], "ok");
    }
}
