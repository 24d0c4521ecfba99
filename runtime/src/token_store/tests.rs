use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

const NOW: i64 = 1_800_000_000;

fn cache() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn record(token: &str) -> TokenRecord {
    TokenRecord { token: Secret::new(token), shown: "{}".into(), made: NOW, expires: NOW + 7200, refused: None }
}

fn file(dir: &Path, login: &str) -> TokenFile {
    TokenStore::open(dir).unwrap().file(&[b"guest", login.as_bytes()]).unwrap()
}

fn path_of(dir: &Path, file: &TokenFile) -> PathBuf {
    dir.join(&file.name)
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
    one.write(&record("t")).unwrap();
    assert_eq!(file(dir.path(), "one").read().unwrap().token.reveal(), "t");
    one.clear().unwrap();
    assert!(file(dir.path(), "one").read().is_none());
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
        assert_eq!(kept.usable_for(NOW), left.map(Duration::from_secs), "{made} {expires}");
    }
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
}

#[test]
fn forgotten_tokens_are_gone_for_running_calls_too() {
    let dir = cache();
    let running = file(dir.path(), "one");
    running.write(&record("secret-token")).unwrap();
    file(dir.path(), "two");
    assert_eq!(forget_tokens(dir.path()).unwrap(), 1);
    assert!(running.read().is_none());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(forget_tokens(dir.path()).unwrap(), 0);
    assert_eq!(forget_tokens(Path::new("/nonexistent/cache")).unwrap(), 0);
}
