//! The directory of BOSH packages, which hold guests and their presets.

use super::ConfigSource;
use super::installation::Installation;
use std::path::{Component, Path, PathBuf};

/// The directory of packages, which is determined when a file of a package is needed.
#[derive(Debug)]
pub struct Packages {
    given: Option<PathBuf>,
    config: PathBuf,
}

impl Packages {
    pub fn of(source: &ConfigSource) -> Packages {
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
