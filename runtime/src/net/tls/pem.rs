//! Reads PEM from settings and files. Rejects files that other users can write.

use super::TlsError;
use crate::net::preopened::PreopenedFile;
use crate::trust;
use std::path::Path;
use wasm_cpi_checks::Check;

/// Returns true if a text holds a block in PEM, and is not the path of a file.
pub fn is_pem(text: &str) -> bool {
    text.contains("-----BEGIN ")
}

/// Returns the PEM text of a setting, which is the text itself or the path of a file.
pub fn pem_or_file(setting: &str) -> Result<String, TlsError> {
    if is_pem(setting) { Ok(setting.to_owned()) } else { read_pem(Path::new(setting)) }
}

/// Returns the text of a PEM file. Rejects a file that other users can write.
pub fn read_pem(path: &Path) -> Result<String, TlsError> {
    pem_in(&PreopenedFile::new(path))
}

/// Returns the text of a private key file. Rejects a file that other users can write, or that all
/// users can read.
pub fn read_key(path: &Path) -> Result<String, TlsError> {
    key_in(&PreopenedFile::new(path))
}

pub(in crate::net) fn pem_in(file: &PreopenedFile) -> Result<String, TlsError> {
    trusted_pem(file).map(|(text, _)| text)
}

pub(in crate::net) fn key_in(file: &PreopenedFile) -> Result<String, TlsError> {
    let (text, mode) = trusted_pem(file)?;
    if Check::KeyFile.refuses(mode & 0o004 != 0) {
        return Err(TlsError::KeyReadableByAll(file.path().to_owned()));
    }
    Ok(text)
}

/// Returns the text and the mode of the file.
fn trusted_pem(file: &PreopenedFile) -> Result<(String, u32), TlsError> {
    const MAX: usize = 1024 * 1024;
    let path = || file.path().to_owned();
    let unreadable = |source| TlsError::Unreadable { path: path(), source };
    let untrusted = |source| TlsError::Untrusted { path: path(), source };
    let mode = file.inspect(trust::check_file).map_err(unreadable)?.map_err(untrusted)?;
    match file.read(MAX).map(String::from_utf8).map_err(unreadable)? {
        Ok(text) if is_pem(&text) => Ok((text, mode)),
        _ => Err(TlsError::NoPem(path())),
    }
}
