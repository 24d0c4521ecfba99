//! Signatures of guests: a guest without enough valid signatures is neither compiled nor
//! run, even if it is in the cache.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use tests::job::{make_dir, set_mode, write};
use tests::signing::{line, public, signed};
use tests::users::{NOBODY, give, is_root};
use tests::{CPI_ERROR, Job, Response, dist, hostile, skip};

fn small() -> Vec<u8> {
    hostile::guest("small")
}

/// Returns a job that requires signatures of `threshold` of the keys 1 to `n`, and has these signatures.
fn job(threshold: usize, n: u8, signatures: &[String]) -> Job {
    let job = Job::new().guest_bytes(&small());
    write(&job.path("guest.wasm.sig"), signatures.concat().as_bytes());
    let keys: Vec<String> = (1..=n).map(public).collect();
    job.configure(|config| config["guest"]["signature"] = json!({"ed25519": keys, "threshold": threshold}))
}

fn info(job: &Job) -> Response {
    job.call("info", json!([])).run()
}

fn has_vm(job: &Job) -> Response {
    job.call("has_vm", json!(["vm-1"])).run()
}

fn tool(arguments: &[&str]) -> Output {
    Command::new(dist::tool()).args(arguments).env_clear().current_dir("/").output().unwrap()
}

/// Checks that every command that would use the guest fails with these texts, and that the cache is
/// empty.
#[track_caller]
fn check_refused(job: &Job, expected: &[&str]) {
    for response in [info(job), has_vm(job)] {
        response.fails(CPI_ERROR, &["config: guest "]).fails(CPI_ERROR, expected);
    }
    let (config, guest) = (job.config_file(), job.path("guest.wasm"));
    let (config, guest) = (config.to_str().unwrap(), guest.to_str().unwrap());
    for arguments in [
        &["prepare", "--config", config][..],
        &["check", "--config", config],
        &["call", "has_vm", "vm-1", "--config", config],
        &["inspect", guest, "--config", config],
    ] {
        let output = tool(arguments);
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {text}");
        for part in expected {
            assert!(text.contains(part), "{arguments:?}: no `{part}` in {text}");
        }
    }
    assert_eq!(job.cached(""), Vec::<std::path::PathBuf>::new());
}

/// Checks that the guest runs.
#[track_caller]
fn check_accepted(job: &Job) {
    info(job).result();
    assert_eq!((has_vm(job).result(), has_vm(job).stderr.as_str()), (&json!(true), ""));
}

#[test]
fn a_guest_with_enough_signatures_runs() {
    let by = |seed| line(seed, &small());
    for (threshold, n, signatures) in
        [(1, 1, vec![by(1)]), (1, 3, vec![by(3)]), (2, 3, vec![by(3), by(1)]), (2, 2, vec![by(9), by(2), by(1)])]
    {
        check_accepted(&job(threshold, n, &signatures));
    }
}

#[test]
fn a_guest_with_too_few_signatures_is_not_compiled() {
    let by = |seed| line(seed, &small());
    let other = line(1, &hostile::guest("plain"));
    let digest = format!("{}\n", signed(1, dist::sha256(&small()).as_bytes()));
    for (threshold, n, signatures, expected) in [
        (1, 1, vec![by(2)], "0 of 1 needed signatures"),
        (1, 1, vec![other.clone()], "0 of 1 needed signatures"),
        (1, 1, vec![digest], "0 of 1 needed signatures"),
        (2, 3, vec![by(2)], "1 of 2 needed signatures"),
        (2, 2, vec![by(1), by(1)], "1 of 2 needed signatures"),
        (2, 2, vec![by(1), other], "1 of 2 needed signatures"),
        (1, 1, vec![by(1), "junk\n".into()], "has no base64 of 64 bytes in line 2"),
        (1, 1, vec![], "is empty"),
        (1, 1, vec!["A".repeat(100_000)], "is larger than 8 KiB"),
    ] {
        check_refused(&job(threshold, n, &signatures), &["guest.wasm.sig", expected, &public(1)]);
    }
    let job = job(1, 1, &[]);
    fs::remove_file(job.path("guest.wasm.sig")).unwrap();
    check_refused(
        &job,
        &["guest.wasm.sig, cannot be read (No such file", "`guest.signature` requires signatures of 1 of these keys"],
    );
}

#[test]
fn a_prepared_guest_does_not_run_without_its_signature() {
    let job = job(1, 1, &[line(1, &small())]);
    check_accepted(&job);
    let signatures = job.path("guest.wasm.sig");
    write(&signatures, line(2, &small()).as_bytes());
    for response in [info(&job), has_vm(&job)] {
        response.fails(CPI_ERROR, &["0 of 1 needed signatures"]);
    }
    write(&signatures, line(1, &small()).as_bytes());
    check_accepted(&job);
    // A key that was removed from the config is not accepted any more.
    let job = job.configure(|config| config["guest"]["signature"] = json!({"ed25519": [public(2)]}));
    for response in [info(&job), has_vm(&job)] {
        response.fails(CPI_ERROR, &["0 of 1 needed signatures"]);
    }
}

#[test]
fn a_signature_covers_the_pin_and_the_pin_covers_the_bytes() {
    let job = job(1, 1, &[line(1, &small())]);
    write(&job.path("guest.wasm"), &hostile::guest("plain"));
    has_vm(&job).fails(CPI_ERROR, &["its sha256 is ", "but `guest.sha256` pins "]);
    // The guest is pinned but not signed.
    let job = job.configure(|config| config["guest"]["sha256"] = json!(dist::sha256(&hostile::guest("plain"))));
    check_refused(&job, &["0 of 1 needed signatures"]);
}

