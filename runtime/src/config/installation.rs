//! The BOSH installation that a config is part of. It has the directories `jobs`, `packages` and
//! `data` side by side, below `/var/vcap` or where the CLI installs a CPI.
//!
//! On a Director `jobs/NAME` is a link, so the path is read as it is written. Links are followed
//! only if the written path is not that of an installation. No file is read.

use std::path::{Component, Path, PathBuf};

/// The installation that a config is part of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Installation {
    root: PathBuf,
    job: String,
}

impl Installation {
    /// Returns the installation of a config at `ROOT/jobs/JOB/config/FILE`, or `None` for another path.
    pub(super) fn of(config: &Path) -> Option<Installation> {
        let written = std::path::absolute(config).ok().and_then(|path| Installation::parse(&as_written(&path)));
        written.or_else(|| Installation::parse(&config.canonicalize().ok()?))
    }

    fn parse(path: &Path) -> Option<Installation> {
        let directory = path.parent()?;
        let job = directory.parent()?;
        let jobs = job.parent()?;
        if !directory.ends_with("config") || !jobs.ends_with("jobs") {
            return None;
        }
        Some(Installation { root: jobs.parent()?.to_owned(), job: job.file_name()?.to_str()?.to_owned() })
    }

    pub(super) fn packages(&self) -> PathBuf {
        self.root.join("packages")
    }

    /// Returns the job's directory for files that it creates at run time.
    fn data(&self) -> PathBuf {
        self.root.join("data").join(&self.job)
    }

    /// Returns the default directory of prepared guests.
    pub(super) fn cache(&self) -> PathBuf {
        self.data().join("cache")
    }
}

/// Returns true for a file of a job that the CLI installed, below `~/.bosh/installations`. The CLI
/// deletes the job when its command ends, and writes it again for the next one.
pub fn is_installed_by_cli(file: &Path) -> bool {
    let parts: Vec<Component<'_>> = file.components().collect();
    let is_installations =
        |pair: &[Component<'_>]| pair[0].as_os_str() == ".bosh" && pair[1].as_os_str() == "installations";
    parts.windows(2).any(is_installations)
}

/// Returns the directories and files whose owner runs the calls of a config: the default cache, the
/// job's data, and the config itself, which no other user except root could have written.
pub fn files_owned_by_caller(config: &Path) -> Vec<PathBuf> {
    let job = Installation::of(config).map(|installation| [installation.cache(), installation.data()]);
    job.into_iter().flatten().chain([config.to_owned()]).collect()
}

/// Returns the complete path without `..`, as an operator would write it.
pub fn written_path(path: &Path) -> PathBuf {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| as_written(&path))
}

/// Returns the path without `..`, and without following links.
fn as_written(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, component| {
        match component {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            other => path.push(other),
        }
        path
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigSource;

    #[test]
    fn an_installation_is_recognised_by_the_path_as_it_is_written() {
        for (config, root, job) in [
            ("/var/vcap/jobs/wasm_cpi/config/cpi.json", "/var/vcap", "wasm_cpi"),
            ("/var/vcap/jobs/wasm_cpi/bin/../config/cpi.json", "/var/vcap", "wasm_cpi"),
            ("/h/.bosh/installations/1-2/jobs/x/./config/cpi.json", "/h/.bosh/installations/1-2", "x"),
        ] {
            let found = Installation::of(Path::new(config));
            assert_eq!(found, Some(Installation { root: root.into(), job: job.into() }), "{config}");
            let written = format!("{root}/jobs/{job}/config/cpi.json");
            assert_eq!(ConfigSource::new(Path::new(config)).written_path(), Path::new(&written));
        }
        for config in ["/var/vcap/data/jobs/wasm_cpi/abc/config/cpi.json", "/job/config/cpi.json", "cpi.json", "/"] {
            assert_eq!(Installation::of(Path::new(config)), None, "{config}");
        }
    }

    #[test]
    fn links_are_followed_if_the_written_path_is_not_that_of_an_installation() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("jobs/j/config")).unwrap();
        std::fs::write(root.join("jobs/j/config/cpi.json"), "{}").unwrap();
        std::os::unix::fs::symlink("jobs/j/config", root.join("config")).unwrap();
        let found = Installation::of(&root.join("config/cpi.json")).unwrap();
        assert_eq!((found.packages(), found.data()), (root.join("packages"), root.join("data/j")));
    }
}
