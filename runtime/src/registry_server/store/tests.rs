use super::*;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use tempfile::TempDir;

#[test]
fn settings_are_stored_replaced_and_deleted() {
    let directory = TempDir::new().unwrap();
    let store = Store::open(&directory.path().join("db")).unwrap();
    assert_eq!(store.get("a"), Ok(None));
    store.put("a", "{}").unwrap();
    store.put("a", "{\"ü\":1}").unwrap();
    store.put("A", "{}").unwrap();
    assert_eq!(store.get("a").unwrap().as_deref(), Some("{\"ü\":1}"));
    store.delete("a").unwrap();
    store.delete("a").unwrap();
    assert_eq!((store.get("a"), store.get("A").unwrap().is_some()), (Ok(None), true));
}

#[test]
fn writes_survive_a_kill() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("db");
    for round in 0..3 {
        let store = Store::open(&path).unwrap();
        for earlier in 0..round {
            assert!(store.get(&format!("vm-{earlier}")).unwrap().is_some());
        }
        store.put(&format!("vm-{round}"), "{}").unwrap();
        // Like after a kill, nothing is closed or checkpointed.
        std::mem::forget(store);
    }
}

#[test]
fn writes_are_synced_to_the_log() {
    let directory = TempDir::new().unwrap();
    let store = Store::open(&directory.path().join("db")).unwrap();
    let pragma = |name: &str| -> String {
        let value = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
        format!("{:?}", store.lock().pragma_query_value(None, name, value).unwrap())
    };
    assert_eq!((pragma("journal_mode").as_str(), pragma("synchronous").as_str()), ("Text(\"wal\")", "Integer(2)"));
}

#[test]
fn only_the_owner_can_access_the_files_of_the_store() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("db");
    let store = Store::open(&path).unwrap();
    store.put("a", "{}").unwrap();
    let modes: Vec<u32> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    assert_eq!(modes, vec![0o600; 3], "database, log and index");
    drop(store);
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let failure = Store::open(&path).err().unwrap();
        assert!(failure.message.contains("run `chmod 600`"), "{failure}");
    }
}

#[test]
fn a_file_that_is_not_a_store_is_refused() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::create_dir(at("dir")).unwrap();
    symlink(at("target"), at("link")).unwrap();
    fs::write(at("text"), "no database, and longer than any header of one would be: ".repeat(20)).unwrap();
    fs::set_permissions(at("text"), Permissions::from_mode(0o600)).unwrap();
    let newer = Store::open(&at("newer")).unwrap();
    newer.lock().pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    for (name, expected) in [
        ("dir", "cannot be opened"),
        ("link", "links are not followed"),
        ("missing/db", "directory must exist"),
        ("text", "if it is damaged, move it away"),
        ("newer", "newer version"),
    ] {
        let failure = Store::open(&at(name)).err().unwrap();
        assert!(failure.message.contains(expected), "{name}: {failure}");
    }
}
