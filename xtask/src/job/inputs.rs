//! The inputs of a job besides its programs: policy, preset and properties, from files
//! that the operator names, or from the `cloud.json` of a running cloud.
//!
//! They are read before anything is built or written. They contain secrets, so errors
//! never quote them.

use super::presets::{self, Preset};
use super::{manifest, read};
use crate::arguments::Job;
use crate::cloud;
use crate::repo::Repo;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Default)]
pub(crate) struct JobInputs {
    pub(super) policy: Option<Value>,
    /// The presets that the policy names.
    pub(super) presets: Vec<Preset>,
    pub(super) properties: Option<Value>,
    pub(super) allow_local: bool,
}

impl JobInputs {
    pub(crate) fn new(repo: &Repo, job: &Job) -> Result<JobInputs> {
        match job.cloud {
            Some(cloud) => JobInputs::for_cloud(repo, &cloud::file(repo, cloud)?),
            None => JobInputs::from_files(repo, job),
        }
    }

    pub(super) fn from_files(repo: &Repo, job: &Job) -> Result<JobInputs> {
        let policy = job.policy.as_deref().map(|file| read_object("--policy", file)).transpose()?;
        let beside = |file: &Path| file.parent().map(|parent| Path::new(".").join(parent));
        let near: Vec<PathBuf> =
            [&job.policy, &job.guest].into_iter().flatten().filter_map(|file| beside(file)).collect();
        let presets = policy.as_ref().map(|policy| presets::named_by(policy, &near, repo)).transpose()?;
        Ok(JobInputs {
            policy,
            presets: presets.unwrap_or_default(),
            properties: job.properties.as_deref().map(properties).transpose()?,
            allow_local: job.allow_local,
        })
    }

    /// Returns the inputs for the guest `openstack` and the cloud that this `cloud.json` describes.
    pub(crate) fn for_cloud(repo: &Repo, file: &Path) -> Result<JobInputs> {
        let cloud: Value = serde_json::from_str(&read(file)?)
            .ok()
            .with_context(|| format!("{} is not JSON; stop the cloud and start it again", file.display()))?;
        Ok(JobInputs {
            policy: Some(manifest::cloud_policy()),
            presets: vec![Preset {
                package: Some("guest".to_owned()),
                file: manifest::PRESET.to_owned(),
                text: read(&repo.guests().join("openstack/policy.json"))?,
            }],
            properties: Some(manifest::cloud_properties(&cloud)),
            allow_local: true,
        })
    }
}

/// Parses the value of `--properties`: a JSON object, or the path of a file that holds one.
fn properties(argument: &str) -> Result<Value> {
    if argument.trim_start().starts_with('{') {
        return parse_object(argument).context("the value of `--properties` is not a JSON object; fix it");
    }
    read_object("--properties", Path::new(argument))
}

fn read_object(option: &str, file: &Path) -> Result<Value> {
    parse_object(&read(file)?)
        .with_context(|| format!("`{option}`: {} does not hold a JSON object; fix it", file.display()))
}

/// Returns no details about an error, because the parser's message would quote the text.
fn parse_object(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_object)
}
