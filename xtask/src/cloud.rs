//! `cargo xtask cloud up|down`: starts and stops clouds on the loopback interface, to
//! try guests on.
//!
//! Each cloud has a directory below `target/cloud`. While it is up, the file `cloud.json`
//! there describes how to reach it: endpoints, credentials, and the resources that an
//! operator creates before the first deployment. Its schema is the same for all clouds of
//! one kind.

pub(crate) mod moto;
pub(crate) mod openstack;
pub(crate) mod sim;

mod processes;
mod python;
mod step;

use crate::arguments::{Cloud, Direction};
use crate::repo::Repo;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// The file in a cloud's directory that describes the cloud.
pub(crate) const FILE: &str = "cloud.json";

pub(crate) fn run(repo: &Repo, direction: Direction, cloud: Cloud) -> Result<()> {
    match (direction, cloud) {
        (Direction::Up, Cloud::Openstack) => print_ready(&openstack::up(repo)?),
        (Direction::Up, Cloud::Moto) => print_ready(&moto::up(repo)?),
        (Direction::Up, Cloud::Sim | Cloud::AwsSim) => print_ready(&sim::up(repo, cloud)?),
        (Direction::Down, Cloud::Openstack) => openstack::down(repo)?,
        (Direction::Down, Cloud::Moto) => moto::down(repo)?,
        (Direction::Down, Cloud::Sim | Cloud::AwsSim) => sim::down(repo, cloud)?,
    }
    Ok(())
}

fn print_ready(cloud: &Path) {
    println!("READY {}", cloud.display());
}

/// Returns the path of `cloud.json` of a cloud that is up.
pub(crate) fn file(repo: &Repo, cloud: Cloud) -> Result<PathBuf> {
    let file = home(repo, cloud.name()).join(FILE);
    if !file.exists() {
        bail!("the cloud `{0}` is not up; run `cargo xtask cloud up {0}`", cloud.name());
    }
    Ok(file)
}

/// Returns the directory of the cloud with this name.
fn home(repo: &Repo, name: &str) -> PathBuf {
    repo.root.join("target/cloud").join(name)
}
