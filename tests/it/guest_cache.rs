//! The cache of prepared guests: its files are used only if no other user can have
//! written them, and are created again if there is any doubt.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use tests::audit::audited;
use tests::job::{make_dir, set_mode, write};
use tests::prepared_guest::{
    artifact, assert_cache_ignored, assert_prepared_again, change_engine_version, has_vm, info, manifest, prepared,
    small,
};
use tests::process::{self, contains};
use tests::users::{NOBODY, OTHER_USER, SmallDisk, give, is_root};
use tests::{CPI_ERROR, Job, dist, elf, hostile};

#[test]
fn the_first_call_prepares_the_guest_and_later_calls_need_no_compiler() {
    let job = small().own_programs();
    let first = has_vm(&job);
    assert_eq!((first.result(), first.stderr.as_str()), (&json!(true), ""));
    assert_eq!(
        job.cached("").len(),
        2,
        "expected one artifact, one manifest and no temporary file: {:?}",
        job.cached("")
    );
    fs::remove_file(job.path("bin/wasm-cpi")).unwrap();
    assert_eq!(*has_vm(&job).result(), true);
    info(&job).result();
}

#[test]
fn first_calls_at_the_same_time_compile_the_guest_once() {
    // The probe takes long enough to compile that all calls start meanwhile.
    let job = audited(Job::new());
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..20).map(|_| scope.spawn(|| has_vm(&job).result().clone())).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), true);
        }
    });
    assert_eq!(compilations(&job), 1);
    assert_eq!(job.cached("").len(), 2, "the lock is left: {:?}", job.cached(""));
}

#[test]
fn calls_at_the_same_time_replace_a_damaged_artifact_once() {
    let job = audited(Job::new());
    has_vm(&job).result();
    write(&artifact(&job), b"damaged");
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(|| has_vm(&job).result().clone())).collect();
        for call in calls {
            assert_eq!(call.join().unwrap(), true);
        }
    });
    assert_eq!(compilations(&job), 2);
}

#[test]
fn a_process_that_died_while_it_compiled_does_not_keep_others_waiting() {
    let job = audited(Job::new()).configure(|config| config["log"] = json!({"level": "debug"}));
    let call = job.call("has_vm", json!(["vm-1"]));
    let kill = process::SignalAt { text: "it is compiled now".into(), signal: rustix::process::Signal::KILL };
    let killed =
        process::run_with_signals(&mut call.command(), call.request().as_bytes(), process::GUARD, vec![kill], None);
    assert!(!killed.status.success());
    assert_eq!(job.cached(".lock").len(), 1, "the lock was not taken: {:?}", job.cached(""));
    assert_eq!(*has_vm(&job).result(), true);
    assert_eq!((compilations(&job), job.cached("").len()), (2, 2));
}

/// Returns how often the guest was compiled, according to the audit log.
fn compilations(job: &Job) -> usize {
    let events = tests::audit::of_kind(job, "cache");
    events.iter().filter(|line| line["event"] == "compiling").count()
}

#[test]
fn info_is_answered_from_the_manifest_alone() {
    let job = prepared().own_hot_program();
    fs::remove_file(artifact(&job)).unwrap();
    let response = info(&job);
    assert_eq!(response.result()["stemcell_formats"], json!(["hostile-raw"]));
    assert_eq!(response.stderr, "");
    // A call needs the code, and the error says what is missing.
    has_vm(&job).fails(CPI_ERROR, &["wasm-cpi does not exist, but is needed to prepare the guest; install it beside"]);
}

#[test]
fn a_missing_artifact_is_created_again() {
    let job = prepared();
    fs::remove_file(artifact(&job)).unwrap();
    assert_prepared_again(&job, "the artifact of the prepared guest is missing from the cache");
}

#[test]
fn a_damaged_artifact_is_created_again_wherever_the_damage_is() {
    let whole = fs::read(artifact(&prepared())).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    for bytes in [
        flipped(0),
        flipped(whole.len() / 2),
        flipped(whole.len() - 1),
        whole[..whole.len() - 1].to_vec(),
        whole[..100].to_vec(),
        Vec::new(),
        [whole.as_slice(), b"\0"].concat(),
    ] {
        let job = prepared();
        write(&artifact(&job), &bytes);
        assert_prepared_again(&job, ".cwasm in the cache is damaged");
    }
}

