use super::*;
use crate::arguments::Cloud;
use serde_json::json;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use tempfile::TempDir;

/// Replaces the programs: prints its own path and arguments.
const ECHO: &str = "#!/bin/sh\necho \"$0 $*\"\n";

struct TestJob {
    dir: TempDir,
    out: PathBuf,
}

impl TestJob {
    fn new() -> TestJob {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("dist")).unwrap();
        for program in [HOT, TOOL] {
            files::write(&dir.path().join("dist").join(program), ECHO, 0o755).unwrap();
        }
        for guest in GUESTS {
            fs::write(dir.path().join(format!("dist/{guest}.wasm")), "wasm").unwrap();
        }
        let job = TestJob { out: dir.path().join("some where/job"), dir };
        job.lay_out().unwrap();
        job
    }

    fn lay_out(&self) -> Result<()> {
        self.lay_out_with(Job::default())
    }

    fn lay_out_with(&self, job: Job) -> Result<()> {
        let inputs = JobInputs::from_files(&Repo::find().unwrap(), &job)?;
        self.lay_out_with_inputs(job, &inputs).map(drop)
    }

    fn lay_out_with_inputs(&self, job: Job, inputs: &JobInputs) -> Result<Option<String>> {
        let repo = Repo::find().unwrap();
        write(&repo, &self.dir.path().join("dist"), &Job { out: self.out.clone(), ..job }, inputs)
    }

    /// Returns a repository in which no cloud is up.
    fn repo(&self) -> Repo {
        let root = self.dir.path().join("repo");
        fs::create_dir_all(root.join("guests/openstack")).unwrap();
        fs::write(root.join("guests/openstack/policy.json"), r#"{"version":1,"http":[]}"#).unwrap();
        Repo { root, triple: String::new() }
    }

    fn read(&self, file: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.out.join(file)).unwrap()).unwrap()
    }
}

/// Returns the configuration that the script passes to the program, as a canonical path.
fn config_passed_by(mut command: Command) -> PathBuf {
    let output = command.env_clear().output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let (_, arguments) = stdout.trim().split_once(" --config ").unwrap_or_else(|| panic!("{stdout}{output:?}"));
    let (config, _) = arguments.split_once(" --packages ").unwrap_or_else(|| panic!("{stdout}"));
    fs::canonicalize(command.get_current_dir().unwrap_or(Path::new("/")).join(config)).unwrap()
}

#[test]
fn the_script_finds_its_config_from_anywhere_with_an_empty_environment() {
    let job = TestJob::new();
    let config = fs::canonicalize(job.out.join("config/cpi.json")).unwrap();
    let linked_job = job.dir.path().join("linked-job");
    symlink(&job.out, &linked_job).unwrap();
    let linked_script = job.dir.path().join("linked-script");
    symlink(job.out.join("bin/cpi"), &linked_script).unwrap();

    for script in [job.out.join("bin/cpi"), linked_job.join("bin/cpi"), linked_script] {
        let mut command = Command::new(&script);
        command.current_dir("/");
        assert_eq!(config_passed_by(command), config, "{}", script.display());
    }
    let mut relative = Command::new("/bin/sh");
    relative.arg("cpi").current_dir(job.out.join("bin"));
    assert_eq!(config_passed_by(relative), config);
}

#[test]
fn the_config_pins_the_guest_by_package_and_digest() {
    let job = TestJob::new();
    let config = job.read("config/cpi.json");
    assert_eq!((&config["guest"]["package"], &config["guest"]["file"]), (&json!("guest"), &json!("probe.wasm")));
    assert_eq!(config["guest"]["sha256"], "336154bf67f765f8f75d16a0accee61b5ee5f6a75b2a2905703df913bd550f3e");
    assert_eq!(job.read("config/policy.json"), json!({"version": 1, "http": []}));
    assert!(job.out.join("packages/guest/probe.wasm").is_file());
    // The pre-start script would use directories that only an Agent creates.
    assert!(!job.out.join("bin/pre-start").exists());
}

