//! Where the new guest, the SDK and the SDK's repository lie, and the ways
//! between them, which are relative as long as they have something in common.

use crate::failure::Failure;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Where the SDK lies in its repository.
const SDK: &str = "guests/sdk";

/// All absolute, without links.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) guest: PathBuf,
    pub(super) sdk: PathBuf,
    pub(super) repo: PathBuf,
}

impl Places {
    pub(super) fn find(name: &str, directory: &Path, sdk: Option<&Path>) -> Result<Places, Failure> {
        let base = fs::canonicalize(directory).ok().filter(|base| base.is_dir()).ok_or_else(|| {
            Failure::request(format!("{} is no directory; make it, or pass another --dir", directory.display()))
        })?;
        let sdk = match sdk {
            Some(given) => given_sdk(given)?,
            None => nearest_sdk(&base).or_else(|| nearest_sdk(&std::env::current_dir().ok()?)).ok_or_else(|| {
                Failure::request(format!(
                    "no {SDK} was found above {} or the current directory; pass --sdk PATH, the directory {SDK} of the wasm-cpi repository",
                    base.display()
                ))
            })?,
        };
        let repo = sdk.ancestors().nth(2).unwrap_or(&sdk).to_path_buf();
        Ok(Places { guest: base.join(name), sdk, repo })
    }

    /// For a manifest, which must be UTF-8.
    pub(super) fn sdk_from_guest(&self) -> Result<String, Failure> {
        let path = way(&self.guest, &self.sdk);
        path.into_os_string().into_string().map_err(|_| {
            Failure::request(format!("the path {} is not UTF-8, and no manifest can name it", self.sdk.display()))
        })
    }

    pub(super) fn repo_from_guest(&self) -> PathBuf {
        way(&self.guest, &self.repo)
    }

    pub(super) fn guest_from_repo(&self) -> PathBuf {
        way(&self.repo, &self.guest)
    }
}

fn given_sdk(given: &Path) -> Result<PathBuf, Failure> {
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

/// From one directory to another. Relative, unless they share nothing but the
/// root: such a way breaks when either moves, so it may as well be absolute.
fn way(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    if shared < 2 {
        return to.to_path_buf();
    }
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to.components().skip(shared)).collect();
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path }
}

/// For a shell, quoted where it has to be.
pub(super) fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte));
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_relative_where_they_have_something_in_common() {
        for (from, to, expected) in [
            ("/a/mine", "/a/repo/guests/sdk", "../repo/guests/sdk"),
            ("/a/repo/guests/mine", "/a/repo/guests/sdk", "../sdk"),
            ("/a/repo/x/y/mine", "/a/repo", "../../.."),
            ("/a/repo", "/a/repo/mine", "mine"),
            ("/a/b", "/a/b", "."),
            ("/a/mine", "/b/repo", "/b/repo"),
        ] {
            assert_eq!(way(Path::new(from), Path::new(to)), Path::new(expected), "{from} to {to}");
        }
    }

    #[test]
    fn paths_are_quoted_for_a_shell_only_where_they_have_to_be() {
        for (path, expected) in [("../a-b_c.d", "../a-b_c.d"), ("a b", "'a b'"), ("a'b", r"'a'\''b'")] {
            assert_eq!(shown(Path::new(path)), expected);
        }
    }
}
