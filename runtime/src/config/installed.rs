//! Where a job's config lies, and what lies around it: a BOSH installation keeps
//! `jobs`, `packages` and `data` side by side, below `/var/vcap` or wherever the
//! CLI installs a CPI.
//!
//! On a Director `jobs/NAME` is a link to elsewhere, so that a path is read as it
//! is written; only one that tells nothing is followed. Opens no file.

use std::path::{Component, Path, PathBuf};

/// Which config to read, and as what.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "compiler", derive(clap::Args))]
pub struct ConfigArg {
    /// The job's config file
    #[cfg_attr(feature = "compiler", arg(long = "config", value_name = "CPI.json"))]
    pub path: PathBuf,
    /// Where packages are installed; default: `packages` beside the `jobs` that the config is in
    #[cfg_attr(feature = "compiler", arg(long, value_name = "DIR"))]
    pub packages: Option<PathBuf>,
    /// The module of the config's `modules` that is meant
    #[cfg_attr(feature = "compiler", arg(long, value_name = "NAME"))]
    pub module: Option<String>,
}

impl ConfigArg {
    pub fn new(path: &Path) -> ConfigArg {
        ConfigArg { path: path.to_owned(), packages: None, module: None }
    }
}

/// The installation that a config is part of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Installed {
    root: PathBuf,
    job: String,
}

impl Installed {
    /// For `ROOT/jobs/JOB/config/FILE`.
    pub(super) fn around(config: &Path) -> Option<Installed> {
        let written = std::path::absolute(config).ok().and_then(|path| Installed::read(&as_written(&path)));
        written.or_else(|| Installed::read(&config.canonicalize().ok()?))
    }

    fn read(path: &Path) -> Option<Installed> {
        let directory = path.parent()?;
        let job = directory.parent()?;
        let jobs = job.parent()?;
        if !directory.ends_with("config") || !jobs.ends_with("jobs") {
            return None;
        }
        Some(Installed { root: jobs.parent()?.to_owned(), job: job.file_name()?.to_str()?.to_owned() })
    }

    fn packages(&self) -> PathBuf {
        self.root.join("packages")
    }

    /// The job's own directory for what it makes while it runs.
    pub(super) fn data(&self) -> PathBuf {
        self.root.join("data").join(&self.job)
    }
}

/// Without `..`, and without asking what is a link.
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

/// Where packages are installed, looked for when a file of one is.
#[derive(Debug)]
pub struct Packages {
    given: Option<PathBuf>,
    config: PathBuf,
}

impl Packages {
    pub fn of(source: &ConfigArg) -> Packages {
        Packages { given: source.packages.clone(), config: source.path.clone() }
    }

    /// A file of a package: nothing that leads out of it.
    pub fn file(&self, package: &str, file: &str) -> Result<PathBuf, String> {
        let inside = |name: &str| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if package.is_empty() || package.contains('/') || !inside(package) {
            return Err(format!("`package` is `{package}`, which is no package's name"));
        }
        if file.is_empty() || !inside(file) {
            return Err("`file` must lie in its package: a relative path without `..`".to_owned());
        }
        let around = || Installed::around(&self.config).map(|installed| installed.packages());
        let packages = self.given.clone().or_else(around);
        let packages = packages.ok_or("nobody says where packages are; run it with `--packages DIR`")?;
        Ok(packages.join(package).join(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_is_told_by_the_path_as_it_is_written() {
        for (config, root, job) in [
            ("/var/vcap/jobs/wasm_cpi/config/cpi.json", "/var/vcap", "wasm_cpi"),
            ("/var/vcap/jobs/wasm_cpi/bin/../config/cpi.json", "/var/vcap", "wasm_cpi"),
            ("/h/.bosh/installations/1-2/jobs/x/./config/cpi.json", "/h/.bosh/installations/1-2", "x"),
        ] {
            let found = Installed::around(Path::new(config));
            assert_eq!(found, Some(Installed { root: root.into(), job: job.into() }), "{config}");
        }
        for config in ["/var/vcap/data/jobs/wasm_cpi/abc/config/cpi.json", "/job/config/cpi.json", "cpi.json", "/"] {
            assert_eq!(Installed::around(Path::new(config)), None, "{config}");
        }
    }

    #[test]
    fn a_path_that_tells_nothing_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("jobs/j/config")).unwrap();
        std::fs::write(root.join("jobs/j/config/cpi.json"), "{}").unwrap();
        std::os::unix::fs::symlink("jobs/j/config", root.join("config")).unwrap();
        let found = Installed::around(&root.join("config/cpi.json")).unwrap();
        assert_eq!((found.packages(), found.data()), (root.join("packages"), root.join("data/j")));
    }

    #[test]
    fn nothing_leads_out_of_a_package() {
        let of = |given: Option<&str>| Packages { given: given.map(PathBuf::from), config: "/x/cpi.json".into() };
        let packages = of(Some("/p"));
        assert_eq!(packages.file("acme", "lib/a.wasm"), Ok("/p/acme/lib/a.wasm".into()));
        for (package, file) in [("..", "x"), ("a/b", "x"), ("", "x"), ("/", "x"), ("a", "../x"), ("a", "/x"), ("a", "")]
        {
            assert!(packages.file(package, file).is_err(), "{package} {file}");
        }
        assert!(of(None).file("a", "b").unwrap_err().contains("--packages"));
    }
}
