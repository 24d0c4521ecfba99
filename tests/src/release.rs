//! The BOSH release on this machine: its jobs are rendered with Ruby's ERB and
//! installed below any directory, as a Director's agent or the CLI installs them.

use crate::{dist, job};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the source directory of a job of the release.
pub fn job_source(name: &str) -> PathBuf {
    dist::root().join("release/jobs").join(name)
}

/// Renders a job with these properties. Returns its files by their paths, or the
/// error message.
pub fn render(source: &Path, properties: &Value) -> Result<Value, String> {
    run_renderer(source, properties).map(|mut rendered| rendered["files"].take())
}

/// Returns the names of the properties that the job's templates read when they are
/// rendered with these properties.
pub fn read_properties(source: &Path, properties: &Value) -> Result<BTreeSet<String>, String> {
    let rendered = run_renderer(source, properties)?;
    Ok(rendered["asked"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn run_renderer(source: &Path, properties: &Value) -> Result<Value, String> {
    let mut ruby = Command::new("ruby");
    ruby.arg(dist::root().join("xtask/render.rb")).arg(source);
    ruby.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = ruby.spawn().unwrap_or_else(|error| panic!("ruby: {error}; `cargo xtask test` installs it"));
    let mut stdin = child.stdin.take().unwrap_or_else(|| panic!("ruby has no stdin"));
    let _ = stdin.write_all(properties.to_string().as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("ruby: {error}"));
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("render.rb: {error}")))
}

/// Parses a YAML file of a release with Ruby, whose standard library can do this.
pub fn yaml(file: &Path) -> Value {
    let mut ruby = Command::new("ruby");
    ruby.args(["-ryaml", "-rjson", "-e", "puts JSON.generate(YAML.safe_load(File.read(ARGV[0])))"]).arg(file);
    let output = ruby.output().unwrap_or_else(|error| panic!("ruby: {error}; `cargo xtask test` installs it"));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}: {stderr}", file.display()))
}

/// A directory with `jobs`, `packages` and `data`, like `/var/vcap`.
pub struct Installation {
    root: PathBuf,
}

impl Installation {
    /// Creates an installation with the release's own packages, as their scripts
    /// install them.
    pub fn new(root: &Path) -> Installation {
        let installation = Installation { root: root.to_owned() };
        installation.package("wasm-cpi", &[("wasm-cpi", &dist::tool()), ("wasm-cpi-run", &dist::hot())]);
        let preset = |file: &str| dist::root().join("guests").join(file);
        let guests = [
            ("probe.wasm", dist::probe()),
            ("openstack.wasm", dist::openstack()),
            ("openstack.json", preset("openstack/policy.json")),
            ("aws.wasm", dist::aws()),
            ("aws.json", preset("aws/policy.json")),
            ("aws-instance-profile.json", preset("aws/policy-instance-profile.json")),
            ("aws-assumed-role.json", preset("aws/policy-assumed-role.json")),
            ("aws-ec2-endpoint.json", preset("aws/policy-ec2-endpoint.json")),
            ("aws-elb-endpoint.json", preset("aws/policy-elb-endpoint.json")),
            ("aws-ebs-endpoint.json", preset("aws/policy-ebs-endpoint.json")),
        ];
        installation.package("wasm-cpi-guests", &guests.each_ref().map(|(name, path)| (*name, path.as_path())));
        for guest in ["probe.wasm", "openstack.wasm", "aws.wasm"] {
            let file = installation.path("packages/wasm-cpi-guests").join(guest);
            let pin = format!("{}  {guest}\n", dist::sha256_of(&file));
            job::write(&file.with_extension("wasm.sha256"), pin.as_bytes());
        }
        installation
    }

    /// Returns an existing installation.
    pub fn at(root: &Path) -> Installation {
        Installation { root: root.to_owned() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Installs a package with these files, each with its name in the package.
    pub fn package(&self, name: &str, files: &[(&str, &Path)]) {
        let directory = self.path("packages").join(name);
        make(&directory);
        for (name, file) in files {
            symlink(file, directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    /// Renders and installs a job, with the file modes that an agent sets.
    pub fn job(&self, source: &Path, properties: &Value) -> Result<(), String> {
        let files = render(source, properties)?;
        let name = source.file_name().unwrap_or_default();
        for (path, text) in files.as_object().into_iter().flatten() {
            let to = self.path("jobs").join(name).join(path);
            make(to.parent().unwrap_or(&to));
            // Replaces the file instead of writing into it: another test may be executing it.
            let _ = fs::remove_file(&to);
            job::write(&to, text.as_str().unwrap_or_default().as_bytes());
            job::set_mode(&to, if path.starts_with("bin/") { 0o750 } else { 0o640 });
        }
        Ok(())
    }
}

fn make(directory: &Path) {
    fs::create_dir_all(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
}

/// Returns the manifest properties that are equivalent to a job's files.
pub fn manifest(config: &Value, policy: &Value, guest: &Value) -> Value {
    let mut properties = json!({"guest": guest, "policy": policy, "properties": config["properties"]});
    for key in ["limits", "hardening", "leaks", "allow_local", "cache", "image_dirs", "debug", "audit", "log"] {
        if let Some(value) = config.get(key) {
            properties[key] = value.clone();
        }
    }
    let agent = &config["agent"];
    properties["agent"] = json!({"mbus": agent["mbus"], "blobstore": agent["blobstore"]});
    properties["ntp"] = agent["ntp"].clone();
    if let Some(registry) = config.get("registry") {
        properties["registry"] = json!({
            "endpoint": registry["endpoint"], "username": registry["user"], "password": registry["password"],
            "ca": registry["ca"], "agent_endpoint": registry["agent_endpoint"],
        });
    }
    properties
}
