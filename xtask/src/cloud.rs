//! `cargo xtask cloud up|down`: clouds to try guests against, on this machine alone.
//!
//! Each has a directory of its own below `target/cloud`. When it is up, the file
//! `cloud.json` there says how to reach it: endpoints, credentials, and what an
//! operator has made before the first deployment. Its schema is the same for all.

pub(crate) mod openstack;
pub(crate) mod sim;

mod processes;
mod step;

use crate::arguments::{Cloud, Direction};
use crate::repo::Repo;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// In a cloud's directory.
pub(crate) const FILE: &str = "cloud.json";

pub(crate) fn run(repo: &Repo, direction: Direction, cloud: Cloud) -> Result<()> {
    match (direction, cloud) {
        (Direction::Up, Cloud::Openstack) => ready(&openstack::up(repo)?),
        (Direction::Up, Cloud::Sim) => ready(&sim::up(repo)?),
        (Direction::Down, Cloud::Openstack) => openstack::down(repo)?,
        (Direction::Down, Cloud::Sim) => sim::down(repo)?,
    }
    Ok(())
}

fn ready(cloud: &Path) {
    println!("READY {}", cloud.display());
}

/// What a cloud that is up says about itself.
pub(crate) fn file(repo: &Repo, cloud: Cloud) -> Result<PathBuf> {
    let file = home(repo, cloud.name()).join(FILE);
    if !file.exists() {
        bail!("the cloud `{0}` is not up: run `cargo xtask cloud up {0}`", cloud.name());
    }
    Ok(file)
}

/// Where the cloud of this name keeps everything.
fn home(repo: &Repo, name: &str) -> PathBuf {
    repo.root.join("target/cloud").join(name)
}
