//! Archives whose bytes depend only on their content: sorted names, no times, no owners.
//! Digests and fingerprints as the `bosh` CLI computes them.

use crate::command;
use crate::files::sha256;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Packs the content of `directory` into a gzipped tar archive.
pub(super) fn pack(directory: &Path, to: &Path) -> Result<()> {
    let mut tar = command::new("tar");
    tar.args(["--sort=name", "--format=ustar", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"]);
    // The modes must not depend on the umask with which the files were written.
    tar.arg("--mode=u=rwX,go=rX");
    // -n: gzip writes no name and no time. The variables could add options.
    tar.arg("--use-compress-program=gzip -n -6").env_remove("GZIP").env_remove("TAR_OPTIONS");
    command::read(tar.arg("-cf").arg(to).arg("-C").arg(directory).arg(".")).map(drop)
}

/// Returns the digest of a file in the form that `release.MF` and manifests use.
pub(super) fn digest(file: &Path) -> Result<String> {
    let bytes = fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    Ok(format!("sha256:{}", sha256(&bytes)))
}

/// A file that a fingerprint covers.
pub(super) struct FingerprintedFile<'a> {
    pub(super) path: &'a str,
    pub(super) content: &'a [u8],
    /// `None` if the fingerprint does not cover the mode, as for a `packaging` script.
    pub(super) executable: Option<bool>,
}

/// Returns the fingerprint that the CLI computes for a job or a package of these files.
pub(super) fn fingerprint(files: &mut [FingerprintedFile<'_>]) -> String {
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
    fn the_bytes_do_not_depend_on_order_umask_or_time_of_writing() {
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
    fn a_fingerprint_covers_paths_contents_and_modes() {
        let of_file = |path, content, executable| fingerprint(&mut [FingerprintedFile { path, content, executable }]);
        let all = [
            of_file("a", b"x", Some(false)),
            of_file("a", b"x", Some(true)),
            of_file("a", b"x", None),
            of_file("a", b"y", None),
            of_file("b", b"x", None),
        ];
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), all.len());
        let digest = sha256(b"x");
        assert_eq!(all[0], sha256(format!("v2asha256:{digest}100644").as_bytes()));
    }
}
