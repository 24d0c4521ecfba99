use super::file::MAX_RECORD;
use super::key::{KEY_BYTES, KEY_FILE};
use super::*;
use proptest::prelude::*;
use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;
use wasm_cpi_policy::secret::Secret;

const NOW: i64 = 1_800_000_000;

fn cache() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn record(token: &str) -> TokenRecord {
    let (token, shown, expires) = (Secret::new(token), "{}".into(), NOW + 7200);
    TokenRecord { token, shown, made: NOW, expires, last_rejection: None, earlier: Vec::new() }
}

fn file(dir: &Path, login: &str) -> TokenFile {
    TokenStore::open(dir).unwrap().file(&[b"guest", login.as_bytes()]).unwrap()
}

fn path_of(dir: &Path, file: &TokenFile) -> PathBuf {
    dir.join(&file.name)
}

#[test]
fn a_replaced_token_is_remembered_until_it_expires() {
    let tokens = |record: &TokenRecord, now| -> Vec<String> {
        record.valid_tokens(now).iter().map(|one| one.token.reveal().to_owned()).collect()
    };
    let dir = cache();
    let kept = file(dir.path(), "one");
    let second = TokenRecord { expires: NOW + 9000, ..record("second") }.after(Some(&record("first")), NOW);
    kept.write(&TokenRecord::without_token(NOW).after(Some(&second), NOW)).unwrap();
    let read = kept.read().unwrap();
    assert!(read.token.reveal().is_empty());
    assert_eq!(tokens(&read, NOW), ["second", "first"]);
    assert_eq!(tokens(&read, NOW + 8000), ["second"]);
    let many = (0..20).fold(record("0"), |last, number| record(&format!("t{number}")).after(Some(&last), NOW));
    assert_eq!((tokens(&many, NOW).len(), tokens(&many, NOW)[1].as_str()), (9, "t18"));
}

#[test]
fn a_kept_token_is_read_by_calls_with_the_same_values_only() {
    let dir = cache();
    let one = file(dir.path(), "one");
    assert!(one.read().is_none());
    one.write(&record("secret-token")).unwrap();
    assert_eq!(file(dir.path(), "one").read().unwrap().token.reveal(), "secret-token");
    assert!(file(dir.path(), "two").read().is_none());
    // The values are not simply joined.
    let store = TokenStore::open(dir.path()).unwrap();
    assert_ne!(store.file(&[b"ab", b"c"]).unwrap().name, store.file(&[b"a", b"bc"]).unwrap().name);
    // Nothing of a longer record is left behind a shorter one.
    one.write(&record("t")).unwrap();
    assert_eq!(file(dir.path(), "one").read().unwrap().token.reveal(), "t");
    one.write(&record(&format!("{}secret", "t".repeat(500)))).unwrap();
    one.write(&TokenRecord::without_token(NOW)).unwrap();
    let removed = file(dir.path(), "one").read().unwrap();
    assert_eq!(
        (removed.token.reveal(), removed.last_rejection, removed.usable_for(NOW, MARGIN)),
        ("", Some(NOW), None)
    );
    let bytes = std::fs::read(path_of(dir.path(), &one)).unwrap();
    assert!(!bytes.windows(6).any(|part| part == b"secret" || part == b"tttttt"));
}

#[test]
fn the_name_of_a_file_depends_on_the_key() {
    let (one, two) = (cache(), cache());
    let name = file(one.path(), "one").name;
    assert_ne!(name, file(two.path(), "one").name);
    std::fs::copy(one.path().join(KEY_FILE), two.path().join(KEY_FILE)).unwrap();
    assert_eq!(name, file(two.path(), "one").name);
}

#[test]
fn a_damaged_exchanged_or_half_written_record_counts_as_none() {
    let dir = cache();
    let (one, two) = (file(dir.path(), "one"), file(dir.path(), "two"));
    one.write(&record("secret-token")).unwrap();
    let good = std::fs::read(path_of(dir.path(), &one)).unwrap();
    for length in 0..good.len() {
        std::fs::write(path_of(dir.path(), &one), &good[..length]).unwrap();
        assert!(one.read().is_none(), "{length}");
        let mut damaged = good.clone();
        damaged[length] ^= 1;
        std::fs::write(path_of(dir.path(), &one), &damaged).unwrap();
        assert!(one.read().is_none(), "{length}");
    }
    std::fs::write(path_of(dir.path(), &two), &good).unwrap();
    assert!(two.read().is_none());
    std::fs::write(path_of(dir.path(), &one), &good).unwrap();
    assert!(one.read().is_some());
    // Another key does not accept it under the same name.
    let other = cache();
    let exchanged = TokenFile { name: one.name.clone(), ..file(other.path(), "one") };
    std::fs::write(path_of(other.path(), &file(other.path(), "one")), &good).unwrap();
    assert!(exchanged.read().is_none());
}

