//! Prepared guests on disk.
//!
//! Loading an artifact runs what is in it, so a file counts only if nobody but
//! this user or root can have written it: directory and files are opened without
//! following links, and owner and mode are checked on the open descriptors. An
//! artifact is named by the hash of its content, which tells a damaged one. It is
//! hashed again only if its stamp is not the one that the manifest holds. The
//! manifest, written last and renamed into place, names the artifact. So racing
//! writers are all right, and a doubt only costs a new preparation.

use crate::component::description::Description;
use crate::component::source::Stamp;
use crate::trust::{Untrusted, room, trusted};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use wasm_cpi_checks::Check;

/// Grows with every change of the engine's settings or of these files.
const FORMAT: u32 = 4;

const MANIFEST_MAX: u64 = 1 << 20;

/// A guest is no secret, and root may prepare what another user runs.
const FOR_ALL: u32 = 0o644;

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    wasm_sha256: String,
    artifact: String,
    artifact_stamp: Stamp,
    stamp: Stamp,
    description: Description,
}

pub struct Cache {
    dir: OwnedFd,
    path: PathBuf,
}

/// A prepared guest; its artifact is not looked at yet, as `info` needs none.
pub struct CacheEntry {
    pub description: Description,
    stamp: Stamp,
    artifact: String,
    artifact_stamp: Stamp,
    /// When the manifest was written, by the clock of its file system.
    written_ns: i128,
}

impl CacheEntry {
    /// Whether the guest's file is still the one that was hashed.
    pub fn is_of(&self, guest: &Path) -> bool {
        Stamp::of(guest).is_some_and(|now| now.is_still(&self.stamp, self.written_ns))
    }
}

/// Why there is no entry.
#[derive(Debug)]
pub enum Miss {
    /// Not prepared yet.
    Absent,
    /// Something is there that cannot be trusted: worth a line in the log.
    Doubt(CacheError),
}

/// Why the cache, or a file in it, is not used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("cache {}: {source}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("cache {}: {source}", path.display())]
    UntrustedDirectory { path: PathBuf, source: Untrusted },
    #[error("cache {}: {name}: {source}", path.display())]
    Write { path: PathBuf, name: String, source: io::Error },
    #[error("{name} in the cache: {source}")]
    Open { name: String, source: io::Error },
    #[error("{name}: {source}")]
    Read { name: String, source: io::Error },
    #[error("{name} in the cache {source}")]
    UntrustedFile { name: String, source: Untrusted },
    #[error("{name} in the cache {what}")]
    Content { name: String, what: &'static str },
    #[error("its artifact is gone")]
    NoArtifact,
}

