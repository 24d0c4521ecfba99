//! Real OpenStack on the loopback interface: Keystone, Glance, Placement, Nova,
//! Neutron and Cinder, with a database and a message bus of their own.
//!
//! Upstream's code in the versions of `tests/openstack/requirements.lock`. What is
//! not real: Nova's fake hypervisor starts nothing, and two small drivers in
//! `tests/openstack/plugins` stand in for networks and storage. State and secrets are
//! new with each cloud; the Python environment and the empty schemas are kept.

mod bus;
mod database;
mod guard;
mod packages;
mod services;
mod settings;

pub(crate) use guard::Guard;

use super::processes::Processes;
use super::step::{say, step};
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

/// In what outlives a cloud: what it was made for.
const STAMP: &str = "made-for";

/// Where everything is.
struct Lab {
    /// What the repository says about the cloud.
    data: PathBuf,
    home: PathBuf,
    state: PathBuf,
    venv: PathBuf,
    processes: Processes,
}

/// Starts it, unless it is up and well; returns the path of `cloud.json`.
pub(crate) fn up(repo: &Repo) -> Result<PathBuf> {
    let begun = Instant::now();
    let lab = Lab::new(repo)?;
    let lock = lab.lock()?;
    let cloud = lab.home.join("cloud.json");
    let digest = lab.digest()?;
    if cloud.exists() {
        match lab.check(&digest) {
            Ok(()) => {
                say(begun, "it is up already, and well");
                return Ok(cloud);
            }
            Err(why) => say(begun, &format!("the cloud that is up is started anew: {why:#}")),
        }
    }
    lab.clean()?;
    step("Debian's packages", || packages::debian(&lab))?;
    step("Python's packages", || packages::python(&lab))?;
    let guard = Guard::new(repo, Some(&lock))?;
    let started = lab.start(&cloud, &digest);
    if started.is_err() {
        // The logs stay, for a look.
        lab.processes.stop()?;
    }
    guard.dismiss()?;
    started?;
    say(begun, "in all");
    Ok(cloud)
}

/// Whether it is up and well.
pub(crate) fn is_up(repo: &Repo) -> Result<bool> {
    let lab = Lab::new(repo)?;
    let _lock = lab.lock()?;
    Ok(lab.home.join(super::FILE).exists() && lab.check(&lab.digest()?).is_ok())
}

/// Has it taken down when this process ends, unless the guard is dismissed before.
pub(crate) fn guard(repo: &Repo) -> Result<Guard> {
    Guard::new(repo, None)
}

/// Ends it and removes all but what makes the next start fast.
pub(crate) fn down(repo: &Repo) -> Result<()> {
    let lab = Lab::new(repo)?;
    let _lock = lab.lock()?;
    step("stopped and removed", || lab.clean())
}

impl Lab {
    fn new(repo: &Repo) -> Result<Lab> {
        // The owner of our own entry in /proc is who we are: std has no other way to ask.
        if fs::metadata("/proc/self").is_ok_and(|own| own.uid() != 0) {
            bail!("OpenStack's services run as root here: run this as root");
        }
        let data = repo.root.join("tests/openstack");
        let home = super::home(repo, "openstack");
        files::directory(&home, 0o700)?;
        let home = fs::canonicalize(&home)?;
        let venv = home.join("venv");
        let processes = Processes::new(&home, &[&data.join("bin"), &venv.join("bin")]);
        Ok(Lab { data, state: home.join("state"), venv, home, processes })
    }

    /// One at a time; a second waits.
    fn lock(&self) -> Result<File> {
        let file = File::create(self.home.join("lock"))?;
        if env::var_os(guard::LOCKED).is_some() {
            return Ok(file);
        }
        file.lock().context("the lock cannot be taken")?;
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
        step("keystone", || services::start_keystone(self, &settings))?;
        step("message bus", || bus::wait(&mut bus, &settings))?;
        step("placement, neutron, glance, cinder, nova", || services::start_others(self, &settings))?;
        let text =
            step("a compute host, flavors, networks, a user's credentials", || services::resources(self, &settings))?;
        services::check(self, settings.ports)?;
        files::write(cloud, &text, 0o600)
    }

    fn check(&self, digest: &str) -> Result<()> {
        let made_from = fs::read_to_string(self.state.join("digest")).unwrap_or_default();
        if made_from != digest {
            bail!("tests/openstack has changed since");
        }
        services::check(self, Ports::read(&self.state.join("ports")).context("its ports are not known")?)
    }

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

    /// Of everything that the cloud is made from.
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

    /// Whether that directory was made here, with the versions that are wanted now.
    fn is_current(&self, directory: &Path) -> Result<bool> {
        let wanted = self.wanted()?;
        Ok(fs::read_to_string(directory.join(STAMP)).is_ok_and(|made_for| made_for == wanted))
    }

    /// Says so.
    fn stamp(&self, directory: &Path) -> Result<()> {
        files::write(&directory.join(STAMP), &self.wanted()?, 0o644)
    }

    /// The place counts, too: programs of an environment that was moved are those of the old one.
    fn wanted(&self) -> Result<String> {
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
    fn what_was_made_serves_only_here_and_only_these_versions() {
        let dir = tempfile::tempdir().unwrap();
        let mut lab = lab(dir.path());
        fs::create_dir(&lab.venv).unwrap();
        assert!(!lab.is_current(&lab.venv).unwrap(), "made half");
        lab.stamp(&lab.venv).unwrap();
        assert!(lab.is_current(&lab.venv).unwrap());
        lab.home = dir.path().join("elsewhere");
        assert!(!lab.is_current(&lab.venv).unwrap());
        lab.home = dir.path().to_path_buf();
        fs::write(lab.data.join("requirements.lock"), "nova==32.0.0\n").unwrap();
        assert!(!lab.is_current(&lab.venv).unwrap());
    }

    #[test]
    fn a_change_of_any_file_that_the_cloud_is_made_from_is_noticed() {
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
    fn what_makes_the_next_start_fast_is_kept_and_all_else_removed() {
        let dir = tempfile::tempdir().unwrap();
        let lab = lab(dir.path());
        for kept_or_not in ["venv", "schemas", "rabbitmq", "state/etc", "log", "pids"] {
            fs::create_dir_all(lab.home.join(kept_or_not)).unwrap();
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