#[test]
fn an_artifact_of_another_wasmtime_is_created_again() {
    let job = prepared();
    change_engine_version(&job);
    assert_prepared_again(&job, "the prepared guest was compiled by another version or with other settings");
}

#[test]
fn a_damaged_manifest_is_created_again() {
    let text = fs::read_to_string(manifest(&prepared())).unwrap();
    let changed = |key: &str, value: Value| {
        let mut manifest: Value = serde_json::from_str(&text).unwrap();
        manifest[key] = value;
        manifest.to_string()
    };
    for (text, expected) in [
        (String::new(), "is damaged"),
        ("null".into(), "is damaged"),
        (text[..text.len() / 2].to_owned(), "is damaged"),
        (format!("{}{text}", " ".repeat(2 << 20)), "is damaged"),
        (changed("description", json!({"name": 7})), "is damaged"),
        (changed("format", json!(0)), "was written by another version of wasm-cpi, or for another guest"),
        (changed("format", json!(999)), "was written by another version of wasm-cpi, or for another guest"),
        (
            changed("wasm_sha256", json!("0".repeat(64))),
            "was written by another version of wasm-cpi, or for another guest",
        ),
        (changed("artifact", json!("../../guest.cwasm")), "does not name an artifact"),
        (changed("artifact", json!(format!("{}.so", "0".repeat(64)))), "does not name an artifact"),
        (
            changed("artifact", json!(format!("{}.cwasm", "0".repeat(64)))),
            "the artifact of the prepared guest is missing",
        ),
    ] {
        let job = prepared();
        write(&manifest(&job), text.as_bytes());
        let response = has_vm(&job);
        assert_eq!(*response.result(), true);
        assert!(response.stderr.contains(expected), "no `{expected}` in {}", response.stderr);
        assert_eq!(has_vm(&job).stderr, "");
    }
}

#[test]
fn the_manifest_of_an_older_runtime_is_not_used() {
    let job = prepared();
    let current = manifest(&job);
    let name = current.file_name().unwrap().to_str().unwrap();
    let (sha256, _) = name.split_once('-').unwrap();
    fs::rename(&current, job.cache_dir().join(format!("{sha256}-0.0.9.json"))).unwrap();
    let response = has_vm(&job);
    assert_eq!((response.result(), response.stderr.as_str()), (&json!(true), ""));
    assert!(current.exists());
}

#[test]
fn files_and_directories_that_others_can_write_are_not_trusted() {
    for mode in [0o664, 0o646, 0o666] {
        let job = prepared();
        set_mode(&artifact(&job), mode);
        assert_prepared_again(&job, &format!("is writable by group or others (mode {mode:o})"));
        set_mode(&manifest(&job), mode);
        assert_prepared_again(&job, &format!("is writable by group or others (mode {mode:o})"));
    }
    for mode in [0o775, 0o757, 0o777, 0o1777] {
        let job = prepared();
        set_mode(&job.cache_dir(), mode);
        assert_cache_ignored(&job, "is writable by group or others (mode ");
    }
}

#[test]
fn files_and_directories_of_other_users_are_not_trusted() {
    if !is_root("files of other users") {
        return;
    }
    for part in [artifact, manifest] {
        let job = prepared();
        give(&part(&job), NOBODY);
        assert_prepared_again(&job, "belongs to user 65534, neither to this user (0) nor to root");
    }
    let job = prepared();
    give(&job.cache_dir(), NOBODY);
    assert_cache_ignored(&job, "belongs to user 65534");
    let job = prepared().own_programs();
    set_mode(&job.path(""), 0o755);
    give(&job.path("config"), NOBODY);
    give(&job.cache_dir(), OTHER_USER);
    let response = job.call("has_vm", json!(["vm-1"])).user(NOBODY).run();
    assert_eq!(*response.result(), true);
    assert!(
        response.stderr.contains("belongs to user 65533, neither to this user (65534) nor to root"),
        "{}",
        response.stderr
    );
}

#[test]
fn symbolic_links_are_not_followed() {
    for part in [artifact, manifest] {
        let job = prepared();
        let (path, elsewhere) = (part(&job), job.path("elsewhere"));
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert_prepared_again(&job, " in the cache cannot be opened: ");
        assert!(elsewhere.exists() && !path.is_symlink(), "the link must be replaced and its target left alone");
    }
    let job = prepared();
    fs::rename(job.cache_dir(), job.path("elsewhere")).unwrap();
    symlink(job.path("elsewhere"), job.cache_dir()).unwrap();
    assert_cache_ignored(&job, "cache: ");
}

