//! The record of a call: lines on stderr, the audit log, and the vault that keeps secrets out
//! of both.

use crate::audit::Audit;
use crate::component::cache::CacheEvent;
use crate::config::EarlySettings;
use crate::log::Log;
use crate::rpc::request::Request;
use crate::vault::Vault;
use std::sync::Arc;
use wasm_cpi_checks::with_code;

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
            audit.set_pin(sha256);
        }
        Record { vault, log, audit }
    }

    /// Reports what happened to the cache of prepared guests.
    pub fn cache_event(&self, event: &CacheEvent) {
        self.audit.cache(event);
        self.log.write(event.level(), &with_code(&event.to_string(), event.check()));
    }
}