#[test]
fn the_signature_file_is_configurable_and_must_not_be_writable_by_others() {
    let job = job(1, 1, &[]);
    make_dir(&job.path("signatures"));
    let file = job.path("signatures/small");
    write(&file, line(1, &small()).as_bytes());
    let job = job.configure(|config| config["guest"]["signature"]["file"] = json!("../signatures/small"));
    for mode in [0o664, 0o646, 0o666] {
        set_mode(&file, mode);
        let expected =
            format!("signatures/small, is writable by group or others (mode {mode:o}); run `chmod go-w` on it");
        check_refused(&job, &[&expected]);
    }
    set_mode(&file, 0o644);
    if is_root("giving files away") {
        give(&file, NOBODY);
        check_refused(&job, &["belongs to user 65534, neither to this user (0) nor to root"]);
        give(&file, 0);
    }
    // Links are followed, and their target is checked, as with the config.
    fs::rename(&file, job.path("elsewhere")).unwrap();
    symlink(job.path("elsewhere"), &file).unwrap();
    set_mode(&job.path("elsewhere"), 0o666);
    check_refused(&job, &["is writable by group or others"]);
    set_mode(&job.path("elsewhere"), 0o644);
    check_accepted(&job);
    for path in ["/dev/zero", "/"] {
        let job = Job::new().guest_bytes(&small()).configure(|config| {
            config["guest"]["signature"] = json!({"ed25519": [public(1)], "file": path});
        });
        check_refused(&job, &["is not a regular file"]);
    }
}

#[test]
fn the_error_names_the_invalid_key_of_the_signature_section() {
    let whole = "MCowBQYDK2VwAyEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    for (signature, expected) in [
        (json!({}), "`guest.signature.ed25519` must be a list of 1 to 32 public keys"),
        (json!({"ed25519": ["?"]}), "`guest.signature.ed25519[0]` is not base64"),
        (json!({"ed25519": [whole]}), "`guest.signature.ed25519[0]` is a whole public key in DER"),
        (
            json!({"ed25519": [STANDARD.encode([0; 32])]}),
            "`guest.signature.ed25519[0]` is a key with which anyone can sign",
        ),
        (json!({"ed25519": [public(1), public(1)]}), "`guest.signature.ed25519[1]` is listed twice"),
        (json!({"ed25519": [public(1)], "threshold": 0}), "`guest.signature.threshold` must be a number from 1 to 1"),
        (json!({"ed25519": [public(1)], "threshold": 2}), "`guest.signature.threshold` must be a number from 1 to 1"),
        (json!({"ed25519": [public(1)], "keys": []}), "`guest.signature.keys` is not a key of the configuration"),
        (json!([public(1)]), "`guest.signature` must be an object"),
    ] {
        let job = Job::default().configure(|config| config["guest"]["signature"] = signature);
        for response in [info(&job), has_vm(&job)] {
            response.fails(CPI_ERROR, &["config: ", "cpi.json: ", expected]);
        }
    }
}

#[test]
fn check_and_inspect_print_the_keys_of_the_signatures() {
    let job = job(2, 3, &[line(3, &small()), line(1, &small())]);
    let (config, guest) = (job.config_file(), job.path("guest.wasm"));
    let (config, guest) = (config.to_str().unwrap(), guest.to_str().unwrap());
    let expected = format!("verified, signed by 2 of 3 keys: {}, {}", public(1), public(3));
    for arguments in [&["check", "--config", config][..], &["inspect", guest, "--config", config]] {
        let output = tool(arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains(&expected), "{arguments:?}: {text}");
    }
    let output = tool(&["inspect", guest, "--config", config, "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["signature"], json!(expected));
    // Another guest needs its own signature file.
    let other = job.path("other.wasm");
    write(&other, &hostile::guest("plain"));
    let unsigned = tool(&["inspect", other.to_str().unwrap(), "--config", config]);
    assert!(String::from_utf8_lossy(&unsigned.stderr).contains("other.wasm.sig, cannot be read"));
    write(&job.path("other.wasm.sig"), [2, 3].map(|seed| line(seed, &hostile::guest("plain"))).concat().as_bytes());
    assert!(tool(&["inspect", other.to_str().unwrap(), "--config", config]).status.success());
    // Without a config that requires signatures, the output does not mention them.
    let output = tool(&["inspect", guest]);
    assert!(output.status.success() && !String::from_utf8_lossy(&output.stdout).contains("sign"));
}

/// Runs the commands of SIGNING.md in this directory.
fn run_signing_commands(dir: &Path) {
    let page = fs::read_to_string(dist::root().join("SIGNING.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect();
    assert_eq!(blocks.len(), 2, "SIGNING.md must have two blocks of commands");
    let script = format!("set -e\numask 022\n{}", blocks.concat());
    let ran = Command::new("sh").args(["-c", &script]).current_dir(dir).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn signatures_made_with_the_documented_openssl_commands_are_accepted() {
    if Command::new("openssl").arg("version").output().is_err() {
        return skip("openssl", "the commands of SIGNING.md: there is no openssl");
    }
    let job = Job::new().guest_bytes(&small());
    run_signing_commands(&job.path(""));
    let key = fs::read_to_string(job.path("author.pub")).unwrap();
    let job = job.configure(|config| config["guest"]["signature"] = json!({"ed25519": [key]}));
    check_accepted(&job);
    // A second author adds a line to the same file.
    for name in ["author.pem", "author.pub", "guest.wasm.text"] {
        fs::remove_file(job.path(name)).unwrap();
    }
    run_signing_commands(&job.path(""));
    let second = fs::read_to_string(job.path("author.pub")).unwrap();
    let both = json!({"ed25519": [key, second], "threshold": 2});
    check_accepted(&job.configure(|config| config["guest"]["signature"] = both));
}