#[test]
fn cache_entries_that_are_not_regular_files_are_refused_without_blocking() {
    for part in [artifact, manifest] {
        let job = prepared();
        let path = part(&job);
        fs::remove_file(&path).unwrap();
        let made = std::process::Command::new("mkfifo").args(["-m", "600"]).arg(&path).status();
        assert!(made.is_ok_and(|status| status.success()));
        assert_prepared_again(&job, "is not a regular file");
        fs::remove_file(&path).unwrap();
        make_dir(&path);
        let response = has_vm(&job);
        assert_eq!(*response.result(), true);
        assert!(response.stderr.contains("is not a regular file"), "{}", response.stderr);
    }
    let job = small();
    write(&job.cache_dir(), b"a file where a directory should be");
    assert_cache_ignored(&job, "cache: ");
}

#[test]
fn calls_work_without_a_cache_if_its_directory_cannot_be_created() {
    let job = small().configure(|config| config["cache"] = json!("../no/such/dir"));
    write(&job.path("no"), b"a file where a directory should be");
    for _ in 0..2 {
        let response = has_vm(&job);
        assert_eq!(*response.result(), true);
        assert!(
            response.stderr.contains("the prepared guest cannot be stored, so every call compiles it again"),
            "{}",
            response.stderr
        );
    }
}

#[test]
fn the_cache_is_created_together_with_its_parent_directories() {
    let job = small().configure(|config| config["cache"] = json!("../data/job/cache"));
    assert_eq!(*has_vm(&job).result(), true);
    let files = fs::read_dir(job.path("data/job/cache")).map(Iterator::count);
    assert_eq!(files.ok(), Some(3), "expected an artifact, its manifest and the file that remembers leaks");
}

#[test]
fn calls_work_without_a_cache_on_a_full_disk() {
    if !is_root("a small disk") {
        return;
    }
    let job = small();
    make_dir(&job.cache_dir());
    let Some(disk) = SmallDisk::mount(&job.cache_dir(), "size=8k,mode=755") else { return };
    for _ in 0..2 {
        let response = has_vm(&job);
        assert_eq!(*response.result(), true);
        assert!(response.stderr.contains("cannot be stored, so every call compiles it again: "), "{}", response.stderr);
        assert!(response.stderr.contains("No space left"), "{}", response.stderr);
        let left: Vec<PathBuf> = job.cached("");
        assert!(left.is_empty(), "{left:?}");
    }
    drop(disk);
}

#[test]
fn calls_work_without_a_cache_on_a_read_only_disk() {
    if !is_root("a read-only disk") {
        return;
    }
    let job = small();
    make_dir(&job.cache_dir());
    let Some(disk) = SmallDisk::mount(&job.cache_dir(), "ro,mode=755") else { return };
    let response = has_vm(&job);
    assert_eq!(*response.result(), true);
    assert!(response.stderr.contains("Read-only file system"), "{}", response.stderr);
    drop(disk);
}

#[test]
fn calls_work_without_a_cache_if_this_user_may_not_write_its_directory() {
    if !is_root("another user") {
        return;
    }
    let job = small().own_programs();
    make_dir(&job.cache_dir());
    set_mode(&job.path(""), 0o755);
    give(&job.path("config"), NOBODY);
    let response = job.call("has_vm", json!(["vm-1"])).user(NOBODY).run();
    assert_eq!(*response.result(), true);
    assert!(
        response.stderr.contains("cannot be stored") && response.stderr.contains("ermission denied"),
        "{}",
        response.stderr
    );
}

#[test]
fn twenty_concurrent_first_calls_all_succeed() {
    let job = small();
    std::thread::scope(|scope| {
        for racer in 0..20 {
            let job = &job;
            scope.spawn(move || {
                let response = if racer % 2 == 0 { has_vm(job) } else { info(job) };
                response.result();
                assert_eq!(response.stderr, "");
            });
        }
    });
    assert_eq!(job.cached(".json").len(), 1);
    assert_eq!(job.cached(".tmp"), Vec::<PathBuf>::new());
    let after = has_vm(&job);
    assert_eq!((after.result(), after.stderr.as_str()), (&json!(true), ""));
}

