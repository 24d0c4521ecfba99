//! Real OpenStack on the loopback interface: Keystone, Glance, Placement, Nova,
//! Neutron and Cinder, with a database and a message bus of their own.
//!
//! The services are upstream's code, in the versions of `tests/openstack/requirements.lock`.
//! Three parts are not real: Nova's fake hypervisor starts nothing, and two small drivers
//! in `tests/openstack/plugins` replace networks and storage. Each start creates new state
//! and new secrets; the Python environment and the empty database schemas are reused.

mod bus;
mod database;
mod guard;
mod packages;
mod services;
mod settings;

pub(crate) use guard::Guard;

use super::processes::Processes;
use super::step::{report, step};
use crate::files;
use crate::repo::Repo;
use anyhow::{Context, Result, bail};
use settings::{Ports, Settings};
use sha2::{Digest, Sha256};
use std::env;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The variable that names the `cloud.json` of this cloud for tests and benchmarks.
pub(crate) const VARIABLE: &str = "WASM_CPI_OPENSTACK";

/// The file in a reused directory that names the versions and the place it was made for.
const STAMP: &str = "made-for";

/// The directories and processes of the cloud.
struct Lab {
    /// Versions, settings, scripts and drivers, which are part of the repository.
    data: PathBuf,
    home: PathBuf,
    state: PathBuf,
    venv: PathBuf,
    processes: Processes,
}

/// Starts the cloud, unless it is up and healthy; returns the path of `cloud.json`.
pub(crate) fn up(repo: &Repo) -> Result<PathBuf> {
    let start = Instant::now();
    let lab = Lab::new(repo)?;
    let lock = lab.lock()?;
    let cloud = lab.home.join("cloud.json");
    let digest = lab.digest()?;
    if cloud.exists() {
        match lab.check(&digest) {
            Ok(()) => {
                report(start, "the cloud is already up");
                return Ok(cloud);
            }
            Err(why) => report(start, &format!("the running cloud is restarted: {why:#}")),
        }
    }
    lab.clean()?;
    step("install Debian packages", || packages::debian(&lab))?;
    step("install Python packages", || packages::python(&lab))?;
    let guard = Guard::new(repo, Some(&lock))?;
    let started = lab.start(&cloud, &digest);
    if started.is_err() {
        // The logs are not removed, so that the failure can be examined.
        lab.processes.stop()?;
    }
    guard.dismiss()?;
    started?;
    report(start, "total");
    Ok(cloud)
}

/// Returns true if the cloud is up and healthy.
pub(crate) fn is_up(repo: &Repo) -> Result<bool> {
    let lab = Lab::new(repo)?;
    let _lock = lab.lock()?;
    Ok(lab.home.join(super::FILE).exists() && lab.check(&lab.digest()?).is_ok())
}

/// Returns a guard that stops the cloud when this process ends, unless it is dismissed first.
pub(crate) fn guard(repo: &Repo) -> Result<Guard> {
    Guard::new(repo, None)
}

/// Stops the cloud and removes its state, except what makes the next start fast.
pub(crate) fn down(repo: &Repo) -> Result<()> {
    let lab = Lab::new(repo)?;
    let _lock = lab.lock()?;
    step("stop the cloud and remove its state", || lab.clean())
}

