//! The cache of prepared guests on disk.
//!
//! Loading an artifact executes its content. So a file is used only if no one except this user
//! or root can have written it: the directory and the files are opened without following links,
//! and owner and mode are checked on the open descriptors. The name of an artifact is the hash
//! of its content, which reveals damage. It is hashed again only if its stamp differs from the
//! one in the manifest. The manifest names the artifact; it is written last and renamed into
//! place, so concurrent writers do no harm. If a file is rejected, the guest is prepared again.

mod error;
mod event;

pub use error::CacheError;
pub use event::{CacheEvent, StampedFile};

use crate::component::description::GuestDescription;
use crate::component::digest::{hex, is_hex_digest};
use crate::component::stamp::Stamp;
use crate::trust::{self, DirectoryError, check_owner_and_mode, read_capacity};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wasm_cpi_checks::{Check, RefusedBy};

/// The version of the format. Increase it with every change of the engine's settings or of these files.
const FORMAT: u32 = 5;

const MANIFEST_MAX: u64 = 1 << 20;

/// The mode of files. All users may read them, because a guest is not a secret and root may
/// prepare what another user runs.
const FILE_MODE: u32 = 0o644;

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    wasm_sha256: String,
    artifact: String,
    artifact_stamp: Stamp,
    #[serde(rename = "stamp")]
    guest_stamp: Stamp,
    description: GuestDescription,
}

/// An open cache directory that is trusted.
pub struct Cache {
    dir: OwnedFd,
    path: PathBuf,
}

/// A prepared guest. Its artifact is not checked yet, because `info` does not need it.
pub struct CacheEntry {
    pub description: GuestDescription,
    guest_stamp: Stamp,
    artifact: String,
    artifact_stamp: Stamp,
    /// The time when the manifest was written, by the clock of its file system.
    written_ns: i128,
}

impl CacheEntry {
    /// Returns true if both entries were written at the same time, by the clock of their file system.
    pub fn has_same_time_as(&self, other: &CacheEntry) -> bool {
        self.written_ns == other.written_ns
    }

    /// Returns true if the guest's file is still the one that was hashed.
    pub fn matches_file(&self, guest: &Path) -> bool {
        Stamp::of(guest).is_some_and(|now| now.is_unchanged_since(&self.guest_stamp, self.written_ns))
    }
}

/// The reason why there is no entry.
#[derive(Debug)]
pub enum Miss {
    /// The guest is not prepared yet.
    Absent,
    /// A file exists, but cannot be used. The log reports it.
    Rejected(CacheError),
}

impl From<CacheError> for Miss {
    fn from(error: CacheError) -> Self {
        Miss::Rejected(error)
    }
}

impl Cache {
    /// Opens the directory. Rejects one that other users can write.
    pub fn open(path: &Path) -> Result<Cache, CacheError> {
        let path = path.to_owned();
        match trust::open_cache_directory(&path) {
            Ok(opened) => Ok(Cache { dir: opened.descriptor, path }),
            Err(DirectoryError::Io(error)) => Err(CacheError::Directory { path, source: error.into() }),
            Err(DirectoryError::Untrusted(source)) => Err(CacheError::UntrustedDirectory { path, source }),
        }
    }