#[test]
fn files_have_the_modes_that_the_runtime_requires() {
    let job = TestJob::new();
    for (path, mode) in [
        ("bin/cpi", 0o755),
        ("config", 0o755),
        ("config/cpi.json", 0o600),
        ("config/policy.json", 0o640),
        ("packages/wasm-cpi/wasm-cpi", 0o755),
        ("packages/wasm-cpi/wasm-cpi-run", 0o755),
        ("packages/guest/probe.wasm", 0o644),
        ("data/wasm_cpi/cache", 0o755),
    ] {
        let found = fs::metadata(job.out.join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(found, mode, "{path}: {found:o}");
    }
}

#[test]
fn a_job_that_exists_keeps_its_configuration_and_gets_the_new_pin() {
    let job = TestJob::new();
    let old = job.read("config/cpi.json");
    let mut edited = old.clone();
    edited["properties"]["region"] = json!("here");
    fs::write(job.out.join("config/cpi.json"), edited.to_string()).unwrap();
    fs::write(job.out.join("config/policy.json"), r#"{"version":1,"http":[{}]}"#).unwrap();
    fs::write(job.dir.path().join("dist/probe.wasm"), "other wasm").unwrap();

    job.lay_out().unwrap();
    let new = job.read("config/cpi.json");
    assert_eq!(new["properties"], json!({"region": "here"}));
    assert_ne!(new["guest"]["sha256"], old["guest"]["sha256"]);
    assert_eq!(job.read("config/policy.json")["http"], json!([{}]));
}

#[test]
fn a_broken_config_is_not_overwritten() {
    let job = TestJob::new();
    for text in ["{", "[]"] {
        fs::write(job.out.join("config/cpi.json"), text).unwrap();
        let error = job.lay_out().unwrap_err().to_string();
        assert!(error.contains("cpi.json") && error.contains("fix or delete it"), "{error}");
        assert_eq!(fs::read_to_string(job.out.join("config/cpi.json")).unwrap(), text);
    }
}

#[test]
fn the_error_about_a_missing_guest_names_it() {
    let job = TestJob::new();
    let absent = Some(job.dir.path().join("absent.wasm"));
    let error = job.lay_out_with(Job { guest: absent, ..Job::default() }).unwrap_err().to_string();
    assert!(error.contains("absent.wasm"), "{error}");
}

#[test]
fn a_given_policy_replaces_the_existing_one_only_with_replace() {
    let job = TestJob::new();
    let given = job.dir.path().join("given.json");
    fs::write(&given, r#"{"expose":["endpoint"]}"#).unwrap();
    let edited = r#"{"version":1,"http":[{}]}"#;
    fs::write(job.out.join(POLICY), edited).unwrap();
    let lay_out = |replace| {
        let wanted = Job { policy: Some(given.clone()), replace, ..Job::default() };
        let inputs = JobInputs::from_files(&Repo::find().unwrap(), &wanted).unwrap();
        job.lay_out_with_inputs(wanted, &inputs).unwrap()
    };
    let note = lay_out(false).unwrap();
    assert!(note.contains("policy.json exists and is kept") && note.contains("--replace"), "{note}");
    assert_eq!(fs::read_to_string(job.out.join(POLICY)).unwrap(), edited);
    assert_eq!(lay_out(true), None);
    assert_eq!(job.read(POLICY), json!({"version": 1, "expose": ["endpoint"]}));
    assert_eq!(lay_out(false), None, "the policy is the given one already");
}

#[test]
fn the_presets_that_a_given_policy_names_are_copied() {
    let job = TestJob::new();
    let near = job.dir.path().join("mine");
    fs::create_dir(&near).unwrap();
    fs::write(near.join("own.json"), "own").unwrap();
    fs::write(
        near.join("p.json"),
        r#"{"presets":[{"file":"own.json"},{"package":"acme","file":"own.json"},
        {"package":"wasm-cpi-guests","file":"openstack-loadbalancer.json"}]}"#,
    )
    .unwrap();
    let wanted = || Job { policy: Some(near.join("p.json")), ..Job::default() };
    job.lay_out_with(wanted()).unwrap();
    let text = |file: &str| fs::read_to_string(job.out.join(file)).unwrap();
    assert_eq!((text("config/own.json"), text("packages/acme/own.json")), ("own".to_owned(), "own".to_owned()));
    let shipped = Repo::find().unwrap().guests().join("openstack/policy-loadbalancer.json");
    assert_eq!(text("packages/wasm-cpi-guests/openstack-loadbalancer.json"), fs::read_to_string(shipped).unwrap());

    fs::write(near.join("own.json"), "new").unwrap();
    job.lay_out_with(wanted()).unwrap();
    assert_eq!((text("config/own.json"), text("packages/acme/own.json")), ("own".to_owned(), "new".to_owned()));
    for (file, said) in [("absent.json", "absent.json, which is not in"), ("../own.json", "without `..`")] {
        fs::write(near.join("p.json"), json!({"presets": [{"file": file}]}).to_string()).unwrap();
        let error = job.lay_out_with(wanted()).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn given_properties_replace_the_existing_ones() {
    let job = TestJob::new();
    let file = job.dir.path().join("properties.json");
    fs::write(&file, r#"{"endpoint":"https://b.example"}"#).unwrap();
    let text = r#" {"endpoint":"https://a.example"}"#.to_owned();

    for (properties, endpoint) in [(text, "https://a.example"), (file.display().to_string(), "https://b.example")] {
        job.lay_out_with(Job { properties: Some(properties), allow_local: true, ..Job::default() }).unwrap();
        let config = job.read(CONFIG);
        assert_eq!((&config["properties"], &config["allow_local"]), (&json!({"endpoint": endpoint}), &json!(true)));
    }
    job.lay_out().unwrap();
    assert_eq!(job.read(CONFIG)["properties"], json!({"endpoint": "https://b.example"}), "they do not change");
}

#[test]
fn policy_and_properties_that_are_not_objects_are_rejected_without_quoting_or_writing_them() {
    let job = TestJob::new();
    let file = job.dir.path().join("list.json");
    fs::write(&file, r#"["hunter2"]"#).unwrap();
    let given = Job { policy: Some(file.clone()), allow_local: true, ..Job::default() };
    let error = format!("{:#}", job.lay_out_with(given).unwrap_err());
    assert!(!error.contains("hunter2") && error.contains("--policy"), "{error}");
    for argument in [r#"{"a":"hunter2""#, &file.display().to_string(), "absent.json"] {
        let given = Job { properties: Some(argument.to_owned()), allow_local: true, ..Job::default() };
        let error = format!("{:#}", job.lay_out_with(given).unwrap_err());
        assert!(!error.contains("hunter2") && (error.contains("--properties") || error.contains("absent")), "{error}");
        assert_eq!(job.read(CONFIG)["allow_local"], json!(false));
    }
}

#[test]
fn a_guest_of_the_repository_is_found_by_its_name() {
    let job = TestJob::new();
    for name in GUESTS {
        job.lay_out_with(Job { guest: Some(name.into()), ..Job::default() }).unwrap();
        assert_eq!(job.read(CONFIG)["guest"]["file"], format!("{name}.wasm"));
    }
}

#[test]
fn a_job_for_a_cloud_has_its_endpoints_and_not_its_admin_credentials() {
    let job = TestJob::new();
    let repo = job.repo();
    let home = repo.root.join("target/cloud/sim");
    fs::create_dir_all(&home).unwrap();
    let cloud = json!({
        "auth_url": "http://127.0.0.1:1/v3", "region": "R", "username": "u", "api_key": "k", "domain": "D",
        "project": "p", "endpoints": {"compute": "http://127.0.0.1:2/v2.1"}, "key_name": "key",
        "security_group": "group", "volume_type": "type", "admin": {"api_key": "hunter2"},
    });
    fs::write(home.join("cloud.json"), cloud.to_string()).unwrap();
    let wanted = || Job { guest: Some("openstack".into()), cloud: Some(Cloud::Sim), ..Job::default() };

    let wanted = || Job { replace: true, ..wanted() };
    job.lay_out_with_inputs(wanted(), &JobInputs::new(&repo, &wanted()).unwrap()).unwrap();
    let config = job.read(CONFIG);
    assert_eq!(config["guest"]["file"], "openstack.wasm");
    assert_eq!((&config["allow_local"], &config["properties"]["api_key"]), (&json!(true), &json!("k")));
    assert_eq!(config["properties"]["endpoints"], cloud["endpoints"]);
    assert_eq!(config["properties"]["default_security_groups"], json!(["group"]));
    assert!(!config.to_string().contains("hunter2"), "{config}");
    let preset = &job.read("config/policy.json")["presets"][0];
    let expected =
        json!({"package": "guest", "file": "openstack.json", "addresses": ["127.0.0.0/8"], "plain_http": true});
    assert_eq!(preset, &expected);
    assert_eq!(job.read("packages/guest/openstack.json"), json!({"version": 1, "http": []}));
    for (file, mode) in [(CONFIG, 0o600), ("packages/guest/openstack.json", 0o644)] {
        assert_eq!(fs::metadata(job.out.join(file)).unwrap().permissions().mode() & 0o777, mode, "{file}");
    }
}

#[test]
fn the_error_about_a_cloud_that_is_not_up_shows_how_to_start_it() {
    let job = TestJob::new();
    for (cloud, command) in
        [(Cloud::Sim, "cargo xtask cloud up sim"), (Cloud::Openstack, "cargo xtask cloud up openstack")]
    {
        let wanted = Job { cloud: Some(cloud), ..Job::default() };
        let error = JobInputs::new(&job.repo(), &wanted).err().unwrap().to_string();
        assert!(error.contains(command), "{error}");
    }
}