impl Lab {
    fn new(repo: &Repo) -> Result<Lab> {
        // The owner of /proc/self is the user of this process; std has no function for that.
        if fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0) {
            bail!("the services of OpenStack need root, and this process is not root; run the command as root");
        }
        let data = repo.root.join("tests/openstack");
        let home = super::home(repo, "openstack");
        files::directory(&home, 0o700)?;
        let home = fs::canonicalize(&home)?;
        let venv = home.join("venv");
        let processes = Processes::new(&home, &[&data.join("bin"), &venv.join("bin")]);
        Ok(Lab { data, state: home.join("state"), venv, home, processes })
    }

    /// Locks the cloud against other processes; waits until the lock is free.
    fn lock(&self) -> Result<File> {
        let file = File::create(self.home.join("lock"))?;
        if env::var_os(guard::LOCKED).is_some() {
            return Ok(file);
        }
        file.lock().with_context(|| format!("{} cannot be locked", self.home.join("lock").display()))?;
        Ok(file)
    }

    fn start(&self, cloud: &Path, digest: &str) -> Result<()> {
        let settings = Settings::new(Ports::free()?)?;
        files::directory(&self.state, 0o700)?;
        for directory in
            ["etc", "fernet", "credential", "lock", "images", "staging", "tasks", "conversion", "instances"]
        {
            files::directory(&self.state.join(directory), 0o700)?;
        }
        settings.fill(&self.data.join("etc"), &self.state.join("etc"), &self.state, &self.venv)?;
        settings.ports.write(&self.state.join("ports"))?;
        files::write(&self.state.join("digest"), digest, 0o600)?;
        let mut bus = bus::start(self, &settings)?;
        database::start(self, &settings)?;
        step("start keystone", || services::start_keystone(self, &settings))?;
        step("wait for the message bus", || bus::wait(&mut bus, &settings))?;
        step("start placement, neutron, glance, cinder, nova", || services::start_others(self, &settings))?;
        let text = step("wait for a compute host; create flavors, networks and users", || {
            services::create_resources(self, &settings)
        })?;
        services::check(self, settings.ports)?;
        files::write(cloud, &text, 0o600)
    }

    /// Returns an error if the running cloud is outdated or not healthy.
    fn check(&self, digest: &str) -> Result<()> {
        let digest_at_start = fs::read_to_string(self.state.join("digest")).unwrap_or_default();
        if digest_at_start != digest {
            bail!("tests/openstack has changed since the cloud was started");
        }
        let ports = self.state.join("ports");
        services::check(self, Ports::read(&ports).with_context(|| format!("{} holds no ports", ports.display()))?)
    }

    /// Stops all processes and removes the state of the cloud.
    fn clean(&self) -> Result<()> {
        self.processes.stop()?;
        for name in ["cloud.json", "state", "log", "pids"] {
            let path = self.home.join(name);
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("{} could not be removed", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the digest of all files in the repository that the cloud is made from.
    fn digest(&self) -> Result<String> {
        let mut hash = Sha256::new();
        let mut directories = vec![self.data.clone()];
        while let Some(directory) = directories.pop() {
            let mut entries: Vec<PathBuf> = fs::read_dir(&directory)
                .with_context(|| format!("{} cannot be read", directory.display()))?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<_, _>>()?;
            entries.retain(|path| !path.ends_with("__pycache__") && !path.ends_with("README.md"));
            entries.sort();
            for path in entries {
                hash.update(path.to_string_lossy().as_bytes());
                match path.is_dir() {
                    true => directories.push(path),
                    false => hash.update(fs::read(&path)?),
                }
            }
        }
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns true if the directory was made in this place and with the current versions.
    fn is_current(&self, directory: &Path) -> Result<bool> {
        let current = self.stamp_text()?;
        Ok(fs::read_to_string(directory.join(STAMP)).is_ok_and(|made_for| made_for == current))
    }

    /// Marks the directory as made in this place and with the current versions.
    fn stamp(&self, directory: &Path) -> Result<()> {
        files::write(&directory.join(STAMP), &self.stamp_text()?, 0o644)
    }

    /// The stamp names the place, because the programs of a Python environment that was moved
    /// still refer to the old place.
    fn stamp_text(&self) -> Result<String> {
        let lock = self.data.join("requirements.lock");
        let lock = fs::read_to_string(&lock).with_context(|| format!("{} cannot be read", lock.display()))?;
        Ok(format!("{}\n{lock}", self.home.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab(home: &Path) -> Lab {
        let data = home.join("data");
        fs::create_dir_all(data.join("etc")).unwrap();
        fs::write(data.join("requirements.lock"), "nova==31.0.0\n").unwrap();
        let processes = Processes::new(home, &[]);
        Lab { data, state: home.join("state"), venv: home.join("venv"), home: home.to_path_buf(), processes }
    }

    #[test]
    fn a_directory_is_current_only_in_its_place_and_with_its_versions() {
        let dir = tempfile::tempdir().unwrap();
        let mut lab = lab(dir.path());
        fs::create_dir(&lab.venv).unwrap();
        assert!(!lab.is_current(&lab.venv).unwrap(), "no stamp: the directory is not complete");
        lab.stamp(&lab.venv).unwrap();
        assert!(lab.is_current(&lab.venv).unwrap());
        lab.home = dir.path().join("elsewhere");
        assert!(!lab.is_current(&lab.venv).unwrap());
        lab.home = dir.path().to_path_buf();
        fs::write(lab.data.join("requirements.lock"), "nova==32.0.0\n").unwrap();
        assert!(!lab.is_current(&lab.venv).unwrap());
    }

    #[test]
    fn the_digest_changes_with_every_file_except_the_readme() {
        let dir = tempfile::tempdir().unwrap();
        let lab = lab(dir.path());
        let mut seen = vec![lab.digest().unwrap()];
        for (path, text) in [("etc/nova.conf", "a"), ("etc/nova.conf", "b"), ("etc/more.conf", "b")] {
            fs::write(lab.data.join(path), text).unwrap();
            let digest = lab.digest().unwrap();
            assert!(!seen.contains(&digest), "{path}: {text}");
            seen.push(digest);
        }
        fs::write(lab.data.join("README.md"), "text").unwrap();
        assert_eq!(seen.last(), Some(&lab.digest().unwrap()));
    }

    #[test]
    fn cleaning_keeps_only_what_makes_the_next_start_fast() {
        let dir = tempfile::tempdir().unwrap();
        let lab = lab(dir.path());
        for directory in ["venv", "schemas", "rabbitmq", "state/etc", "log", "pids"] {
            fs::create_dir_all(lab.home.join(directory)).unwrap();
        }
        fs::write(lab.home.join("cloud.json"), "{}").unwrap();
        for _ in ["once", "again"] {
            lab.clean().unwrap();
        }
        let mut left: Vec<_> = fs::read_dir(&lab.home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["data", "rabbitmq", "schemas", "venv"]);
    }
}
