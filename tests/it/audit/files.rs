//! Problems with the file of the audit log: the call continues with one warning, and
//! does not touch files that are not its own.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use tests::audit::{audited, call_with_uses, last_call, lines, lines_of, path, uses, whole_lines_of};
use tests::job::{make_dir, set_mode, write};
use tests::users::{NOBODY, SmallDisk, give, is_root};
use tests::{Job, Response, process};

fn info(job: &Job) -> Response {
    job.call("info", json!([])).run()
}

/// Checks that the call succeeded with exactly one audit warning that contains this text.
#[track_caller]
fn check_warning(response: &Response, expected: &str) {
    response.result();
    let warnings: Vec<&str> = response.stderr.lines().filter(|line| line.contains(" audit: ")).collect();
    assert_eq!(warnings.len(), 1, "{}", response.stderr);
    assert!(warnings[0].contains("wasm-cpi warn: audit: ") && warnings[0].contains(expected), "{}", warnings[0]);
}

#[test]
fn a_path_that_is_not_a_trusted_regular_file_is_left_alone_with_a_warning() {
    let job = audited(Job::default());
    let path = path(&job);
    write(&job.path("elsewhere"), b"");
    let pipe = |at: &Path| drop(Command::new("mkfifo").arg(at).status());
    let rows: [(&dyn Fn(), &str); 5] = [
        (&|| symlink(job.path("elsewhere"), &path).unwrap(), "audit.log is a symbolic link, which is not followed"),
        (&|| symlink(job.path("nothing"), &path).unwrap(), "audit.log is a symbolic link"),
        (&|| pipe(&path), "audit.log is not a regular file"),
        (
            &|| {
                write(&path, b"");
                set_mode(&path, 0o660);
            },
            "audit.log is writable by group or others (mode 660); run `chmod go-w` on it",
        ),
        (&|| make_dir(&path), "audit.log cannot be opened (Is a directory"),
    ];
    for (make, expected) in rows {
        let _ = fs::remove_file(&path);
        make();
        check_warning(&info(&job), expected);
    }
    assert_eq!(fs::read(job.path("elsewhere")).unwrap(), b"");
    assert!(!job.path("nothing").exists());
    for (place, expected) in [
        ("/dev/full", "/dev/full is not a regular file"),
        ("no/such/directory/audit.log", "cannot be opened (No such file"),
        ("cpi.json/audit.log", "cannot be opened (Not a directory"),
    ] {
        let job = Job::default().configure(|config| config["audit"] = json!({"path": place}));
        check_warning(&info(&job), expected);
    }
}

#[test]
fn a_file_of_another_user_or_without_write_permission_causes_a_warning() {
    if !is_root("files of other users") {
        return;
    }
    let job = audited(Job::default());
    write(&path(&job), b"");
    give(&path(&job), NOBODY);
    check_warning(&info(&job), "belongs to user 65534, neither to this user (0) nor to root");
    // The call of another user, in directories of root.
    let job = audited(Job::default());
    set_mode(&job.path(""), 0o755);
    give(&job.path("config"), NOBODY);
    let shared = job.call("info", json!([])).user(NOBODY).run();
    check_warning(&shared, "audit.log cannot be opened (Permission denied");
    write(&path(&job), b"");
    set_mode(&path(&job), 0o600);
    check_warning(&job.call("info", json!([])).user(NOBODY).run(), "audit.log cannot be opened (Permission denied");
}

