//! The user who runs a job's calls. Root becomes that user before it reads or checks the job's
//! files, because what root may read and write says nothing about calls.

use crate::config::files_owned_by_caller;
use crate::failure::Failure;
use crate::startup::change_user;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The file in which users are looked up. No libc call looks up a name.
const PASSWD: &str = "/etc/passwd";

/// A user with its main group.
#[derive(Debug, PartialEq, Eq)]
struct User {
    uid: u32,
    gid: u32,
    name: String,
}

/// If root runs this program, becomes the user who runs the calls of a config: the one with the
/// given name or number, or else the owner of the job's data. Returns as whom it checks now, if
/// root runs it.
pub fn become_caller(config: &Path, given: Option<&str>) -> Result<Option<String>, Failure> {
    let me = rustix::process::geteuid();
    let passwd = std::fs::read_to_string(PASSWD).unwrap_or_default();
    let (user, why) = match given {
        Some(given) => {
            let user = find(&passwd, given).ok_or_else(|| {
                Failure::request(format!("`--user {given}`: {PASSWD} has no such user; use a name from it or a number"))
            })?;
            if user.uid == me.as_raw() {
                return Ok(None);
            }
            (user, "as `--user` says".to_owned())
        }
        None if !me.is_root() => return Ok(None),
        None => match owner(config, &passwd) {
            Some((user, file)) => (user, format!("who owns {file}; `--user` names another one")),
            None => {
                let remedy = "if calls run as another user, name it with `--user`";
                return Ok(Some(format!("checked as root, because no other user owns the job's data; {remedy}")));
            }
        },
    };
    let User { uid, gid, name } = user;
    change_user(uid, gid).map_err(|error| {
        Failure::request(format!("cannot become user {name} ({error}); only root can check as another user"))
    })?;
    Ok(Some(format!("checked as user {name} ({uid}), {why}")))
}

/// If root runs this program, becomes the owner of the cache, so that the files in it belong to the
/// user who runs calls, and root does not process a guest that it does not trust.
pub fn become_owner(cache: &Path) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let Ok(metadata) = std::fs::symlink_metadata(cache) else { return Ok(()) };
    if metadata.uid() == 0 {
        return Ok(());
    }
    change_user(metadata.uid(), metadata.gid()).map_err(|error| {
        Failure::config(format!(
            "cannot become user {}, who owns {} ({error}); run it as that user, or allow root to change its \
             user (setuid, setgroups)",
            metadata.uid(),
            cache.display()
        ))
    })
}

/// Runs this as the owner of the cache if root runs this program. Only a thread becomes the owner, so that root can
/// do the same for a cache of another owner.
pub fn as_owner<T: Send>(cache: &Path, run: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| become_owner(cache).map(|()| run()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Returns the user other than root who owns the job's data or its config, and the file that says so.
fn owner(config: &Path, passwd: &str) -> Option<(User, String)> {
    files_owned_by_caller(config).iter().find_map(|file| {
        let metadata = std::fs::metadata(file).ok().filter(|metadata| metadata.uid() != 0)?;
        let uid = metadata.uid();
        let unnamed = || User { uid, gid: metadata.gid(), name: uid.to_string() };
        let user = users(passwd).find(|user| user.uid == uid).unwrap_or_else(unnamed);
        Some((user, file.display().to_string()))
    })
}

/// Returns the user with this name or number. A number need not be listed.
fn find(passwd: &str, given: &str) -> Option<User> {
    let number = given.parse::<u32>().ok();
    let unnamed = || number.map(|uid| User { uid, gid: uid, name: uid.to_string() });
    users(passwd).find(|user| user.name == given || Some(user.uid) == number).or_else(unnamed)
}

fn users(passwd: &str) -> impl Iterator<Item = User> {
    passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(User { uid, gid, name })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_becomes_the_owner_of_one_cache_after_the_other() {
        let me = rustix::process::geteuid().as_raw();
        for uid in [65_534, 65_533, 65_534] {
            let cache = tempfile::tempdir().unwrap();
            // Other users cannot give away a directory, and do not become its owner.
            let given = std::os::unix::fs::chown(cache.path(), Some(uid), Some(uid)).is_ok();
            let owner = if given { uid } else { me };
            assert_eq!(as_owner(cache.path(), || rustix::process::geteuid().as_raw()).unwrap(), owner);
            assert_eq!(rustix::process::geteuid().as_raw(), me);
        }
    }

    #[test]
    fn a_user_is_found_by_name_and_by_number() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nbroken\nvcap:x:1000:1001::/var/vcap:/bin/sh\n";
        let vcap = || Some(User { uid: 1000, gid: 1001, name: "vcap".into() });
        assert_eq!(find(passwd, "vcap"), vcap());
        assert_eq!(find(passwd, "1000"), vcap());
        assert_eq!(find(passwd, "7"), Some(User { uid: 7, gid: 7, name: "7".into() }));
        assert_eq!(find(passwd, "broken"), None);
        assert_eq!(find(passwd, "nobody"), None);
    }
}
