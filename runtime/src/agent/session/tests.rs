use super::*;
use crate::agent::tests::{additions, config, spec};
use crate::agent::{Encoding, mode};
use crate::registry::Access;
use crate::registry::fake::{Dialect, Fake, run, soon};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use wasm_cpi_policy::RegistryRights;

struct Call {
    agent: AgentSession,
    vault: Arc<Vault>,
}

/// Starts `create_vm`, or another call about the VM `own`.
fn call(fake: &Fake, mode: Mode, own: Option<&str>) -> Call {
    let limits = crate::limits::Limits::default();
    let client = crate::registry::RegistryClient::new(&fake.config(), &limits).unwrap();
    let access = own.map_or(Access::CreateVm, |own| Access::Ids(vec![own.to_owned()]));
    let registry = Arc::new(RegistrySession::new(Some(client), RegistryRights::default(), access));
    let vault = Arc::new(Vault::new());
    let spec = own.is_none().then(spec);
    let registry_config = Some(fake.config());
    let agent =
        AgentSession::new(AgentParts { mode, config: config(), spec, registry_config, registry, vault: vault.clone() });
    Call { agent, vault }
}

impl Call {
    fn user_data(&self) -> Value {
        let seal = self.agent.bootstrap(&additions()).unwrap();
        let sealed = self.vault.open(&seal).unwrap();
        assert_eq!((sealed.name.as_str(), sealed.layer), ("agent", Layer::Call));
        serde_json::from_str(sealed.secret.reveal()).unwrap()
    }
}

fn hint() -> DiskHint {
    DiskHint::Fields(vec![("path".into(), "/dev/sdc".into())])
}

#[test]
fn without_a_registry_only_bootstrap_has_an_effect() {
    let fake = Fake::start(Dialect::Ruby);
    let call = call(&fake, mode(2, Some(2)), None);
    let data = call.user_data();
    assert_eq!((&data["agent_id"], &data["env"]), (&json!("agent-1"), &spec().env));
    assert_eq!(data.get("registry"), None);
    run(async {
        call.agent.created("vm", "key", soon()).await.unwrap();
        call.agent.attached("any", "disk", &hint(), soon()).await.unwrap();
        call.agent.detached("any", "disk", soon()).await.unwrap();
        call.agent.deleted("any", soon()).await.unwrap();
        assert_eq!(call.agent.settle_registry(Some("vm"), soon()).await, Ok(vec![]));
    });
    assert!(fake.requests().is_empty());
}

#[test]
fn with_a_registry_the_settings_are_stored_once_the_vm_exists() {
    let fake = Fake::start(Dialect::Go);
    let call = call(&fake, mode(2, None), None);
    let data = call.user_data();
    let endpoint = data["registry"]["endpoint"].as_str().unwrap();
    assert!(endpoint.starts_with("http://admin:pa%3Ass-hunter2@127.0.0.1:"), "{endpoint}");
    assert_eq!((&data["server"], data.get("env")), (&json!({"name": "vm-1"}), None));
    assert_eq!(fake.stored("key"), None);
    run(call.agent.created("vm", "key", soon())).unwrap();
    let stored = fake.stored("key").unwrap();
    assert_eq!((&stored["agent_id"], &stored["env"]), (&json!("agent-1"), &spec().env));
    assert_eq!(run(call.agent.settle_registry(Some("vm"), soon())), Ok(vec![]));
    assert!(fake.stored("key").is_some());
}

#[test]
fn settings_of_a_vm_that_is_not_returned_are_deleted() {
    for returned in [None, Some("another")] {
        let fake = Fake::start(Dialect::Ruby);
        let call = call(&fake, Mode::Registry, None);
        call.user_data();
        run(call.agent.created("vm", "key", soon())).unwrap();
        // The deadline has passed.
        let result = run(call.agent.settle_registry(returned, Instant::now()));
        assert_eq!(fake.stored("key"), None);
        match returned {
            None => assert_eq!(result, Ok(vec![])),
            Some(_) => {
                assert!(result.unwrap_err().message.contains("returned `another` without calling `agent.created`"))
            }
        }
    }
}

