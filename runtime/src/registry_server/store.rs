//! Stores settings by ID in SQLite.
//!
//! A write is acknowledged once it is synced to disk: every transaction uses the write-ahead log
//! with full synchronisation. So acknowledged writes survive a kill and a loss of power.

use super::files;
use crate::failure::Failure;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The version of the tables. A database with a newer one is not used.
const LAYOUT: i64 = 1;

/// The open database.
pub(super) struct Store(Mutex<Connection>);

impl Store {
    pub(super) fn open(path: &Path) -> Result<Store, Failure> {
        files::create_store_file(path)?;
        let failed = |why: String| Failure::config(format!("registry: store `{}` {why}", path.display()));
        let unusable = |error| {
            failed(format!("cannot be used: {error}; if it is damaged, move it away, and a new one is created"))
        };
        let connection = connect(path).map_err(unusable)?;
        let layout: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(unusable)?;
        if layout > LAYOUT {
            return Err(failed("was written by a newer version of wasm-cpi; use that version".into()));
        }
        create_tables(&connection).map_err(unusable)?;
        Ok(Store(Mutex::new(connection)))
    }

    pub(super) fn get(&self, id: &str) -> rusqlite::Result<Option<String>> {
        let connection = self.lock();
        let mut query = connection.prepare_cached("SELECT settings FROM instances WHERE id = ?1")?;
        query.query_row(params![id], |row| row.get(0)).optional()
    }

    pub(super) fn put(&self, id: &str, settings: &str) -> rusqlite::Result<()> {
        let connection = self.lock();
        let sql = "INSERT INTO instances (id, settings) VALUES (?1, ?2) \
                   ON CONFLICT (id) DO UPDATE SET settings = excluded.settings";
        connection.prepare_cached(sql)?.execute(params![id, settings]).map(drop)
    }

    pub(super) fn delete(&self, id: &str) -> rusqlite::Result<()> {
        self.lock().prepare_cached("DELETE FROM instances WHERE id = ?1")?.execute(params![id]).map(drop)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    // Deleted settings held passwords.
    connection.pragma_update(None, "secure_delete", "ON")?;
    Ok(connection)
}

fn create_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS instances (id TEXT PRIMARY KEY, settings TEXT NOT NULL) STRICT, WITHOUT ROWID",
    )?;
    connection.pragma_update(None, "user_version", LAYOUT)
}

#[cfg(test)]
mod tests;
