//! Whose files count: those that nobody but this user or root can have written.

/// Whether only this user or root can have written it.
pub fn trusted(owner: u32, mode: u32) -> Result<(), String> {
    let me = rustix::process::geteuid().as_raw();
    if owner != me && owner != 0 {
        return Err(format!("belongs to user {owner}, neither to this user ({me}) nor to root; run `chown` on it"));
    }
    if mode & 0o022 != 0 {
        return Err(format!("is writable by group or others (mode {:o}); run `chmod go-w` on it", mode & 0o777));
    }
    Ok(())
}