#[test]
fn disks_are_attached_and_detached_in_the_registry_of_older_vms() {
    let fake = Fake::start(Dialect::Ruby);
    fake.store("vm", json!({"agent_id": "a", "disks": {"system": "/dev/sda", "persistent": {"old": "/dev/sdb"}}}));
    let call = call(&fake, mode(1, Some(2)), Some("vm"));
    run(async {
        call.agent.attached("vm", "disk", &hint(), soon()).await.unwrap();
        let persistent = fake.stored("vm").unwrap()["disks"]["persistent"].clone();
        assert_eq!(persistent, json!({"old": "/dev/sdb", "disk": {"path": "/dev/sdc"}}));
        call.agent.detached("vm", "old", soon()).await.unwrap();
        assert_eq!(fake.stored("vm").unwrap()["disks"]["persistent"], json!({"disk": {"path": "/dev/sdc"}}));
        call.agent.deleted("vm", soon()).await.unwrap();
        assert_eq!(fake.stored("vm"), None);
        // Without settings, detaching succeeds and attaching fails.
        call.agent.deleted("vm", soon()).await.unwrap();
        call.agent.detached("vm", "disk", soon()).await.unwrap();
        let error = call.agent.attached("vm", "disk", &hint(), soon()).await.unwrap_err();
        assert_eq!(error.kind, AgentErrorKind::Registry, "{error}");
        assert!(error.message.contains("no settings for `vm`"), "{error}");
        assert_eq!(call.agent.settle_registry(None, soon()).await, Ok(vec![]));
    });
}