#[test]
fn a_new_file_is_accessible_only_to_its_owner() {
    let job = audited(Job::default());
    info(&job).result();
    assert_eq!(fs::metadata(path(&job)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn rotation_by_another_program_loses_no_line() {
    let job = audited(Job::default());
    info(&job).result();
    fs::rename(path(&job), job.path("moved")).unwrap();
    info(&job).result();
    assert_eq!((lines_of(&job.path("moved")).len(), lines(&job).len()), (1, 1));
    fs::copy(path(&job), job.path("copied")).unwrap();
    fs::File::options().write(true).open(path(&job)).unwrap().set_len(0).unwrap();
    info(&job).result();
    assert_eq!(lines(&job).len(), 1);
    assert!(!job.path("audit.log.lock").exists() && !job.path("audit.log.1").exists());
}

#[test]
fn a_full_disk_causes_a_warning_and_the_call_succeeds() {
    if !is_root("a disk of a few KiB") {
        return;
    }
    let job = Job::default().configure(|config| config["audit"] = json!({"path": "../disk/audit.log"}));
    let (disk, path) = (job.path("disk"), job.path("disk/audit.log"));
    make_dir(&disk);
    let Some(_mounted) = SmallDisk::mount(&disk, "size=16k") else { return };
    check_warning(&call_with_uses(&job, "vm-1", 200).run(), "; lines of this call are missing from the audit log");
    let written = whole_lines_of(&path).len();
    assert!((10..200).contains(&written), "{written} lines");
    check_warning(&call_with_uses(&job, "vm-1", 200).run(), "; lines of this call are missing from the audit log");
    assert_eq!(whole_lines_of(&path).len(), written);
    // Once there is space again, the incomplete line does not damage the next one.
    let more = Command::new("mount").args(["-o", "remount,size=1m"]).arg(&disk).status();
    assert!(more.is_ok_and(|status| status.success()));
    let response = info(&job);
    assert_eq!((response.result().is_object(), response.stderr.as_str()), (true, ""));
    assert_eq!(whole_lines_of(&path).len(), written + 1);
    assert_eq!(whole_lines_of(&path).pop().unwrap()["method"], "info");
}

#[test]
fn a_file_size_limit_causes_a_warning_and_the_call_succeeds() {
    let job = audited(Job::default());
    let call = call_with_uses(&job, "vm-1", 200);
    let plain = call.command();
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 16 && exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    let finished = process::run(&mut limited, call.request().as_bytes(), process::GUARD);
    let (stdout, stderr) = (String::from_utf8_lossy(&finished.stdout), String::from_utf8_lossy(&finished.stderr));
    assert!(finished.status.success(), "{:?}: {stdout} {stderr}", finished.status);
    let response: Value = serde_json::from_str(&stdout).unwrap();
    assert!(response["result"].is_string() && response["error"].is_null(), "{response}");
    assert_eq!(stderr.matches("warn: audit: ").count(), 1, "{stderr}");
    let written = whole_lines_of(&path(&job)).len();
    assert!((10..200).contains(&written), "{written} lines");
    info(&job).result();
    let lines = whole_lines_of(&path(&job));
    assert_eq!((lines.len(), &lines[written]["method"]), (written + 1, &json!("info")));
}

#[test]
fn lines_that_did_not_fit_are_counted_in_the_call_line() {
    if !is_root("a disk of a few KiB") {
        return;
    }
    // A file fills the disk. The server deletes it when the guest sends a request.
    let job = Job::default().configure(|config| config["audit"] = json!({"path": "../disk/audit.log"}));
    let (disk, path) = (job.path("disk"), job.path("disk/audit.log"));
    let filler = disk.join("filler");
    let server = tests::servers::Server::start({
        let filler = filler.clone();
        move |_| {
            let _ = fs::remove_file(&filler);
            tests::servers::Answer::ok("")
        }
    });
    let policy = json!({"version": 1, "http": [server.grant("api")]});
    let job = job.policy(policy).configure(|config| config["allow_local"] = json!(true));
    make_dir(&disk);
    // The mount is dropped before the directory of the job, which contains it.
    let Some(_mounted) = SmallDisk::mount(&disk, "size=32k") else { return };
    let _ = fs::write(&filler, vec![0; 64 * 1024]);
    let script = json!([
        uses("vm-1", 5),
        {"op": "http", "url": server.url("/")},
        uses("vm-2", 3),
    ]);
    let response = job.script(script).stemcell_api_version(2).run();
    check_warning(&response, "; lines of this call are missing from the audit log");
    let all = lines_of(&path);
    assert_eq!((all.len(), &all[4]["dropped"]), (5, &json!(5)), "{all:?}");
}

#[test]
fn all_lines_of_a_call_have_one_id_and_two_calls_have_different_ids() {
    let job = audited(Job::default());
    call_with_uses(&job, "vm-1", 200).run().result();
    call_with_uses(&job, "vm-1", 200).run().result();
    let ids: Vec<Value> = lines(&job).iter().map(|line| line["call"].clone()).collect();
    assert_eq!(ids.len(), 402);
    assert!(ids[..201].iter().all(|id| *id == ids[0]) && ids[201..].iter().all(|id| *id == ids[201]));
    assert_ne!(ids[0], last_call(&job)["call"]);
}