#[test]
fn a_record_that_is_too_large_is_not_written_and_one_that_claims_to_be_is_not_read() {
    let dir = cache();
    let one = file(dir.path(), "one");
    one.write(&record("secret-token")).unwrap();
    let large = TokenRecord { shown: "x".repeat(MAX_RECORD), ..record("other-token") };
    assert!(one.write(&large).is_err());
    assert_eq!(one.read().unwrap().token.reveal(), "secret-token");
    for length in [0, MAX_RECORD as u64 + 1, u64::MAX] {
        one.file.write_all_at(&length.to_le_bytes(), 32).unwrap();
        assert!(one.read().is_none(), "{length}");
    }
}

proptest! {
    #[test]
    fn only_what_was_written_is_read(
        token in "\\PC{1,40}", at in any::<prop::sample::Index>(), part in prop::collection::vec(any::<u8>(), 0..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let dir = cache();
        let one = file(dir.path(), "one");
        one.write(&record(&token)).unwrap();
        let path = path_of(dir.path(), &one);
        let good = std::fs::read(&path).unwrap();
        prop_assert!(one.read().is_some_and(|read| read.token.reveal() == token));
        // A write that was interrupted anywhere, over anything.
        let mut torn = good.clone();
        let at = at.index(good.len());
        torn.splice(at..good.len().min(at + part.len()), part);
        let shorter = torn[..cut.index(torn.len() + 1)].to_vec();
        for bytes in [torn, shorter] {
            std::fs::write(&path, &bytes).unwrap();
            prop_assert_eq!(one.read().is_some(), bytes.starts_with(&good));
        }
    }
}

#[test]
fn files_that_others_can_read_and_links_are_not_used() {
    let dir = cache();
    let path = path_of(dir.path(), &file(dir.path(), "one"));
    let refused = |name: &str| {
        let store = TokenStore::open(dir.path()).and_then(|store| store.file(&[b"guest", b"one"]).map(drop));
        assert!(store.is_err(), "{name}");
    };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    refused("a mode");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::hard_link(&path, dir.path().join("second-name")).unwrap();
    refused("a second name");
    std::fs::remove_file(&path).unwrap();
    symlink(dir.path().join("second-name"), &path).unwrap();
    refused("a link");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    refused("a directory");
    std::fs::remove_dir(&path).unwrap();
    let key = dir.path().join(KEY_FILE);
    std::fs::hard_link(&key, dir.path().join("second-key")).unwrap();
    refused("a key with a second name");
    std::fs::remove_file(&key).unwrap();
    symlink("second-key", &key).unwrap();
    refused("a link in place of the key");
    std::fs::remove_file(&key).unwrap();
    std::fs::rename(dir.path().join("second-key"), &key).unwrap();
    TokenStore::open(dir.path()).unwrap();
    std::fs::write(&key, [0; KEY_BYTES - 1]).unwrap();
    refused("half a key");
    std::fs::set_permissions(dir.path().join(KEY_FILE), std::fs::Permissions::from_mode(0o644)).unwrap();
    refused("a key that others can read");
    std::fs::remove_file(dir.path().join(KEY_FILE)).unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    refused("a directory that others can write");
}

#[test]
fn a_token_is_used_for_an_hour_at_most_and_not_shortly_before_it_expires() {
    for (made, expires, left) in [
        (NOW, NOW + 7200, Some(3600)),
        (NOW - 600, NOW + 7200, Some(3000)),
        (NOW, NOW + 100, Some(40)),
        (NOW, NOW + 60, None),
        (NOW - 3600, NOW + 7200, None),
        // The clock was set back.
        (NOW + 1, NOW + 7200, None),
        (i64::MIN / 2, i64::MAX / 2, None),
    ] {
        let kept = TokenRecord { made, expires, ..record("t") };
        assert_eq!(kept.usable_for(NOW, MARGIN), left.map(Duration::from_secs), "{made} {expires}");
    }
    // A new token is used until one minute before it expires.
    for (lifetime, left) in [(7200, Some(3600)), (3600, Some(3540)), (100, Some(40)), (60, None), (0, None)] {
        let new = TokenRecord::new(Secret::new("t"), "{}".into(), NOW, Duration::from_secs(lifetime), None);
        assert_eq!(new.usable_for(NOW, MARGIN), left.map(Duration::from_secs), "{lifetime}");
    }
    let endless = TokenRecord::new(Secret::new("t"), "{}".into(), NOW, Duration::MAX, None);
    assert_eq!(endless.usable_for(NOW, MARGIN), Some(MAX_AGE));
}

#[test]
fn one_call_at_a_time_has_the_lock() {
    let dir = cache();
    let (first, second) = (file(dir.path(), "one"), file(dir.path(), "one"));
    let lock = first.try_lock().unwrap();
    assert!(lock.is_some() && second.try_lock().unwrap().is_none());
    assert!(file(dir.path(), "two").try_lock().unwrap().is_some());
    drop(lock);
    assert!(second.try_lock().unwrap().is_some());
}

#[test]
fn all_processes_agree_on_one_key() {
    let dir = cache();
    let names: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| file(dir.path(), "one").name)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(names.iter().all(|name| *name == file(dir.path(), "one").name));
    assert_eq!(CacheDirectory::open(dir.path()).unwrap().names(KEY_FILE).unwrap(), [KEY_FILE]);
}

