//! The BOSH installation that a config is part of. It has the directories `jobs`, `packages` and
//! `data` side by side, below `/var/vcap` or where the CLI installs a CPI.
//!
//! On a Director `jobs/NAME` is a link, so the path is read as it is written. Links are followed
//! only if the written path is not that of an installation. No file is opened.

use std::path::{Component, Path, PathBuf};

/// Which config to read, and for which of its modules.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "compiler", derive(clap::Args))]
pub struct ConfigArg {
    /// Config file of the job
    #[cfg_attr(feature = "compiler", arg(long = "config", value_name = "CPI.json"))]
    pub path: PathBuf,
    /// Directory of packages (default: `packages` beside the `jobs` directory of the config)
    #[cfg_attr(feature = "compiler", arg(long, value_name = "DIR"))]
    pub packages: Option<PathBuf>,
    /// Name of one of the `modules` in the config (default: its own `guest`)
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
pub(super) struct Installation {
    root: PathBuf,
    job: String,
}

impl Installation {
    /// Returns the installation of a config at `ROOT/jobs/JOB/config/FILE`, or `None` for another path.
    pub(super) fn of(config: &Path) -> Option<Installation> {
        let written = std::path::absolute(config).ok().and_then(|path| Installation::read(&as_written(&path)));
        written.or_else(|| Installation::read(&config.canonicalize().ok()?))
    }

    fn read(path: &Path) -> Option<Installation> {
        let directory = path.parent()?;
        let job = directory.parent()?;
        let jobs = job.parent()?;
        if !directory.ends_with("config") || !jobs.ends_with("jobs") {
            return None;
        }
        Some(Installation { root: jobs.parent()?.to_owned(), job: job.file_name()?.to_str()?.to_owned() })
    }

    fn packages(&self) -> PathBuf {
        self.root.join("packages")
    }

    /// Returns the job's directory for files that it creates at run time.
    pub(super) fn data(&self) -> PathBuf {
        self.root.join("data").join(&self.job)
    }
}

/// Returns true for a file of a job that the CLI installed, below `~/.bosh/installations`. The CLI
/// deletes the job when its command ends, and writes it again for the next one.
pub(super) fn is_of_the_cli(file: &Path) -> bool {
    let parts: Vec<Component<'_>> = file.components().collect();
    let of_the_cli = |pair: &[Component<'_>]| pair[0].as_os_str() == ".bosh" && pair[1].as_os_str() == "installations";
    parts.windows(2).any(of_the_cli)
}

/// Returns the directories and files whose owner runs the calls of a config: the job's data, and
/// the config itself, which no other user except root could have written.
pub fn files_of_the_caller(config: &Path) -> Vec<PathBuf> {
    let data = Installation::of(config).map(|installation| installation.data());
    data.into_iter().chain([config.to_owned()]).collect()
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

/// The directory of packages, which is determined when a file of a package is needed.
#[derive(Debug)]
pub struct Packages {
    given: Option<PathBuf>,
    config: PathBuf,
}

impl Packages {
    pub fn of(source: &ConfigArg) -> Packages {
        Packages { given: source.packages.clone(), config: source.path.clone() }
    }

    /// Returns the path of a file of a package. Rejects a path that leads out of the package.
    pub fn file(&self, package: &str, file: &str) -> Result<PathBuf, String> {
        let inside = |name: &str| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if package.is_empty() || package.contains('/') || !inside(package) {
            return Err(format!("`package` is `{package}`, but must be the name of a package, without `/`"));
        }
        if file.is_empty() || !inside(file) {
            return Err("`file` must be a relative path without `..`, below the package's directory".to_owned());
        }
        let around = || Installation::of(&self.config).map(|installation| installation.packages());
        let packages = self.given.clone().or_else(around);
        let packages = packages.ok_or("the directory of packages is not known; pass it with `--packages DIR`")?;
        Ok(packages.join(package).join(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_is_recognised_by_the_path_as_it_is_written() {
        for (config, root, job) in [
            ("/var/vcap/jobs/wasm_cpi/config/cpi.json", "/var/vcap", "wasm_cpi"),
            ("/var/vcap/jobs/wasm_cpi/bin/../config/cpi.json", "/var/vcap", "wasm_cpi"),
            ("/h/.bosh/installations/1-2/jobs/x/./config/cpi.json", "/h/.bosh/installations/1-2", "x"),
        ] {
            let found = Installation::of(Path::new(config));
            assert_eq!(found, Some(Installation { root: root.into(), job: job.into() }), "{config}");
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

    #[test]
    fn a_path_that_leads_out_of_a_package_is_rejected() {
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
