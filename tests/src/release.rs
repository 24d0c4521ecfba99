//! The BOSH release on this machine: its jobs rendered with Ruby's ERB, and laid
//! out as a Director's agent or the CLI does it, below any directory.

use crate::{dist, job};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A job of the release, as it is in the repository.
pub fn job_source(name: &str) -> PathBuf {
    dist::root().join("release/jobs").join(name)
}

/// What a manifest with these properties makes of a job: its files by their paths, or what is told instead.
pub fn render(source: &Path, properties: &Value) -> Result<Value, String> {
    rendering(source, properties).map(|mut rendered| rendered["files"].take())
}

/// The properties that the job's templates ask for, given these.
pub fn asked(source: &Path, properties: &Value) -> Result<BTreeSet<String>, String> {
    let rendered = rendering(source, properties)?;
    Ok(rendered["asked"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn rendering(source: &Path, properties: &Value) -> Result<Value, String> {
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

/// A file of a release, read by Ruby, which has YAML.
pub fn yaml(file: &Path) -> Value {
    let mut ruby = Command::new("ruby");
    ruby.args(["-ryaml", "-rjson", "-e", "puts JSON.generate(YAML.safe_load(File.read(ARGV[0])))"]).arg(file);
    let output = ruby.output().unwrap_or_else(|error| panic!("ruby: {error}; `cargo xtask test` installs it"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}: {said}", file.display()))
}

/// A directory with `jobs`, `packages` and `data`, like `/var/vcap`.
pub struct Installation {
    root: PathBuf,
}

impl Installation {
    /// With the release's own packages, as their scripts would install them.
    pub fn new(root: &Path) -> Installation {
        let installation = Installation { root: root.to_owned() };
        installation.package("wasm-cpi", &[("wasm-cpi", &dist::tool()), ("wasm-cpi-run", &dist::hot())]);
        let preset = dist::root().join("guests/openstack/policy.json");
        let guests = [("probe.wasm", dist::probe()), ("openstack.wasm", dist::openstack()), ("openstack.json", preset)];
        installation.package("wasm-cpi-guests", &guests.each_ref().map(|(name, path)| (*name, path.as_path())));
        for guest in ["probe.wasm", "openstack.wasm"] {
            let file = installation.path("packages/wasm-cpi-guests").join(guest);
            let pin = format!("{}  {guest}\n", dist::sha256_of(&file));
            job::write(&file.with_extension("wasm.sha256"), pin.as_bytes());
        }
        installation
    }

    /// One that is there.
    pub fn at(root: &Path) -> Installation {
        Installation { root: root.to_owned() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Files by their names in the package.
    pub fn package(&self, name: &str, files: &[(&str, &Path)]) {
        let directory = self.path("packages").join(name);
        make(&directory);
        for (name, file) in files {
            symlink(file, directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }

    /// Renders and installs a job, with the modes that an agent gives its files.
    pub fn job(&self, source: &Path, properties: &Value) -> Result<(), String> {
        let files = render(source, properties)?;
        let name = source.file_name().unwrap_or_default();
        for (path, text) in files.as_object().into_iter().flatten() {
            let to = self.path("jobs").join(name).join(path);
            make(to.parent().unwrap_or(&to));
            // A script that is written anew is not written to: another test may be starting it.
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

/// The manifest that says what a job's own files say.
pub fn manifest(config: &Value, policy: &Value, guest: &Value) -> Value {
    let mut properties = json!({"guest": guest, "policy": policy, "properties": config["properties"]});
    for key in ["limits", "hardening", "allow_local", "cache", "image_dirs", "debug", "audit", "log"] {
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
