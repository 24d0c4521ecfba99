//! The directories of the new guest, of the SDK and of the SDK's repository, and
//! the paths between them.

use crate::failure::Failure;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The path of the SDK in its repository.
const SDK: &str = "guests/sdk";

/// Directories. All paths are absolute and hold no symbolic links.
#[derive(Debug)]
pub(super) struct Paths {
    pub(super) guest: PathBuf,
    pub(super) sdk: PathBuf,
    pub(super) repo: PathBuf,
}

impl Paths {
    pub(super) fn find(name: &str, directory: &Path, sdk: Option<&Path>) -> Result<Paths, Failure> {
        let base = fs::canonicalize(directory).ok().filter(|base| base.is_dir()).ok_or_else(|| {
            Failure::request(format!(
                "--dir {} is not a directory; create it, or pass another one",
                directory.display()
            ))
        })?;
        let sdk = match sdk {
            Some(given) => check_sdk(given)?,
            None => nearest_sdk(&base).or_else(|| nearest_sdk(&std::env::current_dir().ok()?)).ok_or_else(|| {
                Failure::request(format!(
                    "the SDK was not found: neither {} nor the current directory has a parent with {SDK}; pass --sdk PATH, the directory {SDK} of the wasm-cpi repository",
                    base.display()
                ))
            })?,
        };
        let repo = sdk.ancestors().nth(2).unwrap_or(&sdk).to_path_buf();
        Ok(Paths { guest: base.join(name), sdk, repo })
    }

    /// Returns the path of the SDK for the guest's manifest, which must be UTF-8.
    pub(super) fn sdk_from_guest(&self) -> Result<String, Failure> {
        let path = relative_path(&self.guest, &self.sdk);
        path.into_os_string().into_string().map_err(|_| {
            Failure::request(format!(
                "the path {} is not UTF-8, so a manifest cannot name it; move the SDK to another directory",
                self.sdk.display()
            ))
        })
    }

    pub(super) fn repo_from_guest(&self) -> PathBuf {
        relative_path(&self.guest, &self.repo)
    }

    pub(super) fn guest_from_repo(&self) -> PathBuf {
        relative_path(&self.repo, &self.guest)
    }
}

fn check_sdk(given: &Path) -> Result<PathBuf, Failure> {
    let found = fs::canonicalize(given).ok().filter(|sdk| is_sdk(sdk));
    found.ok_or_else(|| {
        Failure::request(format!(
            "--sdk {} is not the SDK; pass the directory {SDK} of the wasm-cpi repository",
            given.display()
        ))
    })
}

fn nearest_sdk(below: &Path) -> Option<PathBuf> {
    let found = below.ancestors().map(|above| above.join(SDK)).find(|sdk| is_sdk(sdk))?;
    fs::canonicalize(found).ok()
}

fn is_sdk(directory: &Path) -> bool {
    let manifest = fs::read_to_string(directory.join("Cargo.toml"));
    manifest.is_ok_and(|text| text.lines().any(|line| line.trim() == "name = \"wasm-cpi-sdk\""))
}

/// Returns the path from one directory to another. It is absolute if they share
/// only the root: a relative one would break as well if either is moved.
fn relative_path(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    if shared < 2 {
        return to.to_path_buf();
    }
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to.components().skip(shared)).collect();
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
}

/// Returns the path for a shell, quoted if necessary.
pub(super) fn shell_quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_if_directories_share_more_than_the_root() {
        for (from, to, expected) in [
            ("/a/mine", "/a/repo/guests/sdk", "../repo/guests/sdk"),
            ("/a/repo/guests/mine", "/a/repo/guests/sdk", "../sdk"),
            ("/a/repo/x/y/mine", "/a/repo", "../../.."),
            ("/a/repo", "/a/repo/mine", "mine"),
            ("/a/b", "/a/b", "."),
            ("/a/mine", "/b/repo", "/b/repo"),
        ] {
            assert_eq!(relative_path(Path::new(from), Path::new(to)), Path::new(expected), "{from} to {to}");
        }
    }

    #[test]
    fn paths_are_quoted_for_a_shell_only_if_necessary() {
        for (path, expected) in [("../a-b_c.d", "../a-b_c.d"), ("a b", "'a b'"), ("a'b", r"'a'\''b'")] {
            assert_eq!(shell_quoted(Path::new(path)), expected);
        }
    }
}
