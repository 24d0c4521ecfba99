//! What has to be on the machine first: Debian's packages and a Python environment.
//!
//! Database and message bus come from Debian, without their services: the
//! database's programs alone are installed, and the bus, whose package would start
//! one, is only unpacked. (Erlang's package has a unit for its port mapper, which
//! nothing here starts, but a systemd would.) The rest comes from PyPI in the versions of `requirements.lock`, into a virtual
//! environment that outlives the cloud.

use super::Lab;
use crate::command;
use crate::files;
use crate::setup;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

const PACKAGES: [&str; 17] = [
    "mariadb-server-core",
    "mariadb-client-core",
    "qemu-utils",
    "python3-venv",
    // What the message bus needs.
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

/// The pythons that these versions run on.
const PYTHONS: [&str; 3] = ["3.10", "3.11", "3.12"];

/// Replies on the bus are looked for this often; the default makes a server take 8 s instead of 3.
const POLL: (&str, &str) = ("time.sleep(0.5)", "time.sleep(0.02)");

pub(super) fn debian(lab: &Lab) -> Result<()> {
    let _alone = setup::alone();
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

fn apt(lab: &Lab, words: &[&str]) -> Result<()> {
    let mut apt = command::new("apt-get");
    apt.args(["-o", "DPkg::Lock::Timeout=600"]).args(words).env("DEBIAN_FRONTEND", "noninteractive");
    let run = lab.processes.run("apt-get", &mut apt);
    run.with_context(|| format!("this is made for Debian 12, and needs {} and {BUS} of it", PACKAGES.join(", ")))
}

fn unpack(lab: &Lab, to: &Path) -> Result<()> {
    let download = lab.home.join("download");
    empty(&download)?;
    let mut apt = command::new("apt-get");
    // Root fetches it: the user that apt has for that cannot write here.
    apt.args(["download", "--quiet=2", "-o", "APT::Sandbox::User=root", BUS]).current_dir(&download);
    lab.processes.run("apt-get", &mut apt)?;
    let package = fs::read_dir(&download)?.next().context("apt-get downloaded nothing")??.path();
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
    let version = command::read(command::new("/usr/bin/python3").args(["-c", version]))?;
    if !PYTHONS.contains(&version.as_str()) {
        bail!("/usr/bin/python3 is {version}; these versions of OpenStack run on {}", PYTHONS.join(", "));
    }
    let run = |command: &mut Command| {
        let run = lab.processes.run("python", command);
        run.context("packages come from PyPI, or from the index that pip and uv are configured for")
    };
    run(command::new("/usr/bin/python3").args(["-m", "venv", "--clear"]).arg(&lab.venv))?;
    let bin = lab.venv.join("bin");
    // Files that are not those of the lock are refused by both.
    let install = ["install", "--quiet", "--no-deps", "--require-hashes", "-r"];
    let mut pip = command::new(bin.join("pip"));
    run(pip.arg("--disable-pip-version-check").args(install).arg(lab.data.join("installer.lock")))?;
    // It installs a hundred packages in seconds, for which pip takes minutes.
    let mut uv = command::new(bin.join("uv"));
    uv.arg("pip").args(install).arg(lab.data.join("requirements.lock"));
    run(uv.arg("--python").arg(bin.join("python")))?;
    let driver = format!("lib/python{version}/site-packages/oslo_messaging/_drivers/amqpdriver.py");
    let driver = lab.venv.join(driver);
    let text = fs::read_to_string(&driver).with_context(|| format!("{} cannot be read", driver.display()))?;
    files::write(&driver, &text.replace(POLL.0, POLL.1), 0o644)?;
    lab.stamp(&lab.venv)
}

/// Makes the directory, without anything in it.
fn empty(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    files::directory(directory, 0o755)
}
