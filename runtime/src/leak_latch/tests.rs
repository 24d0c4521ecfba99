use super::*;
use std::os::unix::fs::PermissionsExt;

const SHA256: &str = "00ff";

fn cache() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn key(module: Option<&str>) -> GuestOfJob<'_> {
    GuestOfJob { config: "/job/cpi.json".into(), module, guest_sha256: SHA256 }
}

fn open(dir: &Path, module: Option<&str>) -> Result<LeakLatch, LatchError> {
    Ok(LeakLatch::open(dir, &key(module))?.for_call("has_vm", Some("r-1")))
}

#[test]
fn a_recorded_leak_is_found_by_later_calls_of_the_same_module_until_it_is_forgotten() {
    let dir = cache();
    let running = open(dir.path(), None).unwrap();
    assert_eq!(running.recorded(), None);
    running.record("password", "the response to GET https://api.test/v1").unwrap();
    running.record("token", "the result").unwrap();
    let later = open(dir.path(), None).unwrap();
    let recorded = later.recorded().unwrap();
    assert_eq!((recorded.secret.as_str(), recorded.method.as_str()), ("password", "has_vm"));
    assert_eq!(open(dir.path(), Some("other/../x")).unwrap().recorded(), None);
    for other in
        [GuestOfJob { guest_sha256: "11", ..key(None) }, GuestOfJob { config: "/other/cpi.json".into(), ..key(None) }]
    {
        assert_eq!(LeakLatch::open(dir.path(), &other).unwrap().recorded(), None);
    }
    assert_eq!(LeakLatch::open_recorded(dir.path()).unwrap().len(), 1);
    later.forget().unwrap();
    assert!(LeakLatch::open_recorded(dir.path()).unwrap().is_empty());
    assert_eq!(open(dir.path(), None).unwrap().recorded(), None);
    // A call that was already running can still record.
    running.record("password", "the result").unwrap();
    assert!(open(dir.path(), None).unwrap().recorded().is_some());
}

#[test]
fn a_running_call_notices_the_leak_of_another_one_and_not_its_own() {
    let dir = cache();
    let (one, other) = (open(dir.path(), None).unwrap(), open(dir.path(), None).unwrap());
    one.record("password", "the response to GET https://api.test/v1").unwrap();
    assert_eq!(one.recorded_meanwhile(), None);
    assert_eq!(other.recorded_meanwhile().unwrap().secret, "password");
    other.record("token", "the result").unwrap();
    assert!(one.recorded_meanwhile().is_some() && other.recorded_meanwhile().is_some());
    one.forget().unwrap();
    assert_eq!((one.recorded_meanwhile(), other.recorded_meanwhile()), (None, None));
}

#[test]
fn a_file_that_others_can_write_is_not_trusted_and_no_link_is_followed() {
    let dir = cache();
    let path = dir.path().join(file_name(&key(None)));
    let elsewhere = dir.path().join("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert!(open(dir.path(), None).unwrap_err().is_untrusted());
    assert!(!elsewhere.exists());
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(open(dir.path(), None).unwrap_err().is_untrusted());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(open(dir.path(), None).unwrap().recorded(), None);
}

#[test]
fn what_cannot_be_read_counts_as_a_leak() {
    let dir = cache();
    std::fs::write(dir.path().join(file_name(&key(None))), "{\n").unwrap();
    std::fs::set_permissions(dir.path().join(file_name(&key(None))), std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(open(dir.path(), None).unwrap().recorded().is_some());
}

#[test]
fn a_missing_directory_is_an_error_but_not_a_distrusted_file() {
    let error = open(Path::new("/nonexistent/cache"), None).unwrap_err();
    assert!(!error.is_untrusted(), "{error}");
}
