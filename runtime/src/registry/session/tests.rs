use super::*;
use crate::registry::fake::{Dialect, Fake, http, run, soon};
use serde_json::json;

fn settings() -> Settings {
    json!({"agent_id": "a"}).as_object().unwrap().clone()
}

fn creating(fake: &Fake) -> RegistrySession {
    let session = RegistrySession::new(Some(fake.client()), RegistryRights::default(), Access::CreateVm);
    session.prepare(settings()).unwrap();
    session
}

fn calling(fake: &Fake, own: &str) -> RegistrySession {
    RegistrySession::new(Some(fake.client()), RegistryRights::default(), Access::Ids(vec![own.into()]))
}

#[test]
fn create_vm_adds_and_never_overwrites() {
    let fake = Fake::start(Dialect::Ruby);
    fake.store("old", json!({"agent_id": "other"}));
    let session = creating(&fake);
    let error = run(session.create("old", "vm", Ok, soon())).unwrap_err();
    assert_eq!(error.check(), Some(Check::RegistryCreateOnly));
    assert!(error.to_string().contains("already has settings for `old`"), "{error}");
    for result in [run(session.update("old", Ok, soon())), run(session.delete("old", soon()))] {
        let error = result.unwrap_err();
        assert_eq!(error.check(), Some(Check::RegistryOwnWrites));
        assert!(error.to_string().contains("only settings that it wrote itself"), "{error}");
    }
    run(session.create("new", "vm", Ok, soon())).unwrap();
    // The call may change its own settings, and write them again.
    run(session.update("new", Ok, soon())).unwrap();
    run(session.create("new", "vm-2", Ok, soon())).unwrap();
    assert!(session.has_settings_for("vm-2") && !session.has_settings_for("vm"));
    assert_eq!(fake.stored("old"), Some(json!({"agent_id": "other"})));
    assert_eq!(fake.stored("new"), Some(json!({"agent_id": "a"})));
}

#[test]
fn settings_of_other_vms_than_the_returned_one_are_undone() {
    for (kept, left) in [(None, vec![]), (Some("vm-1"), vec!["a", "c"]), (Some("vm-9"), vec![])] {
        let fake = Fake::start(Dialect::Go);
        let session = creating(&fake);
        for (id, vm) in [("a", "vm-1"), ("b", "vm-2"), ("c", "vm-1")] {
            run(session.create(id, vm, Ok, soon())).unwrap();
        }
        assert_eq!(run(session.undo(kept, soon())), Vec::<String>::new());
        let found: Vec<&str> = ["a", "b", "c"].into_iter().filter(|id| fake.stored(id).is_some()).collect();
        assert_eq!(found, left, "{kept:?}");
    }
}

#[test]
fn a_write_without_an_answer_is_undone_and_remaining_settings_are_reported() {
    let fake = Fake::start(Dialect::Ruby);
    let session = creating(&fake);
    fake.break_method("PUT", http(500, ""));
    assert!(run(session.create("a", "vm", Ok, soon())).is_err());
    assert_eq!(run(session.undo(None, soon())), Vec::<String>::new());
    assert_eq!(fake.requests().last().unwrap(), "DELETE /instances/a/settings");

    fake.break_method("DELETE", http(500, ""));
    run(session.create("b", "vm", Ok, soon())).unwrap();
    let left = run(session.undo(None, soon()));
    assert!(left[0].contains("`b` are left in the registry; delete them there"), "{left:?}");
}

#[test]
fn other_calls_can_access_only_the_ids_in_their_arguments() {
    let fake = Fake::start(Dialect::Ruby);
    for id in ["mine", "yours"] {
        fake.store(id, json!({}));
    }
    let session = calling(&fake, "mine");
    run(session.update("mine", Ok, soon())).unwrap();
    run(session.delete("mine", soon())).unwrap();
    assert_eq!(run(session.read("mine", soon())), Err(SessionError::NotFound("mine".into())));
    let sent = fake.requests().len();
    for result in [
        run(session.read("yours", soon())).map(drop),
        run(session.update("yours", Ok, soon())),
        run(session.delete("yours", soon())),
    ] {
        assert!(matches!(result, Err(SessionError::Denied { .. })), "{result:?}");
    }
    assert!(matches!(run(session.create("new", "vm", Ok, soon())), Err(SessionError::Denied { .. })));
    assert!(matches!(run(session.read("..", soon())), Err(SessionError::Id(_))));
    assert_eq!(fake.requests().len(), sent);
}

#[test]
fn a_missing_registry_is_a_config_error() {
    let session = |access| RegistrySession::new(None, RegistryRights::default(), access);
    let read = session(Access::Ids(vec!["a".into()]));
    for result in [session(Access::CreateVm).prepare(settings()), run(read.read("a", soon())).map(drop)] {
        let Err(SessionError::Failed(failure)) = result else { panic!("{result:?}") };
        assert!(failure.who == Who::Config && failure.message.contains("`registry` is missing"), "{failure}");
    }
}

#[test]
fn settings_too_large_for_the_registry_are_refused_before_a_vm_exists() {
    let fake = Fake::start(Dialect::Ruby);
    let large = json!({"env": "x".repeat(5000)}).as_object().unwrap().clone();
    assert!(matches!(creating(&fake).prepare(large), Err(SessionError::Failed(failure)) if failure.who == Who::Limit));
}
