//! The presets that a policy names, which are copied into the job together with it.

use super::read;
use crate::build::GUESTS;
use crate::release;
use crate::repo::Repo;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

/// A preset with its place in the job.
pub(super) struct Preset {
    /// The package that holds it; a preset without one is beside the policy.
    pub(super) package: Option<String>,
    pub(super) file: String,
    pub(super) text: String,
}

impl Preset {
    /// Returns the path relative to OUT.
    pub(super) fn path(&self) -> PathBuf {
        match &self.package {
            Some(package) => Path::new("packages").join(package).join(&self.file),
            None => Path::new("config").join(&self.file),
        }
    }
}

/// Returns the presets that a policy names. Each is searched for in these directories, and, under
/// the name that the release gives it, among the presets of the repository's guests.
pub(super) fn named_by(policy: &Value, directories: &[PathBuf], repo: &Repo) -> Result<Vec<Preset>> {
    let entries = policy["presets"].as_array().map(Vec::as_slice).unwrap_or_default();
    entries.iter().filter(|entry| entry["file"].is_string()).map(|entry| named(entry, directories, repo)).collect()
}

fn named(entry: &Value, directories: &[PathBuf], repo: &Repo) -> Result<Preset> {
    let file = entry["file"].as_str().unwrap_or_default().to_owned();
    let package = entry["package"].as_str().map(str::to_owned);
    for name in package.iter().chain([&file]) {
        let inside = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if name.is_empty() || !inside {
            bail!("the policy names the preset `{name}`; write a relative path without `..`");
        }
    }
    let near = directories.iter().map(|directory| directory.join(&file)).find(|path| path.is_file());
    let found = match near {
        Some(path) => Some(path),
        None => of_the_repository(&file, repo)?,
    };
    let path = found.with_context(|| {
        let places: Vec<String> = directories.iter().map(|directory| directory.display().to_string()).collect();
        format!("the policy names the preset {file}, which is not in {}; put it there", places.join(" or "))
    })?;
    Ok(Preset { text: read(&path)?, package, file })
}

/// Returns the preset of a guest of the repository that the release ships under this name.
fn of_the_repository(file: &str, repo: &Repo) -> Result<Option<PathBuf>> {
    for guest in GUESTS {
        let presets = release::presets(&repo.guests().join(guest), guest)?;
        if let Some((path, _)) = presets.into_iter().find(|(_, name)| name == file) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}