#[test]
fn another_user_can_run_a_guest_that_root_prepared() {
    if !is_root("another user") {
        return;
    }
    let job = small().own_programs();
    set_mode(&job.path(""), 0o755);
    assert_eq!(has_vm(&job).stderr, "");
    fs::remove_file(job.path("bin/wasm-cpi")).unwrap();
    give(&job.path("config"), NOBODY);
    let response = job.call("has_vm", json!(["vm-1"])).user(NOBODY).run();
    assert_eq!(response.result(), &json!(true));
    // This user cannot write to the cache of root, so nothing would remember a leak.
    let warning = "wasm-cpi warn: a leak would not be remembered for later calls: ";
    assert!(response.stderr.contains(warning) && response.stderr.lines().count() == 1, "{}", response.stderr);
}

fn prepare(arguments: &[&Path]) -> std::process::Output {
    let mut command = std::process::Command::new(dist::tool());
    let output = command.arg("prepare").args(arguments).env_clear().current_dir("/").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{} {stderr}", String::from_utf8_lossy(&output.stdout));
    output
}

#[test]
fn prepare_fills_the_cache_once() {
    let job = small();
    prepare(&[Path::new("--config"), &job.config_file()]);
    let stamp = |path: &Path| fs::metadata(path).map(|metadata| (metadata.ino(), metadata.mtime_nsec())).unwrap();
    let before = [artifact(&job), manifest(&job)].map(|path| stamp(&path));
    prepare(&[Path::new("--config"), &job.config_file()]);
    assert_eq!([artifact(&job), manifest(&job)].map(|path| stamp(&path)), before);
    let job = job.own_hot_program();
    assert_eq!(has_vm(&job).stderr, "");
}

#[test]
fn prepare_accepts_a_cache_and_a_guest_instead_of_a_config() {
    let job = small().own_hot_program();
    make_dir(&job.cache_dir());
    prepare(&[Path::new("--cache"), &job.cache_dir(), &job.path("guest.wasm")]);
    assert_eq!(has_vm(&job).stderr, "");
}

#[test]
fn prepare_runs_as_the_owner_of_the_cache() {
    if !is_root("another user") {
        return;
    }
    let job = small().own_hot_program();
    make_dir(&job.cache_dir());
    set_mode(&job.path(""), 0o755);
    give(&job.cache_dir(), NOBODY);
    // As on a Director: the files belong to root, and the user of the calls may read them.
    for path in ["config", "config/cpi.json", "config/policy.json"] {
        set_mode(&job.path(path), 0o755);
    }
    prepare(&[Path::new("--config"), &job.config_file()]);
    for path in job.cached("") {
        assert_eq!(fs::metadata(&path).unwrap().uid(), NOBODY, "{}", path.display());
    }
    let response = job.call("has_vm", json!(["vm-1"])).user(NOBODY).run();
    assert_eq!((response.result(), response.stderr.as_str()), (&json!(true), ""));
}

#[test]
fn several_guests_can_share_one_cache() {
    let job = prepared();
    let other = Job::new().cache(&job.cache_dir()).guest_bytes(&hostile::describing("o", "1", &["other-raw"], &[]));
    for _ in 0..2 {
        assert_eq!(info(&other).result()["stemcell_formats"], json!(["other-raw"]));
        assert_eq!(info(&job).result()["stemcell_formats"], json!(["hostile-raw"]));
    }
    assert_eq!(job.cached(".json").len(), 2);
}

#[test]
fn the_hot_binary_has_no_compiler_and_the_tool_has_one() {
    let (hot, tool) = (fs::read(dist::hot()).unwrap(), fs::read(dist::tool()).unwrap());
    for needle in ["cranelift_codegen", "cranelift-codegen", "regalloc2"] {
        assert!(!contains(&hot, needle.as_bytes()), "{needle} in wasm-cpi-run");
    }
    assert!(
        contains(&tool, b"cranelift-codegen") && contains(&tool, b"regalloc2"),
        "the names of the compiler have changed, so that this test would find nothing"
    );
    assert!(hot.len() * 2 < tool.len(), "{} and {} bytes", hot.len(), tool.len());
}

#[test]
fn both_binaries_are_static() {
    for path in [dist::hot(), dist::tool()] {
        assert!(!elf::needs_loader(&fs::read(&path).unwrap()), "{} is linked dynamically", path.display());
    }
}
