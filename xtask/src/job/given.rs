//! What a job is given beside its programs: policy, preset and properties, from
//! files that the operator names, or from what a cloud says about itself.
//!
//! All of it is read before anything is built or written. It holds secrets, so
//! that nothing here is quoted in an error.

use super::{manifest, read};
use crate::arguments::Job;
use crate::cloud;
use crate::repo::Repo;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;

#[derive(Default)]
pub(crate) struct Given {
    pub(super) policy: Option<Value>,
    /// The preset that the policy names.
    pub(super) preset: Option<String>,
    pub(super) properties: Option<Value>,
    pub(super) allow_local: bool,
}

impl Given {
    pub(crate) fn new(repo: &Repo, job: &Job) -> Result<Given> {
        match job.cloud {
            Some(cloud) => Given::for_cloud(repo, &cloud::file(repo, cloud)?),
            None => Given::by_files(job),
        }
    }

    pub(super) fn by_files(job: &Job) -> Result<Given> {
        Ok(Given {
            policy: job.policy.as_deref().map(|file| object("--policy", file)).transpose()?,
            preset: None,
            properties: job.properties.as_deref().map(properties).transpose()?,
            allow_local: job.allow_local,
        })
    }

    /// For the guest `openstack` and the cloud of this `cloud.json`.
    pub(crate) fn for_cloud(repo: &Repo, file: &Path) -> Result<Given> {
        let cloud: Value = serde_json::from_str(&read(file)?)
            .ok()
            .with_context(|| format!("{} is not JSON: take the cloud down, and start it again", file.display()))?;
        Ok(Given {
            policy: Some(manifest::cloud_policy()),
            preset: Some(read(&repo.guests().join("openstack/policy.json"))?),
            properties: Some(manifest::cloud_properties(&cloud)),
            allow_local: true,
        })
    }
}

/// The value of `--properties`: an object itself, or the file that holds it.
fn properties(argument: &str) -> Result<Value> {
    if argument.trim_start().starts_with('{') {
        return parsed(argument).context("`--properties` is not a JSON object");
    }
    object("--properties", Path::new(argument))
}

fn object(option: &str, file: &Path) -> Result<Value> {
    parsed(&read(file)?).with_context(|| format!("`{option}`: {} does not hold a JSON object", file.display()))
}

/// Without what is wrong with it: an error would quote the text.
fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_object)
}
