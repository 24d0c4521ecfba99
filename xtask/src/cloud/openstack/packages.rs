//! Installs what the services need: Debian packages and a Python environment.
//!
//! Database and message bus come from Debian, but no system service is started for them:
//! of the database only the programs are installed, and the package of the bus is
//! unpacked, not installed. (Erlang's package has a systemd unit for its port mapper, which
//! systemd would start.) The rest comes from PyPI, in the versions of `requirements.lock`,
//! into a virtual environment that is reused by later clouds.

use super::Lab;
use crate::cloud::python;
use crate::command;
use crate::files;
use crate::setup;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;

const PACKAGES: [&str; 17] = [
    "mariadb-server-core",
    "mariadb-client-core",
    "qemu-utils",
    "python3-venv",
    // The dependencies of the message bus.
    "erlang-base",
    "erlang-crypto",
    "erlang-eldap",
    "erlang-inets",
    "erlang-mnesia",
    "erlang-os-mon",
    "erlang-parsetools",
    "erlang-public-key",
    "erlang-runtime-tools",
    "erlang-ssl",
    "erlang-syntax-tools",
    "erlang-tools",
    "erlang-xmerl",
];

const BUS: &str = "rabbitmq-server";

/// The versions of Python that the services run on.
const PYTHONS: [&str; 3] = ["3.10", "3.11", "3.12"];

/// How often a service looks for replies on the bus: the original and its replacement. With the
/// original, a server takes 8 s to start instead of 3.
const POLL: (&str, &str) = ("time.sleep(0.5)", "time.sleep(0.02)");

pub(super) fn debian(lab: &Lab) -> Result<()> {
    let _lock = setup::lock_packages();
    let missing: Vec<&str> = PACKAGES.into_iter().filter(|package| !setup::is_installed(package)).collect();
    let unpacked = lab.home.join("rabbitmq");
    if missing.is_empty() && unpacked.exists() {
        return Ok(());
    }
    apt(lab, &["update", "--quiet=2"])?;
    if !missing.is_empty() {
        let install = ["install", "--yes", "--quiet=2", "--no-install-recommends"];
        apt(lab, &[&install, missing.as_slice()].concat())?;
    }
    unpack(lab, &unpacked)
}

fn apt(lab: &Lab, arguments: &[&str]) -> Result<()> {
    let mut apt = command::new("apt-get");
    apt.args(["-o", "DPkg::Lock::Timeout=600"]).args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    let run = lab.processes.run("apt-get", &mut apt);
    run.with_context(|| format!("the cloud needs Debian 12 with the packages {} and {BUS}", PACKAGES.join(", ")))
}

/// Downloads the package of the message bus and extracts its files.
fn unpack(lab: &Lab, to: &Path) -> Result<()> {
    let download = lab.home.join("download");
    empty(&download)?;
    let mut apt = command::new("apt-get");
    // Root downloads it: apt's own download user cannot write to this directory.
    apt.args(["download", "--quiet=2", "-o", "APT::Sandbox::User=root", BUS]).current_dir(&download);
    lab.processes.run("apt-get", &mut apt)?;
    let package = fs::read_dir(&download)?.next().with_context(|| format!("apt-get did not download {BUS}"))??.path();
    let new = lab.home.join("rabbitmq.new");
    empty(&new)?;
    lab.processes.run("apt-get", command::new("dpkg").arg("--extract").arg(package).arg(&new))?;
    fs::rename(&new, to)?;
    Ok(fs::remove_dir_all(&download)?)
}

pub(super) fn python(lab: &Lab) -> Result<()> {
    if lab.is_current(&lab.venv)? {
        return Ok(());
    }
    let version = "import sys; print('%d.%d' % sys.version_info[:2])";
    let version = command::read(command::new(python::SYSTEM).args(["-c", version]))?;
    if !PYTHONS.contains(&version.as_str()) {
        bail!(
            "{} is Python {version}, and these versions of OpenStack need one of {}; use Debian 12",
            python::SYSTEM,
            PYTHONS.join(", ")
        );
    }
    let (installer, lock) = (lab.data.join("installer.lock"), lab.data.join("requirements.lock"));
    python::install(&lab.processes, &lab.venv, &installer, &lock)?;
    let driver = format!("lib/python{version}/site-packages/oslo_messaging/_drivers/amqpdriver.py");
    let driver = lab.venv.join(driver);
    let text = fs::read_to_string(&driver).with_context(|| format!("{} cannot be read", driver.display()))?;
    files::write(&driver, &text.replace(POLL.0, POLL.1), 0o644)?;
    lab.stamp(&lab.venv)
}

/// Creates the directory, and empties it if it exists.
fn empty(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    files::directory(directory, 0o755)
}
