//! What a call leaves for people: lines on stderr, the audit log, and the vault that
//! keeps secrets out of both.

use crate::audit::Audit;
use crate::component::prepared::CacheEvent;
use crate::config::EarlySettings;
use crate::log::Log;
use crate::rpc::request::Request;
use crate::vault::Vault;
use std::sync::Arc;

/// The log, the audit log and the vault of one call.
pub struct Record {
    pub vault: Arc<Vault>,
    pub log: Arc<Log>,
    pub audit: Arc<Audit>,
}

impl Record {
    /// Starts the record of a call; `request` is absent if it could not be read.
    pub fn open(settings: &EarlySettings, request: Option<&Request>) -> Record {
        let vault = Arc::new(Vault::new());
        let request_id = request.and_then(|request| request.request_id.as_deref());
        let log = Arc::new(Log::new(settings.log_level, settings.log_format, request_id, Arc::clone(&vault)));
        let audit = Arc::new(Audit::open(settings.audit.as_ref(), request, &log));
        if let Some(sha256) = &settings.guest_sha256 {
            audit.pinned(sha256);
        }
        Record { vault, log, audit }
    }

    /// Reports what happened to the cache of prepared guests.
    pub fn cache_event(&self, event: &CacheEvent) {
        self.log.write(event.level(), &event.to_string());
        self.audit.cache(event);
    }
}
