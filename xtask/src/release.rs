//! `cargo xtask release`: writes the BOSH release as a tarball for Directors and the
//! `bosh` CLI.
//!
//! The directory of the release contains jobs and packages. Their content is built here
//! and copied to `blobs`, so that `bosh create-release --force` works, too. The same input
//! gives the same bytes: even a dev version is derived from the content.

mod archive;
pub(crate) mod render;

use crate::arguments::Release;
use crate::build::{self, GUESTS, HOT, TOOL};
use crate::command;
use crate::files;
use crate::repo::Repo;
use crate::steps::Steps;
use anyhow::{Context, Result, bail};
use archive::FingerprintedFile;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const NAME: &str = "wasm-cpi";

/// The names of the packages and of the directories of their blobs.
const PROGRAMS_PACKAGE: &str = "wasm-cpi";
const GUESTS_PACKAGE: &str = "wasm-cpi-guests";

pub(crate) fn run(repo: &Repo, release: &Release) -> Result<()> {
    let mut steps = Steps::new();
    if !release.no_build {
        build::build_everything(repo, &mut steps)?;
    }
    steps.need("install ruby", render::setup)?;
    let blobs = repo.release().join("blobs");
    steps.need("fill the blobs of the release", || fill_blobs(repo, &blobs))?;
    let written = steps.need("write the release", || {
        let out = release.out.clone().unwrap_or_else(|| repo.root.join("target/bosh"));
        write(repo, &blobs, release.version.as_deref(), &out)
    })?;
    println!("{}", written.file.display());
    eprintln!("\nAdd these lines to a manifest:\nreleases:\n- name: {NAME}\n  version: {}", written.version);
    eprintln!("  url: file://{}\n  sha1: {}", written.file.display(), written.digest);
    eprintln!("Or let the CLI create the release: cd {} && bosh create-release --force", repo.release().display());
    Ok(())
}

/// Writes the programs, the guests with their pins and presets, and the CLI's index of them.
fn fill_blobs(repo: &Repo, blobs: &Path) -> Result<()> {
    if blobs.exists() {
        fs::remove_dir_all(blobs).with_context(|| format!("{} cannot be removed", blobs.display()))?;
    }
    for package in [PROGRAMS_PACKAGE, GUESTS_PACKAGE] {
        files::directory(&blobs.join(package), 0o755)?;
    }
    for program in [HOT, TOOL] {
        files::copy(&repo.dist().join(program), &blobs.join(PROGRAMS_PACKAGE).join(program), 0o755)?;
    }
    files::copy(&repo.root.join("LICENSE"), &blobs.join(PROGRAMS_PACKAGE).join("LICENSE"), 0o644)?;
    for guest in GUESTS {
        let file = format!("{guest}.wasm");
        let to = blobs.join(GUESTS_PACKAGE).join(&file);
        files::copy(&repo.dist().join(&file), &to, 0o644)?;
        let pin = format!("{}  {file}\n", files::sha256(&fs::read(&to)?));
        files::write(&to.with_extension("wasm.sha256"), &pin, 0o644)?;
        for (preset, name) in presets(&repo.guests().join(guest), guest)? {
            files::copy(&preset, &blobs.join(GUESTS_PACKAGE).join(name), 0o644)?;
        }
    }
    write_index(blobs, &repo.release().join("config/blobs.yml"))
}

/// Returns the presets of a guest, with their names in the package: `policy.json` becomes
/// `GUEST.json`, `policy-x.json` becomes `GUEST-x.json`.
pub(crate) fn presets(directory: &Path, guest: &str) -> Result<Vec<(PathBuf, String)>> {
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

/// Writes the CLI's index. The entries have no `object_id`: the blobs are not in a blobstore, and
/// the CLI uses local blobs that are listed.
fn write_index(blobs: &Path, to: &Path) -> Result<()> {
    let mut text = String::new();
    for (path, content) in contents(blobs)? {
        let size = content.len();
        writeln!(text, "{path}:\n  size: {size}\n  sha: sha256:{}", files::sha256(&content))?;
    }
    files::write(to, &text, 0o644)
}

/// The written tarball.
struct Tarball {
    file: PathBuf,
    version: String,
    digest: String,
}

fn write(repo: &Repo, blobs: &Path, version: Option<&str>, out: &Path) -> Result<Tarball> {
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
        // Every content has its own version, because a Director accepts each version only once.
        None => format!("{}+dev.{}", env!("CARGO_PKG_VERSION"), &content[..12]),
    };
    let tarball = stage.join("release");
    files::write(&tarball.join("release.MF"), &manifest(&version, &content, &jobs, &packages)?, 0o644)?;
    let file = out.join(format!("{NAME}-{version}.tgz"));
    archive::pack(&tarball, &file)?;
    fs::remove_dir_all(&stage)?;
    let digest = archive::digest(&file)?;
    Ok(Tarball { file, version, digest })
}

/// A job or a package, as an entry of `release.MF`.
struct Item {
    name: String,
    fingerprint: String,
    digest: String,
    /// The packages of a job.
    packages: Vec<String>,
}

