//! Opening the image file: what is refused, and what to do about it.
//!
//! The path comes from the caller. Only a regular file is opened, never through
//! a link in its last component; the type is looked at before opening, as
//! opening a device can have effects, and again on the open descriptor. Files
//! that the kernel makes up as they are read are no images.

use crate::failure::Failure;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use wasm_cpi_checks::Check;

/// File systems whose files are made up as they are read: proc and sys.
const KERNELS_OWN: [rustix::fs::FsWord; 2] = [0x9fa0, 0x6265_6572];

pub(super) fn open(path: &Path, image_dirs: &[PathBuf]) -> Result<(File, u64), Failure> {
    let refused = |what: String| Failure::request(format!("stemcell image `{}` {what}", path.display()));
    let unreadable = |error: std::io::Error| {
        refused(format!("cannot be opened ({error}); it must exist and be readable by the user that runs the CPI"))
    };
    let Some(name) = path.file_name() else {
        return Err(refused("names no file; give the path of the image itself".into()));
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = parent.canonicalize().map_err(unreadable)?;
    check_directory(&parent, image_dirs).map_err(refused)?;

    let directory_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory =
        rustix::fs::openat(CWD, &parent, directory_flags, Mode::empty()).map_err(|e| unreadable(e.into()))?;
    // It was resolved and judged a moment ago: what was opened must be that.
    let is = std::fs::read_link(format!("/proc/self/fd/{}", directory.as_raw_fd())).map_err(unreadable)?;
    if is != parent {
        return Err(refused("was moved to another directory meanwhile; try again".into()));
    }
    let (look, no_link) = if Check::ImageLink.on() {
        (AtFlags::SYMLINK_NOFOLLOW, OFlags::NOFOLLOW)
    } else {
        (AtFlags::empty(), OFlags::empty())
    };
    let seen = rustix::fs::statat(&directory, name, look).map_err(|e| unreadable(e.into()))?;
    check_type(FileType::from_raw_mode(seen.st_mode)).map_err(refused)?;

    // Non-blocking, so that a FIFO put there meanwhile cannot hold us.
    let flags = OFlags::RDONLY | no_link | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&directory, name, flags, Mode::empty()).map_err(|e| unreadable(e.into()))?;
    let opened = rustix::fs::fstat(&file).map_err(|e| unreadable(e.into()))?;
    check_type(FileType::from_raw_mode(opened.st_mode)).map_err(refused)?;
    let system = rustix::fs::fstatfs(&file).map_err(|e| unreadable(e.into()))?;
    if Check::ImageKernel.on() && KERNELS_OWN.contains(&system.f_type) {
        return Err(refused("is a file of the kernel's; copy the image onto a disk".into()));
    }
    Ok((File::from(file), u64::try_from(opened.st_size).unwrap_or(0)))
}

fn check_type(kind: FileType) -> Result<(), String> {
    let is = match kind {
        FileType::RegularFile => return Ok(()),
        _ if !Check::ImageRegular.on() => return Ok(()),
        FileType::Symlink => "is a symbolic link, and links are not followed; give the path of the file itself",
        FileType::Directory => "is a directory; give the path of the image file in it",
        FileType::Fifo => "is a named pipe; copy the image into a regular file",
        FileType::CharacterDevice | FileType::BlockDevice => "is a device; copy the image into a regular file",
        _ => "is no regular file; copy the image into one",
    };
    Err(is.into())
}

fn check_directory(parent: &Path, image_dirs: &[PathBuf]) -> Result<(), String> {
    if image_dirs.is_empty() || !Check::ImageDirs.on() {
        return Ok(());
    }
    let allowed = image_dirs.iter().filter_map(|directory| directory.canonicalize().ok());
    if allowed.into_iter().any(|directory| parent.starts_with(directory)) {
        return Ok(());
    }
    let listed = image_dirs.iter().map(|directory| format!("`{}`", directory.display())).collect::<Vec<_>>().join(", ");
    Err(format!("lies outside of `image_dirs` ({listed}); move it there, or add its directory to the CPI's config"))
}
