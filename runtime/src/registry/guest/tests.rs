use super::*;
use crate::registry::fake::{Dialect, Fake, http, run, soon};
use crate::registry::{Access, RegistryClient};
use serde_json::{Map, Value, json};
use wasm_cpi_policy::{Needs, Policy, PolicyFile, Properties, RegistryRights};

/// Rights of a guest that declares the registry in its needs.
fn declared() -> RegistryRights {
    let file = PolicyFile::parse(r#"{"version": 1}"#).unwrap();
    let needs = Needs::parse(br#"{"version": 1, "registry": true}"#).unwrap();
    let properties = Properties::merge(Map::new(), Map::new());
    Policy::resolve(&file, &properties, Some(&needs), &[], false).unwrap().registry
}

fn registry(fake: &Fake, rights: RegistryRights, access: Access) -> (GuestRegistry, Arc<RegistrySession>) {
    let session = Arc::new(RegistrySession::new(Some(fake.client()), rights, access));
    (GuestRegistry::new(session.clone(), Arc::new(Vault::new())), session)
}

/// Returns the access of a call with this ID as its argument.
fn ids(id: &str) -> Access {
    Access::Ids(vec![id.to_owned()])
}

fn kind(result: Result<(), GuestRegistryError>) -> GuestRegistryErrorKind {
    result.unwrap_err().kind
}

#[test]
fn a_guest_reads_seals_and_its_changes_keep_the_real_values() {
    let fake = Fake::start(Dialect::Ruby);
    fake.store("vm", json!({"mbus": "nats://u:hunter2-hunter2@h", "disks": {"persistent": {}}, "networks": {}}));
    let (registry, _) = registry(&fake, declared(), ids("vm"));
    let text = run(registry.get("vm", soon())).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    let mut settings: Value = serde_json::from_str(&text).unwrap();
    settings["disks"]["persistent"]["d"] = json!({"path": "/dev/sdb"});
    run(registry.put("vm", &settings.to_string(), soon())).unwrap();
    let stored = fake.stored("vm").unwrap();
    assert_eq!(stored["mbus"], "nats://u:hunter2-hunter2@h");
    assert_eq!(stored["disks"]["persistent"]["d"], json!({"path": "/dev/sdb"}));
    run(registry.delete("vm", soon())).unwrap();
    for result in [run(registry.get("vm", soon())).map(drop), run(registry.put("vm", "{}", soon()))] {
        assert_eq!(kind(result), GuestRegistryErrorKind::NotFound);
    }
}

#[test]
fn a_guest_cannot_write_more_values_than_it_could_read() {
    let fake = Fake::start(Dialect::Ruby);
    fake.store("vm", json!({"mbus": "x"}));
    let client = RegistryClient::new(&fake.config(), &crate::limits::Limits::default()).unwrap();
    let session = Arc::new(RegistrySession::new(Some(client), declared(), ids("vm")));
    let registry = GuestRegistry::new(session, Arc::new(Vault::new()));
    let disks = |count: usize| json!({"disks": {"raw_ephemeral": vec![json!({}); count]}}).to_string();
    assert_eq!(run(registry.put("vm", &disks(1900), soon())), Ok(()));
    let error = run(registry.put("vm", &disks(2000), soon())).unwrap_err();
    assert_eq!((error.kind, error.check), (GuestRegistryErrorKind::Invalid, Some(Check::RegistryValues)));
    assert!(run(registry.get("vm", soon())).is_ok());
}

#[test]
fn a_refused_operation_has_a_reason() {
    let fake = Fake::start(Dialect::Ruby);
    fake.store("vm", json!({"mbus": "x"}));
    let (registry, _) = registry(&fake, declared(), ids("vm"));
    for (id, settings) in [("vm", "{"), ("vm", r#"{"a":1,"a":1}"#), ("vm", r#"{"mbus":"y"}"#), ("a/b", "{}")] {
        let error = run(registry.put(id, settings, soon())).unwrap_err();
        assert_eq!(error.kind, GuestRegistryErrorKind::Invalid, "{settings}: {error:?}");
    }
    let other = run(registry.get("other", soon())).unwrap_err();
    assert_eq!((other.kind, other.check), (GuestRegistryErrorKind::Denied, Some(Check::RegistryIds)));
    fake.break_method("GET", http(500, ""));
    let error = run(registry.get("vm", soon())).unwrap_err();
    assert_eq!(error.kind, GuestRegistryErrorKind::Unavailable, "{error:?}");
    // The guest does not learn where the registry is, or what it said.
    assert_eq!(error.message, "iaas: the registry failed; the log says why");
    assert!(error.detail.starts_with("iaas: registry http"), "{error:?}");
}

#[test]
fn a_module_that_does_not_declare_the_registry_cannot_use_it() {
    let fake = Fake::start(Dialect::Ruby);
    fake.store("vm", json!({}));
    let (registry, _) = registry(&fake, RegistryRights::default(), ids("vm"));
    for result in [
        run(registry.get("vm", soon())).map(drop),
        run(registry.put("vm", "{}", soon())),
        run(registry.delete("vm", soon())),
    ] {
        let error = result.unwrap_err();
        assert_eq!((error.kind, error.check), (GuestRegistryErrorKind::Denied, Some(Check::NeedsRegistry)));
        assert!(error.message.contains("declare"), "{error:?}");
    }
    assert!(fake.requests().is_empty());
}

#[test]
fn settings_that_a_guest_adds_in_create_vm_are_undone_unless_they_are_those_of_the_vm() {
    let fake = Fake::start(Dialect::Ruby);
    fake.store("old", json!({}));
    let (registry, session) = registry(&fake, declared(), Access::CreateVm);
    let disks = json!({"disks": {"persistent": {}}}).to_string();
    assert_eq!(kind(run(registry.put("vm", &disks, soon()))), GuestRegistryErrorKind::Denied, "nothing prepared");
    session.prepare(json!({"agent_id": "a"}).as_object().unwrap().clone()).unwrap();
    for id in ["vm", "other"] {
        run(registry.put(id, &disks, soon())).unwrap();
        run(registry.put(id, &disks, soon())).unwrap();
    }
    assert_eq!(kind(run(registry.put("old", &disks, soon()))), GuestRegistryErrorKind::Denied);
    assert_eq!(kind(run(registry.delete("old", soon()))), GuestRegistryErrorKind::Denied);
    run(session.undo(Some("vm"), soon()));
    assert_eq!(fake.stored("vm"), Some(json!({"agent_id": "a", "disks": {"persistent": {}}})));
    assert_eq!((fake.stored("other"), fake.stored("old")), (None, Some(json!({}))));
}