impl CacheError {
    /// There is no directory, so that one can be made.
    pub fn is_absent(&self) -> bool {
        matches!(self, CacheError::Directory { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl From<CacheError> for Miss {
    fn from(error: CacheError) -> Self {
        Miss::Doubt(error)
    }
}

impl Cache {
    /// Opens the directory, or says why it cannot be used.
    pub fn open(path: &Path) -> Result<Cache, CacheError> {
        let failed = |error: Errno| CacheError::Directory { path: path.to_owned(), source: error.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | no_link(Check::CacheDirectoryLink);
        let dir = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&dir).map_err(failed)?;
        if Check::CacheDirectory.on() {
            trusted(stat.st_uid, stat.st_mode)
                .map_err(|source| CacheError::UntrustedDirectory { path: path.to_owned(), source })?;
        }
        Ok(Cache { dir, path: path.to_owned() })
    }

    /// Makes the directory if it is not there, and those above it: where a CPI is
    /// installed by the CLI, nobody else does.
    pub fn create(path: &Path) -> Result<Cache, CacheError> {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        let failed = |source| CacheError::Directory { path: path.to_owned(), source };
        let above: Vec<&Path> = path.ancestors().skip(1).take_while(|above| !is_there(above)).collect();
        for directory in above.into_iter().rev() {
            std::fs::create_dir(directory).map_err(failed)?;
            // The process's own mask is narrower than what others need to pass.
            let open = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(directory, open).map_err(failed)?;
        }
        match std::fs::DirBuilder::new().mode(0o700).create(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Cache::open(path),
            Err(error) => return Err(failed(error)),
        }
        let cache = Cache::open(path)?;
        // Holds no secrets, and others may run what root prepared; the process's own mask is narrower.
        rustix::fs::fchmod(&cache.dir, Mode::from_raw_mode(0o755)).map_err(|error| failed(error.into()))?;
        Ok(cache)
    }

    pub fn lookup(&self, wasm_sha256: &str) -> Result<CacheEntry, Miss> {
        let name = manifest_name(wasm_sha256);
        let (text, written_ns) = self.read_trusted(&name, MANIFEST_MAX)?;
        let doubt = |what| Miss::Doubt(CacheError::Content { name: name.clone(), what });
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|_| doubt("is damaged"))?;
        if Check::CacheManifest.on() && (manifest.format != FORMAT || manifest.wasm_sha256 != wasm_sha256) {
            return Err(doubt("is of another version"));
        }
        if artifact_hash(&manifest.artifact).is_none() {
            return Err(doubt("names no artifact"));
        }
        let Manifest { artifact, artifact_stamp, stamp, description, .. } = manifest;
        Ok(CacheEntry { description, stamp, artifact, artifact_stamp, written_ns })
    }

    /// The open artifact, once its owner, mode and content are as they must be,
    /// and its new stamp if that cost hashing it.
    pub fn artifact(&self, entry: &CacheEntry) -> Result<(File, Option<Stamp>), Miss> {
        let name = &entry.artifact;
        let failed = |source| CacheError::Read { name: name.clone(), source };
        let mut file = self.open_trusted(name)?;
        // Before the content, so that what is written meanwhile shows.
        let stamp = Stamp::from(&file.metadata().map_err(failed)?);
        if stamp.is_still(&entry.artifact_stamp, entry.written_ns) || !Check::CacheArtifactStamp.on() {
            return Ok((file, None));
        }
        let mut hasher = blake3::Hasher::new();
        io::copy(&mut file, &mut hasher).map_err(failed)?;
        if Check::CacheDigest.on() && Some(hasher.finalize().to_hex().as_str()) != artifact_hash(name) {
            return Err(Miss::Doubt(CacheError::Content { name: name.clone(), what: "is damaged" }));
        }
        Ok((file, Some(stamp)))
    }

    /// Stores atomically; the last of two racing writers wins, and both are right.
    pub fn store(
        &self,
        wasm_sha256: &str,
        stamp: &Stamp,
        description: &Description,
        artifact: &[u8],
    ) -> Result<(), CacheError> {
        let name = format!("{}.cwasm", blake3::hash(artifact).to_hex());
        let artifact_stamp = self.write(&name, artifact)?;
        let manifest = Manifest {
            format: FORMAT,
            wasm_sha256: wasm_sha256.to_owned(),
            artifact: name,
            artifact_stamp,
            stamp: stamp.clone(),
            description: description.clone(),
        };
        self.write_manifest(&manifest).map(drop)
    }

    /// The same guest from a file that was touched. Its artifact is looked at first:
    /// a manifest of now vouches for both.
    pub fn restamp(&self, wasm_sha256: &str, stamp: &Stamp, entry: &mut CacheEntry) -> Result<(), CacheError> {
        match self.artifact(entry) {
            Ok((_, Some(touched))) => entry.artifact_stamp = touched,
            Ok((_, None)) => {}
            Err(Miss::Absent) => return Err(CacheError::NoArtifact),
            Err(Miss::Doubt(error)) => return Err(error),
        }
        entry.stamp = stamp.clone();
        self.rewrite(wasm_sha256, entry)
    }

    /// The same artifact from a file that was touched.
    pub fn restamp_artifact(&self, wasm_sha256: &str, entry: &mut CacheEntry, stamp: Stamp) -> Result<(), CacheError> {
        entry.artifact_stamp = stamp;
        self.rewrite(wasm_sha256, entry)
    }

    fn rewrite(&self, wasm_sha256: &str, entry: &mut CacheEntry) -> Result<(), CacheError> {
        let CacheEntry { description, stamp, artifact, artifact_stamp, .. } = &*entry;
        let manifest = Manifest {
            format: FORMAT,
            wasm_sha256: wasm_sha256.to_owned(),
            artifact: artifact.clone(),
            artifact_stamp: artifact_stamp.clone(),
            stamp: stamp.clone(),
            description: description.clone(),
        };
        entry.written_ns = self.write_manifest(&manifest)?;
        Ok(())
    }

    /// Answers when it was written, which is after what it vouches for.
    fn write_manifest(&self, manifest: &Manifest) -> Result<i128, CacheError> {
        manifest.stamp.wait_past_clock_tick();
        manifest.artifact_stamp.wait_past_clock_tick();
        let name = manifest_name(&manifest.wasm_sha256);
        let text = serde_json::to_vec(manifest).map_err(|error| self.unwritten(&name, error))?;
        Ok(self.write(&name, &text)?.written_ns())
    }

    /// Answers the stamp of what lies there now.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<Stamp, CacheError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| self.unwritten(name, io::Error::other(error)))?;
        let temporary = format!(".{}.tmp", crate::component::source::hex(&random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(FOR_ALL);
        let file = rustix::fs::openat(&self.dir, &temporary, flags, mode);
        let mut file = File::from(file.map_err(|error| self.unwritten(name, error))?);
        let written = rustix::fs::fchmod(&file, mode)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(bytes))
            .and_then(|()| file.sync_all())
            .and_then(|()| rustix::fs::renameat(&self.dir, &temporary, &self.dir, name).map_err(Into::into))
            // Last: being renamed is a change, too.
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
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | no_link(Check::CacheFileLink);
        let file = match rustix::fs::openat(&self.dir, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Err(Miss::Absent),
            Err(error) => return Err(Miss::Doubt(CacheError::Open { name: name.to_owned(), source: error.into() })),
        };
        let metadata = file.metadata().map_err(|source| CacheError::Read { name: name.to_owned(), source })?;
        if !metadata.is_file() {
            return Err(Miss::Doubt(CacheError::Content { name: name.to_owned(), what: "is no regular file" }));
        }
        match trusted(metadata.uid(), metadata.mode()) {
            Err(source) if Check::CacheFile.on() => {
                Err(Miss::Doubt(CacheError::UntrustedFile { name: name.to_owned(), source }))
            }
            _ => Ok(file),
        }
    }

    /// The content, and when it was written.
    fn read_trusted(&self, name: &str, max: u64) -> Result<(Vec<u8>, i128), Miss> {
        let failed = |source| CacheError::Read { name: name.to_owned(), source };
        let file = self.open_trusted(name)?;
        let metadata = file.metadata().map_err(failed)?;
        let stamp = Stamp::from(&metadata);
        let mut bytes = Vec::with_capacity(room(&metadata, max));
        file.take(max).read_to_end(&mut bytes).map_err(failed)?;
        Ok((bytes, stamp.written_ns()))
    }
}

fn is_there(directory: &Path) -> bool {
    directory.as_os_str().is_empty() || directory.exists()
}

fn no_link(check: Check) -> OFlags {
    if check.on() { OFlags::NOFOLLOW } else { OFlags::empty() }
}

/// One manifest per guest and runtime version; artifacts of another wasmtime or
/// other settings are refused when they are loaded.
fn manifest_name(wasm_sha256: &str) -> String {
    format!("{wasm_sha256}-{}.json", env!("CARGO_PKG_VERSION"))
}

/// The hash in an artifact's name; also what keeps the name within the directory.
fn artifact_hash(name: &str) -> Option<&str> {
    name.strip_suffix(".cwasm").filter(|hash| crate::component::source::is_sha256(hash))
}
