//! Archives whose bytes follow from their content alone: names in order, no
//! times, nobody's files. Digests and fingerprints as the `bosh` CLI has them.

use crate::command;
use crate::files::sha256;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// All of `directory`, as a gzipped tar.
pub(super) fn pack(directory: &Path, to: &Path) -> Result<()> {
    let mut tar = command::new("tar");
    tar.args(["--sort=name", "--format=ustar", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    // Whatever the umask was when they were written, files are there to be read.
    tar.arg("--mode=u=rwX,go=rX");
    // gzip writes names and times, unless it is told not to; the environment has nothing to add.
    tar.arg("--use-compress-program=gzip -n -6").env_remove("GZIP").env_remove("TAR_OPTIONS");
    command::read(tar.arg("-cf").arg(to).arg("-C").arg(directory).arg(".")).map(drop)
}

/// As release.MF and manifests have it.
pub(super) fn digest(file: &Path) -> Result<String> {
    let bytes = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    Ok(format!("sha256:{}", sha256(&bytes)))
}

/// One file that a fingerprint is about.
pub(super) struct Print<'a> {
    pub(super) path: &'a str,
    pub(super) content: &'a [u8],
    /// What is run by name alone has no mode in it.
    pub(super) executable: Option<bool>,
}

/// What the CLI gives a job or a package of these files.
pub(super) fn fingerprint(files: &mut [Print<'_>]) -> String {
    files.sort_by_key(|file| file.path);
    let mut text = "v2".to_owned();
    for file in files {
        text.push_str(file.path);
        text.push_str("sha256:");
        text.push_str(&sha256(file.content));
        text.push_str(match file.executable {
            None => "",
            Some(true) => "100755",
            Some(false) => "100644",
        });
    }
    sha256(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_content_makes_the_same_bytes_however_and_in_whatever_order_it_was_written() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let packed = |names: [&str; 3], umask: u32| {
            let from = tempfile::tempdir_in(dir.path()).unwrap();
            let set_mode = |name: &str, mode: u32| {
                fs::set_permissions(from.path().join(name), fs::Permissions::from_mode(mode & !umask)).unwrap();
            };
            fs::create_dir(from.path().join("d")).unwrap();
            set_mode("d", 0o777);
            for name in names {
                fs::write(from.path().join(name), name).unwrap();
                set_mode(name, if name == "a" { 0o777 } else { 0o666 });
                let at = std::time::SystemTime::now() - std::time::Duration::from_secs(name.len() as u64 * 1000);
                fs::File::open(from.path().join(name)).unwrap().set_modified(at).unwrap();
            }
            let to = from.path().with_extension("tgz");
            pack(from.path(), &to).unwrap();
            fs::read(to).unwrap()
        };
        assert_eq!(packed(["a", "bb", "d/c"], 0o022), packed(["d/c", "bb", "a"], 0o077));
        assert_ne!(packed(["a", "bb", "d/c"], 0o022), packed(["a", "b", "d/c"], 0o022));
    }

    #[test]
    fn a_fingerprint_knows_paths_contents_and_modes() {
        let print = |path, content, executable| fingerprint(&mut [Print { path, content, executable }]);
        let all = [
            print("a", b"x", Some(false)),
            print("a", b"x", Some(true)),
            print("a", b"x", None),
            print("a", b"y", None),
            print("b", b"x", None),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        let digest = sha256(b"x");
        assert_eq!(all[0], sha256(format!("v2asha256:{digest}100644").as_bytes()));
    }
}