#[test]
fn misuse_is_refused_with_a_reason() {
    let fake = Fake::start(Dialect::Ruby);
    let later = call(&fake, Mode::Registry, Some("vm"));
    let creating = call(&fake, Mode::Registry, None);
    let twice = Additions { encodings: vec![Encoding::Base64, Encoding::Base64Url], ..additions() };
    let long = DiskHint::Text("x".repeat(5000));
    let empty = DiskHint::Text(String::new());
    for (result, expected) in [
        (later.agent.bootstrap(&additions()).map(drop), "for `create_vm` only"),
        (run(creating.agent.created("vm", "key", soon())), "after `agent.bootstrap`"),
        (creating.agent.bootstrap(&twice).map(drop), "one encoding twice, or with two kinds of base64"),
        (run(later.agent.attached("vm", "d", &long, soon())), "at most 4096 are allowed"),
        (run(later.agent.created("vm", "vm", soon())), "after `agent.bootstrap` in `create_vm`"),
        (run(later.agent.attached("other", "d", &hint(), soon())), "registry"),
        (run(later.agent.attached("vm", "d", &empty, soon())), "a disk hint is empty"),
        (run(later.agent.deleted("a/b", soon())), "a registry ID must be"),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.kind, AgentErrorKind::Refused, "{expected}: {error:?}");
        assert!(error.message.contains(expected), "{expected}: {error:?}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
    assert!(fake.requests().is_empty());
}

#[test]
fn the_vault_holds_the_secrets_of_the_settings() {
    let fake = Fake::start(Dialect::Ruby);
    let call = call(&fake, Mode::Registry, None);
    let seal = call.agent.bootstrap(&additions()).unwrap();
    assert_eq!(call.agent.bootstrap_seals(), [seal]);
    for secret in ["mbus-hunter2", "blob-hunter2", "env-hunter2-hash", "pa:ss-hunter2"] {
        assert!(!call.vault.redact(&format!("x {secret} y")).contains(secret), "{secret}");
        assert!(call.vault.leak_in(secret.as_bytes()).unwrap().is_some(), "{secret}");
    }
    let public = "a-long-name-of-one http://10.0.0.6:25250 10.0.0.7";
    assert_eq!(call.vault.redact(public), public);
}

#[test]
fn the_vault_recognises_user_data_after_every_encoding() {
    let fake = Fake::start(Dialect::Ruby);
    let call = call(&fake, Mode::Registryless, None);
    let additions = Additions { encodings: vec![Encoding::JsonString, Encoding::Base64], ..additions() };
    let seal = call.agent.bootstrap(&additions).unwrap();
    let text = call.vault.open(&seal).unwrap().secret.reveal().to_owned();
    let literal = String::from_utf8(BASE64_STANDARD.decode(&text).unwrap()).unwrap();
    let plain: String = serde_json::from_str(&literal).unwrap();
    assert!(plain.starts_with('{'), "{plain}");
    for text in [text, literal, plain] {
        let found = call.vault.leak_in(text.as_bytes()).unwrap();
        assert!(found.is_some_and(|name| name.starts_with("agent")), "{text}");
    }
}

#[test]
fn the_number_of_bootstraps_and_what_they_add_are_bounded() {
    let fake = Fake::start(Dialect::Ruby);
    let call = call(&fake, Mode::Registryless, None);
    let huge = Additions { vm_name: "x".repeat(2 << 20), ..additions() };
    let error = call.agent.bootstrap(&huge).unwrap_err().to_string();
    assert!(error.contains("at most 4096 are allowed"), "{error}");
    let named = |number: usize| Additions { vm_name: format!("vm-{number}"), ..additions() };
    let made = (0..100).take_while(|number| call.agent.bootstrap(&named(*number)).is_ok()).count();
    assert_eq!(made, MAX_BOOTSTRAPS);
}

/// The length of user-data has steps, so that it tells little about the secrets in it.
#[test]
fn settings_of_different_length_have_the_same_length_as_user_data() {
    let fake = Fake::start(Dialect::Ruby);
    let lengths: Vec<usize> = ["p", "a-much-longer-password-than-the-other-one"]
        .iter()
        .map(|password| {
            let mut call = call(&fake, Mode::Registryless, None);
            call.agent.spec.as_mut().unwrap().env = json!({"bosh": {"password": password}});
            let seal = call.agent.bootstrap(&additions()).unwrap();
            call.vault.open(&seal).unwrap().secret.reveal().len()
        })
        .collect();
    assert_eq!(lengths[0], lengths[1]);
    assert_eq!(lengths[0] % 1024, 0);
}

#[test]
fn settings_are_compared_with_the_limits_before_the_guest_runs() {
    let fake = Fake::start(Dialect::Ruby);
    let creating = |mode: Mode, env: Value| {
        let mut call = call(&fake, mode, None);
        call.agent.spec.as_mut().unwrap().env = env;
        call
    };
    let large = json!({"bosh": {"certificates": "hunter2".repeat(8000)}});
    let small = creating(Mode::Registryless, json!({}));
    assert!(small.agent.check_size(None).is_ok() && small.agent.check_size(Some(65_535)).is_ok());
    let failure = creating(Mode::Registryless, large.clone()).agent.check_size(Some(65_535)).unwrap_err();
    assert_eq!((failure.check, failure.message.contains("`env` (")), (Some(Check::AgentSize), true), "{failure}");
    assert!(!failure.message.contains("hunter2"), "{failure}");
    // With a registry the user-data is small, and the registry's limit counts.
    assert!(creating(Mode::Registry, large).agent.check_size(Some(65_535)).is_ok());
    let huge = json!({"bosh": {"certificates": "hunter2".repeat(40_000)}});
    let failure = creating(Mode::Registry, huge).agent.check_size(None).unwrap_err();
    assert!(failure.message.contains("registry_kib"), "{failure}");
    // Other calls build no settings.
    assert!(call(&fake, Mode::Registry, Some("vm")).agent.check_size(Some(1)).is_ok());
}
