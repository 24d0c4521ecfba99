//! `cargo xtask release`: the BOSH release, as a tarball that Directors and the
//! `bosh` CLI read.
//!
//! The release's directory has jobs and packages; what those consist of is built
//! here and laid into its `blobs`, so that `bosh create-release --force` works on
//! it as well. The same input makes the same bytes: even a dev version is told by
//! the content.

mod archive;
pub(crate) mod render;

use crate::arguments::Release;
use crate::build::{self, GUESTS, HOT, TOOL};
use crate::command;
use crate::files;
use crate::repo::Repo;
use crate::steps::Steps;
use anyhow::{Context, Result, bail};
use archive::Print;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const NAME: &str = "wasm-cpi";

/// The packages, and so the directories of their blobs.
const PROGRAMS: &str = "wasm-cpi";
const MODULES: &str = "wasm-cpi-guests";

pub(crate) fn run(repo: &Repo, release: &Release) -> Result<()> {
    let mut steps = Steps::new();
    if !release.no_build {
        build::everything(repo, &mut steps)?;
    }
    steps.need("set up ruby", render::setup)?;
    let blobs = repo.release().join("blobs");
    steps.need("fill the release's blobs", || fill(repo, &blobs))?;
    let built = steps.need("write the release", || {
        let out = release.out.clone().unwrap_or_else(|| repo.root.join("target/bosh"));
        write(repo, &blobs, release.version.as_deref(), &out)
    })?;
    println!("{}", built.file.display());
    eprintln!("\nFor a manifest:\nreleases:\n- name: {NAME}\n  version: {}", built.version);
    eprintln!("  url: file://{}\n  sha1: {}", built.file.display(), built.digest);
    eprintln!("Or by the CLI itself: cd {} && bosh create-release --force", repo.release().display());
    Ok(())
}

/// Programs, modules with their pins, and presets; and the CLI's index of them.
fn fill(repo: &Repo, blobs: &Path) -> Result<()> {
    if blobs.exists() {
        fs::remove_dir_all(blobs).with_context(|| format!("{} could not be emptied", blobs.display()))?;
    }
    for package in [PROGRAMS, MODULES] {
        files::directory(&blobs.join(package), 0o755)?;
    }
    for program in [HOT, TOOL] {
        files::copy(&repo.dist().join(program), &blobs.join(PROGRAMS).join(program), 0o755)?;
    }
    files::copy(&repo.root.join("LICENSE"), &blobs.join(PROGRAMS).join("LICENSE"), 0o644)?;
    for guest in GUESTS {
        let file = format!("{guest}.wasm");
        let to = blobs.join(MODULES).join(&file);
        files::copy(&repo.dist().join(&file), &to, 0o644)?;
        let pin = format!("{}  {file}\n", files::sha256(&fs::read(&to)?));
        files::write(&to.with_extension("wasm.sha256"), &pin, 0o644)?;
        for (preset, name) in presets(&repo.guests().join(guest), guest)? {
            files::copy(&preset, &blobs.join(MODULES).join(name), 0o644)?;
        }
    }
    index(blobs, &repo.release().join("config/blobs.yml"))
}

/// `policy.json` is `GUEST.json` where it is used, `policy-x.json` is `GUEST-x.json`.
fn presets(directory: &Path, guest: &str) -> Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("{} cannot be read", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(rest) = name.strip_prefix("policy").filter(|rest| rest.ends_with(".json")) {
            found.push((path.clone(), format!("{guest}{rest}")));
        }
    }
    Ok(found)
}

/// Without `object_id`: they are in no blobstore, and the CLI keeps what it finds listed.
fn index(blobs: &Path, to: &Path) -> Result<()> {
    let mut text = String::new();
    for (path, content) in contents(blobs)? {
        let size = content.len();
        writeln!(text, "{path}:\n  size: {size}\n  sha: sha256:{}", files::sha256(&content))?;
    }
    files::write(to, &text, 0o644)
}

struct Built {
    file: PathBuf,
    version: String,
    digest: String,
}

fn write(repo: &Repo, blobs: &Path, version: Option<&str>, out: &Path) -> Result<Built> {
    let release = repo.release();
    let specs = specs(&release)?;
    files::directory(out, 0o755)?;
    let stage = out.join(format!(".stage-{}", std::process::id()));
    let mut packages = Vec::new();
    for (directory, spec) in &specs["packages"] {
        packages.push(package(&release.join("packages").join(directory), spec, blobs, &stage)?);
    }
    let mut jobs = Vec::new();
    for (directory, spec) in &specs["jobs"] {
        jobs.push(job(&release.join("jobs").join(directory), spec, &stage)?);
    }
    let content = content(jobs.iter().chain(&packages));
    let version = match version {
        Some(version) => version.to_owned(),
        // Another for every content, as Directors take each version once.
        None => format!("{}+dev.{}", env!("CARGO_PKG_VERSION"), &content[..12]),
    };
    let tarball = stage.join("release");
    files::write(&tarball.join("release.MF"), &manifest(&version, &content, &jobs, &packages)?, 0o644)?;
    let file = out.join(format!("{NAME}-{version}.tgz"));
    archive::pack(&tarball, &file)?;
    fs::remove_dir_all(&stage)?;
    let digest = archive::digest(&file)?;
    Ok(Built { file, version, digest })
}

/// One of release.MF's lists.
struct Item {
    name: String,
    fingerprint: String,
    digest: String,
    /// The packages of a job.
    packages: Vec<String>,
}