fn package(directory: &Path, spec: &Value, blobs: &Path, stage: &Path) -> Result<Item> {
    let name = name(directory, spec)?;
    if !names(spec, "dependencies").is_empty() {
        bail!("the package {name} has dependencies, which its fingerprint does not cover; remove them from its spec");
    }
    let staged = stage.join("packages").join(&name);
    let packaging = fs::read(directory.join("packaging"))?;
    files::directory(&staged, 0o755)?;
    files::copy(&directory.join("packaging"), &staged.join("packaging"), 0o644)?;
    let all = contents(blobs)?;
    let mut fingerprinted = vec![FingerprintedFile { path: "packaging", content: &packaging, executable: None }];
    for pattern in names(spec, "files") {
        let prefix = pattern.strip_suffix('*');
        let matching = all.iter().filter(|(path, _)| match prefix {
            Some(prefix) => path.starts_with(prefix),
            None => **path == pattern,
        });
        let before = fingerprinted.len();
        for (path, content) in matching {
            let executable = is_executable(&blobs.join(path))?;
            let to = staged.join(path);
            files::directory(to.parent().context("the path of a blob has no directory")?, 0o755)?;
            files::copy(&blobs.join(path), &to, if executable { 0o755 } else { 0o644 })?;
            fingerprinted.push(FingerprintedFile { path, content, executable: Some(executable) });
        }
        if fingerprinted.len() == before {
            bail!("the package {name} lists `{pattern}`, and no blob matches it; correct its spec");
        }
    }
    let fingerprint = archive::fingerprint(&mut fingerprinted);
    pack_item(name, fingerprint, Vec::new(), &staged, &stage.join("release/packages"))
}

fn job(directory: &Path, spec: &Value, stage: &Path) -> Result<Item> {
    let name = name(directory, spec)?;
    let staged = stage.join("jobs").join(&name);
    let templates = spec["templates"].as_object();
    let templates = templates.with_context(|| format!("the spec of the job {name} has no `templates`"))?;
    let mut wanted = vec![("spec".to_owned(), "job.MF".to_owned()), ("monit".to_owned(), "monit".to_owned())];
    wanted.extend(templates.keys().map(|file| (format!("templates/{file}"), format!("templates/{file}"))));
    let mut read = Vec::new();
    for (from, to) in wanted {
        let (from, staged) = (directory.join(from), staged.join(&to));
        let executable = is_executable(&from)?;
        files::directory(staged.parent().context("the path of a template has no directory")?, 0o755)?;
        files::copy(&from, &staged, if executable { 0o755 } else { 0o644 })?;
        read.push((to, fs::read(&from)?, executable));
    }
    let mut fingerprinted: Vec<FingerprintedFile<'_>> = read
        .iter()
        .map(|(path, content, executable)| FingerprintedFile { path, content, executable: Some(*executable) })
        .collect();
    let fingerprint = archive::fingerprint(&mut fingerprinted);
    pack_item(name, fingerprint, names(spec, "packages"), &staged, &stage.join("release/jobs"))
}

fn pack_item(name: String, fingerprint: String, packages: Vec<String>, staged: &Path, to: &Path) -> Result<Item> {
    files::directory(to, 0o755)?;
    let file = to.join(format!("{name}.tgz"));
    archive::pack(staged, &file)?;
    Ok(Item { name, fingerprint, digest: archive::digest(&file)?, packages })
}

/// Returns the text of `release.MF`. It is formatted here, because names, hex digits and versions
/// need no escapes, and the order of the keys is fixed.
///
/// A Director rejects a version that it already has if `commit_hash` or
/// `uncommitted_changes` differ. So both depend only on the content: a commit that does
/// not change the release must not change this file.
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

/// Returns the digest of all fingerprints in the release, in hex.
fn content<'a>(items: impl Iterator<Item = &'a Item>) -> String {
    let all: String = items.map(|item| item.fingerprint.as_str()).collect();
    files::sha256(all.as_bytes())
}

/// Reads the specs of all jobs and packages with Ruby, which has a YAML parser.
fn specs(release: &Path) -> Result<BTreeMap<String, BTreeMap<String, Value>>> {
    let script = "require 'yaml'; require 'json'\n\
        puts JSON.generate(%w[jobs packages].to_h { |kind|\n\
          [kind, Dir.children(kind).sort.to_h { |name| [name, YAML.safe_load(File.read(File.join(kind, name, 'spec')))] }] })";
    let read = command::read(command::new("ruby").current_dir(release).args(["-e", script]))?;
    serde_json::from_str(&read).with_context(|| format!("a spec in {} is not a YAML hash", release.display()))
}

/// Returns the name of the job or package in this directory.
fn name(directory: &Path, spec: &Value) -> Result<String> {
    let name = spec["name"].as_str().map(str::to_owned);
    name.with_context(|| format!("{} has no `name`; add one", directory.join("spec").display()))
}

fn names(spec: &Value, key: &str) -> Vec<String> {
    let list = spec[key].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Reads every file below the directory, by its relative path.
fn contents(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for package in fs::read_dir(directory).with_context(|| format!("{} cannot be read", directory.display()))? {
        let package = package?.path();
        for file in fs::read_dir(&package)? {
            let file = file?.path();
            let name = file
                .strip_prefix(directory)?
                .to_str()
                .with_context(|| format!("the file name {} is not UTF-8", file.display()))?
                .to_owned();
            found.insert(name, fs::read(&file)?);
        }
    }
    Ok(found)
}

fn is_executable(file: &Path) -> Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = fs::metadata(file).with_context(|| format!("{} cannot be read", file.display()))?;
    Ok(metadata.permissions().mode() & 0o111 != 0)
}