#[test]
fn old_files_and_unfinished_keys_are_removed_when_a_new_file_is_made() {
    let dir = cache();
    let (old, new) = (path_of(dir.path(), &file(dir.path(), "old")), path_of(dir.path(), &file(dir.path(), "new")));
    let unfinished = ["1", "2"].map(|end| dir.path().join(format!("{NEW_KEY_PREFIX}{end}")));
    unfinished.iter().for_each(|path| std::fs::write(path, b"half").unwrap());
    let long_ago = std::time::SystemTime::now() - 25 * MAX_AGE;
    for path in [&old, &unfinished[0]] {
        File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    file(dir.path(), "another");
    assert!(!old.exists() && !unfinished[0].exists() && new.exists() && unfinished[1].exists());
}

#[test]
fn forgotten_tokens_are_gone_for_running_calls_too() {
    let dir = cache();
    let (running, expired) = (file(dir.path(), "one"), file(dir.path(), "two"));
    let now = jiff::Timestamp::now().as_second();
    assert_eq!(count_tokens(dir.path()).unwrap(), 0);
    running.write(&TokenRecord { made: now, expires: now + 3600, ..record("secret-token") }).unwrap();
    expired.write(&TokenRecord { made: now - 7200, expires: now - 1, ..record("secret-token") }).unwrap();
    file(dir.path(), "empty");
    std::fs::write(dir.path().join(format!("{NEW_KEY_PREFIX}1")), b"half").unwrap();
    std::fs::write(dir.path().join("guest.json"), b"{}").unwrap();
    assert_eq!(count_tokens(dir.path()).unwrap(), 1);
    assert_eq!(forget_tokens(dir.path()).unwrap(), 1);
    assert!(running.read().is_none() && expired.read().is_none());
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["guest.json"]);
    assert_eq!(forget_tokens(dir.path()).unwrap(), 0);
    let nowhere = Path::new("/nonexistent/cache");
    assert_eq!((forget_tokens(nowhere).unwrap(), count_tokens(nowhere).unwrap()), (0, 0));
    // A link is deleted, and what it names is not.
    file(dir.path(), "one");
    symlink(dir.path().join("guest.json"), dir.path().join("token-link")).unwrap();
    assert!(matches!(count_tokens(dir.path()), Err(TokenStoreError::Untrusted(_))));
    forget_tokens(dir.path()).unwrap();
    assert_eq!(std::fs::read(dir.path().join("guest.json")).unwrap(), b"{}");
}

#[test]
fn a_file_that_cannot_be_deleted_keeps_no_token() {
    let dir = cache();
    let running = file(dir.path(), "one");
    let now = jiff::Timestamp::now().as_second();
    running.write(&TokenRecord { made: now, expires: now + 3600, ..record("secret-token") }).unwrap();
    let kept = path_of(dir.path(), &running);
    // Directories before and after the token, in any order of names.
    let obstacles = [0, 1, 2, 3].map(|number| dir.path().join(format!("token-{number}")));
    obstacles.iter().for_each(|path| std::fs::create_dir(path).unwrap());
    let error = forget_tokens(dir.path()).unwrap_err().to_string();
    for path in &obstacles {
        assert!(error.contains(&format!("{} (", path.display())), "{error}");
    }
    assert!(error.starts_with("these files were not deleted: ") && error.ends_with("; delete them"), "{error}");
    assert!(!kept.exists() && !dir.path().join(KEY_FILE).exists() && running.read().is_none());
}

#[test]
fn a_file_that_is_not_trusted_does_not_change_the_count_of_forgotten_tokens() {
    let dir = cache();
    let now = jiff::Timestamp::now().as_second();
    file(dir.path(), "one").write(&TokenRecord { made: now, expires: now + 3600, ..record("secret-token") }).unwrap();
    let untrusted = dir.path().join("token-of-another");
    std::fs::write(&untrusted, b"").unwrap();
    std::fs::set_permissions(&untrusted, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = count_tokens(dir.path()).unwrap_err().to_string();
    assert!(error.contains(&format!("{} belongs to another user", untrusted.display())), "{error}");
    assert_eq!(forget_tokens(dir.path()).unwrap(), 1);
    assert!(!untrusted.exists());
}