fn package(directory: &Path, spec: &Value, blobs: &Path, stage: &Path) -> Result<Item> {
    let name = text(spec, "name")?;
    if !names(spec, "dependencies").is_empty() {
        bail!("package {name} has dependencies, which its fingerprint would need");
    }
    let staged = stage.join("packages").join(&name);
    let packaging = fs::read(directory.join("packaging"))?;
    files::directory(&staged, 0o755)?;
    files::copy(&directory.join("packaging"), &staged.join("packaging"), 0o644)?;
    let all = contents(blobs)?;
    let mut prints = vec![Print { path: "packaging", content: &packaging, executable: None }];
    for pattern in names(spec, "files") {
        let prefix = pattern.strip_suffix('*');
        let matching = all.iter().filter(|(path, _)| match prefix {
            Some(prefix) => path.starts_with(prefix),
            None => **path == pattern,
        });
        let before = prints.len();
        for (path, content) in matching {
            let executable = is_executable(&blobs.join(path))?;
            let to = staged.join(path);
            files::directory(to.parent().context("a blob has no directory")?, 0o755)?;
            files::copy(&blobs.join(path), &to, if executable { 0o755 } else { 0o644 })?;
            prints.push(Print { path, content, executable: Some(executable) });
        }
        if prints.len() == before {
            bail!("package {name}: no blob is `{pattern}`");
        }
    }
    let fingerprint = archive::fingerprint(&mut prints);
    packed(name, fingerprint, Vec::new(), &staged, &stage.join("release/packages"))
}

fn job(directory: &Path, spec: &Value, stage: &Path) -> Result<Item> {
    let name = text(spec, "name")?;
    let staged = stage.join("jobs").join(&name);
    let templates = spec["templates"].as_object().context("a job has no templates")?;
    let mut wanted = vec![("spec".to_owned(), "job.MF".to_owned()), ("monit".to_owned(), "monit".to_owned())];
    wanted.extend(templates.keys().map(|file| (format!("templates/{file}"), format!("templates/{file}"))));
    let mut read = Vec::new();
    for (from, to) in wanted {
        let (from, staged) = (directory.join(from), staged.join(&to));
        let executable = is_executable(&from)?;
        files::directory(staged.parent().context("a template has no directory")?, 0o755)?;
        files::copy(&from, &staged, if executable { 0o755 } else { 0o644 })?;
        read.push((to, fs::read(&from)?, executable));
    }
    let prints = read.iter().map(|(path, content, executable)| Print { path, content, executable: Some(*executable) });
    let fingerprint = archive::fingerprint(&mut prints.collect::<Vec<_>>());
    packed(name, fingerprint, names(spec, "packages"), &staged, &stage.join("release/jobs"))
}

fn packed(name: String, fingerprint: String, packages: Vec<String>, staged: &Path, to: &Path) -> Result<Item> {
    files::directory(to, 0o755)?;
    let file = to.join(format!("{name}.tgz"));
    archive::pack(staged, &file)?;
    Ok(Item { name, fingerprint, digest: archive::digest(&file)?, packages })
}

/// Written by hand: names, hex and versions need no quotes, and order is ours.
///
/// A Director refuses a version it has if it comes with another `commit_hash` or
/// `uncommitted_changes`. So both are told by the content: a commit that changes
/// nothing in the release must change nothing here.
fn manifest(version: &str, content: &str, jobs: &[Item], packages: &[Item]) -> Result<String> {
    let commit = &content[..10];
    let mut text =
        format!("name: {NAME}\nversion: \"{version}\"\ncommit_hash: \"{commit}\"\nuncommitted_changes: false\n");
    for (list, items, others) in [("jobs", jobs, "packages"), ("packages", packages, "dependencies")] {
        writeln!(text, "{list}:")?;
        for item in items {
            let Item { name, fingerprint, digest, packages } = item;
            writeln!(text, "- name: {name}\n  version: \"{fingerprint}\"\n  fingerprint: \"{fingerprint}\"")?;
            writeln!(text, "  sha1: \"{digest}\"\n  {others}: [{}]", packages.join(", "))?;
        }
    }
    Ok(text)
}

/// The fingerprint of all that is in the release, in hex.
fn content<'a>(items: impl Iterator<Item = &'a Item>) -> String {
    let all: String = items.map(|item| item.fingerprint.as_str()).collect();
    files::sha256(all.as_bytes())
}

/// The specs of all jobs and packages, read by Ruby, which has YAML.
fn specs(release: &Path) -> Result<BTreeMap<String, BTreeMap<String, Value>>> {
    let script = "require 'yaml'; require 'json'\n\
        puts JSON.generate(%w[jobs packages].to_h { |kind|\n\
          [kind, Dir.children(kind).sort.to_h { |name| [name, YAML.safe_load(File.read(File.join(kind, name, 'spec')))] }] })";
    let read = command::read(command::new("ruby").current_dir(release).args(["-e", script]))?;
    serde_json::from_str(&read).context("the release's specs are not what they should be")
}

fn text(spec: &Value, key: &str) -> Result<String> {
    spec[key].as_str().map(str::to_owned).with_context(|| format!("a spec has no `{key}`"))
}

fn names(spec: &Value, key: &str) -> Vec<String> {
    let list = spec[key].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Every file below the directory, by its path in it.
fn contents(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for package in fs::read_dir(directory).with_context(|| format!("{} cannot be read", directory.display()))? {
        let package = package?.path();
        for file in fs::read_dir(&package)? {
            let file = file?.path();
            let name = file.strip_prefix(directory)?.to_str().context("a blob's name is not UTF-8")?.to_owned();
            found.insert(name, fs::read(&file)?);
        }
    }
    Ok(found)
}

fn is_executable(file: &Path) -> Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = fs::metadata(file).with_context(|| format!("{} is not there", file.display()))?;
    Ok(metadata.permissions().mode() & 0o111 != 0)
}