    /// Creates the directory and its parents if they do not exist, because the CLI does not create
    /// them when it installs a CPI.
    pub fn create(path: &Path) -> Result<Cache, CacheError> {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        let failed = |source| CacheError::Directory { path: path.to_owned(), source };
        let above: Vec<&Path> = path.ancestors().skip(1).take_while(|above| !is_there(above)).collect();
        for directory in above.into_iter().rev() {
            match std::fs::create_dir(directory) {
                Ok(()) => {}
                // Another first call has just created it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(failed(error)),
            }
            // The umask of this process would keep other users out.
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(directory, open).map_err(failed)?;
        }
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Cache::open(path),
            Err(error) => return Err(failed(error)),
        }
        let cache = Cache::open(path)?;
        // The directory holds no secrets, and other users may run what root prepared.
        rustix::fs::fchmod(&cache.dir, Mode::from_raw_mode(0o755)).map_err(|error| failed(error.into()))?;
        Ok(cache)
    }

    /// Returns the open directory.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Returns the entry of the guest with this digest.
    pub fn lookup(&self, wasm_sha256: &str) -> Result<CacheEntry, Miss> {
        let name = manifest_name(wasm_sha256);
        let (text, written_ns) = self.read_trusted(&name, MANIFEST_MAX)?;
        let rejected = |what| CacheError::content(&name, what);
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|_| rejected("is damaged"))?;
        let same = manifest.format == FORMAT && manifest.wasm_sha256 == wasm_sha256;
        Check::CacheManifest
            .ensure(same, || rejected("was written by another version of wasm-cpi, or for another guest"))?;
        if artifact_hash(&manifest.artifact).is_none() {
            return Err(rejected("does not name an artifact").refused_by(Check::CacheManifest).into());
        }
        let Manifest { artifact, artifact_stamp, guest_stamp, description, .. } = manifest;
        Ok(CacheEntry { description, guest_stamp, artifact, artifact_stamp, written_ns })
    }

    /// Returns the open artifact after its owner, mode and content were checked, and its new
    /// stamp if it had to be hashed for that.
    pub fn artifact(&self, entry: &CacheEntry) -> Result<(File, Option<Stamp>), Miss> {
        let name = &entry.artifact;
        let failed = |source| CacheError::Read { name: name.clone(), source };
        let mut file = self.open_trusted(name)?;
        // The stamp is taken before the content is read, so that a later write changes it.
        let artifact_stamp = Stamp::from(&file.metadata().map_err(failed)?);
        if Check::CacheArtifactStamp.accepts(artifact_stamp.is_unchanged_since(&entry.artifact_stamp, entry.written_ns))
        {
            return Ok((file, None));
        }
        let mut hasher = blake3::Hasher::new();
        io::copy(&mut file, &mut hasher).map_err(failed)?;
        let intact = Some(hasher.finalize().to_hex().as_str()) == artifact_hash(name);
        Check::CacheDigest.ensure(intact, || CacheError::content(name, "is damaged"))?;
        Ok((file, Some(artifact_stamp)))
    }

    /// Stores a guest atomically. If two processes store the same guest, the last one wins, and
    /// both results are valid.
    pub fn store(
        &self,
        wasm_sha256: &str,
        guest_stamp: &Stamp,
        description: &GuestDescription,
        artifact: &[u8],
    ) -> Result<(), CacheError> {
        let name = format!("{}.cwasm", blake3::hash(artifact).to_hex());
        let artifact_stamp = self.write(&name, artifact)?;
        let manifest = Manifest {
            format: FORMAT,
            wasm_sha256: wasm_sha256.to_owned(),
            artifact: name,
            artifact_stamp,
            guest_stamp: guest_stamp.clone(),
            description: description.clone(),
        };
        self.write_manifest(&manifest).map(drop)
    }

    /// Stores the new stamp of a guest's file whose content is unchanged. The artifact is checked
    /// first, because the new manifest confirms both.
    pub fn restamp_guest(
        &self,
        wasm_sha256: &str,
        guest_stamp: &Stamp,
        entry: &mut CacheEntry,
    ) -> Result<(), CacheError> {
        match self.artifact(entry) {
            Ok((_, Some(touched))) => entry.artifact_stamp = touched,
            Ok((_, None)) => {}
            Err(Miss::Absent) => return Err(CacheError::NoArtifact),
            Err(Miss::Rejected(error)) => return Err(error),
        }
        entry.guest_stamp = guest_stamp.clone();
        self.rewrite(wasm_sha256, entry)
    }

    /// Stores the new stamp of an artifact whose content is unchanged.
    pub fn restamp_artifact(&self, wasm_sha256: &str, entry: &mut CacheEntry, stamp: Stamp) -> Result<(), CacheError> {
        entry.artifact_stamp = stamp;
        self.rewrite(wasm_sha256, entry)
    }

    fn rewrite(&self, wasm_sha256: &str, entry: &mut CacheEntry) -> Result<(), CacheError> {
        let CacheEntry { description, guest_stamp, artifact, artifact_stamp, .. } = &*entry;
        let manifest = Manifest {
            format: FORMAT,
            wasm_sha256: wasm_sha256.to_owned(),
            artifact: artifact.clone(),
            artifact_stamp: artifact_stamp.clone(),
            guest_stamp: guest_stamp.clone(),
            description: description.clone(),
        };
        entry.written_ns = self.write_manifest(&manifest)?;
        Ok(())
    }

    /// Writes the manifest. Returns the time, which is later than the stamps in it.
    fn write_manifest(&self, manifest: &Manifest) -> Result<i128, CacheError> {
        manifest.guest_stamp.wait_past_clock_tick();
        manifest.artifact_stamp.wait_past_clock_tick();
        let name = manifest_name(&manifest.wasm_sha256);
        let text = serde_json::to_vec(manifest).map_err(|error| self.unwritten(&name, error))?;
        Ok(self.write(&name, &text)?.written_ns())
    }

    /// Writes a file and renames it into place. Returns its stamp.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<Stamp, CacheError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| self.unwritten(name, io::Error::other(error)))?;
        let temporary = format!(".{}.tmp", hex(&random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(FILE_MODE);
        let file = rustix::fs::openat(&self.dir, &temporary, flags, mode);
        let mut file = File::from(file.map_err(|error| self.unwritten(name, error))?);
        let written = rustix::fs::fchmod(&file, mode)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(bytes))
            .and_then(|()| file.sync_all())
            .and_then(|()| rustix::fs::renameat(&self.dir, &temporary, &self.dir, name).map_err(Into::into))
            // The stamp is taken last, because a rename changes it.
            .and_then(|()| file.metadata());
        written.map(|metadata| Stamp::from(&metadata)).map_err(|error| {
            let _ = rustix::fs::unlinkat(&self.dir, &temporary, AtFlags::empty());
            self.unwritten(name, error)
        })
    }

    fn unwritten(&self, name: &str, error: impl Into<io::Error>) -> CacheError {
        CacheError::Write { path: self.path.clone(), name: name.to_owned(), source: error.into() }
    }

    fn open_trusted(&self, name: &str) -> Result<File, Miss> {
        let no_link = Check::CacheFileLink.choose(OFlags::NOFOLLOW, OFlags::empty());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | no_link;
        let file = match rustix::fs::openat(&self.dir, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Err(Miss::Absent),
            Err(error) => return Err(Miss::Rejected(CacheError::Open { name: name.to_owned(), source: error.into() })),
        };
        let metadata = file.metadata().map_err(|source| CacheError::Read { name: name.to_owned(), source })?;
        if !metadata.is_file() {
            return Err(CacheError::content(name, "is not a regular file").into());
        }
        let untrusted = check_owner_and_mode(metadata.uid(), metadata.mode()).err();
        Check::CacheFile.reject(untrusted, |source| CacheError::UntrustedFile { name: name.to_owned(), source })?;
        Ok(file)
    }

    /// Returns the content of a file, and the time when it was written.
    fn read_trusted(&self, name: &str, max: u64) -> Result<(Vec<u8>, i128), Miss> {
        let failed = |source| CacheError::Read { name: name.to_owned(), source };
        let file = self.open_trusted(name)?;
        let metadata = file.metadata().map_err(failed)?;
        let stamp = Stamp::from(&metadata);
        let mut bytes = Vec::with_capacity(read_capacity(&metadata, max));
        file.take(max).read_to_end(&mut bytes).map_err(failed)?;
        Ok((bytes, stamp.written_ns()))
    }
}

fn is_there(directory: &Path) -> bool {
    directory.as_os_str().is_empty() || directory.exists()
}

/// Returns the name of the manifest for a guest and this version of the runtime. wasmtime itself
/// rejects artifacts of other versions or settings.
fn manifest_name(wasm_sha256: &str) -> String {
    format!("{wasm_sha256}-{}.json", env!("CARGO_PKG_VERSION"))
}

/// Returns the hash in an artifact's name. A name without a hash is rejected, so a name cannot
/// lead out of the directory.
fn artifact_hash(name: &str) -> Option<&str> {
    name.strip_suffix(".cwasm").filter(|hash| is_hex_digest(hash))
}
