use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

fn config(path: PathBuf, max_bytes: Option<u64>) -> AuditConfig {
    AuditConfig { path, max_bytes }
}

fn open(path: &Path, max_bytes: Option<u64>) -> (LogFile, Option<String>) {
    LogFile::open(&config(path.to_owned(), max_bytes)).unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_new_file_is_private_to_its_owner_and_accepts_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    for line in ["one\n", "two\n"] {
        let (file, warning) = open(&path, None);
        file.append(line.as_bytes()).unwrap();
        assert_eq!((warning, file.is_deleted()), (None, false));
    }
    assert_eq!(read(&path), "one\ntwo\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_is_not_trusted_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::write(at("elsewhere"), "").unwrap();
    symlink(at("elsewhere"), at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    std::fs::create_dir(at("directory")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    std::fs::write(at("shared"), "").unwrap();
    std::fs::set_permissions(at("shared"), PermissionsExt::from_mode(0o660)).unwrap();
    for (name, said) in [
        ("link", "is a symbolic link"),
        ("dangling", "is a symbolic link"),
        ("directory", "cannot be opened"),
        ("pipe", "is not a regular file"),
        ("shared", "is writable by group or others (mode 660)"),
        ("no/such", "cannot be opened"),
    ] {
        let error = LogFile::open(&config(at(name), None)).err().unwrap().to_string();
        assert!(error.contains(said) && error.contains(name), "{error}");
    }
    assert!(matches!(LogFile::open(&config("/dev/null".into(), None)), Err(AuditFileError::NotAFile(_))));
    assert!(!at("nowhere").exists() && read(&at("elsewhere")).is_empty());
}

#[test]
fn a_full_file_is_rotated_and_the_oldest_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    for number in 0..8 {
        let (file, warning) = open(&path, Some(4));
        file.append(format!("{number:03}\n").as_bytes()).unwrap();
        assert_eq!(warning, None);
    }
    let kept: Vec<String> = ["1", "2", "3", "4", "5"].iter().map(|end| read(&sibling(&path, end))).collect();
    assert_eq!(read(&path), "007\n");
    assert_eq!(kept, ["006\n", "005\n", "004\n", "003\n", ""]);
}

#[test]
fn a_file_that_is_not_full_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    for max in [None, Some(1000)] {
        open(&path, max).0.append(b"line\n").unwrap();
    }
    assert_eq!(read(&path), "line\nline\n");
    assert!(!sibling(&path, "lock").exists() && !sibling(&path, "1").exists());
}

#[test]
fn a_process_that_does_not_get_the_lock_does_not_wait() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    std::fs::write(&path, "full\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let (lock, _) = open_or_create(&sibling(&path, "lock")).unwrap();
    rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let (file, warning) = open(&path, Some(4));
    file.append(b"more\n").unwrap();
    assert_eq!(warning, None);
    assert_eq!(read(&path), "full\nmore\n");
    drop(lock);
    open(&path, Some(4)).0.append(b"new\n").unwrap();
    assert_eq!((read(&path).as_str(), read(&sibling(&path, "1")).as_str()), ("new\n", "full\nmore\n"));
    // A process that opened the file before writes to the rotated file.
    file.append(b"late\n").unwrap();
    assert_eq!(read(&sibling(&path, "1")), "full\nmore\nlate\n");
}

#[test]
fn a_file_that_cannot_be_rotated_still_accepts_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    open(&path, None).0.append(b"full\n").unwrap();
    symlink("/dev/null", sibling(&path, "lock")).unwrap();
    let (file, warning) = open(&path, Some(4));
    assert!(warning.unwrap().contains("audit.log.lock is a symbolic link"));
    file.append(b"more\n").unwrap();
    assert_eq!(read(&path), "full\nmore\n");
}

#[test]
fn an_incomplete_line_does_not_damage_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    open(&path, None).0.append(b"whole\n{\"torn").unwrap();
    let (file, _) = open(&path, None);
    file.append(b"next\n").unwrap();
    file.append(b"last\n").unwrap();
    assert_eq!(read(&path), "whole\n{\"torn\nnext\nlast\n");
}

#[test]
fn a_truncated_file_is_continued_from_its_start() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let (file, _) = open(&path, None);
    file.append(b"copied\n").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    file.append(b"new\n").unwrap();
    assert_eq!(read(&path), "new\n");
    std::fs::remove_file(&path).unwrap();
    assert!(file.is_deleted());
}
