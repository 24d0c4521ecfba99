//! Checks the cache directory: prepared guests, remembered leaks and kept tokens.

use super::CheckReport;
use crate::call;
use crate::component::cache::Cache;
use crate::config::Config;
use crate::leak_latch::{LeakLatch, OnLeak};
use crate::token_store::{self, TokenStoreError};
use std::path::Path;
use wasm_cpi_checks::{Check, with_code};

impl CheckReport {
    pub(super) fn check_cache(&mut self, path: &Path, guest_sha256: &str) {
        match Cache::open(path) {
            Ok(cache) => match cache.lookup(guest_sha256) {
                Ok(_) => self.good.push(format!("{}: the guest is prepared", path.display())),
                Err(_) => self.warnings.push(
                    "the guest is not prepared, so the first call compiles it; run `wasm-cpi prepare` to avoid that"
                        .into(),
                ),
            },
            Err(error) if error.is_absent() => self.warnings.push(format!(
                "the cache directory {} does not exist yet: the first call creates it, if its user may, and compiles the guest; run \
                 `wasm-cpi prepare` to avoid that",
                path.display()
            )),
            Err(error) => {
                let what = format!("{error}; every call compiles the guest");
                self.warnings.push(with_code(&what, error.check()));
            }
        }
    }

    /// Reports a leak because of which calls are refused.
    pub(super) fn report_leaks(&mut self, config: &Config) {
        if config.on_leak == OnLeak::End || !LeakLatch::exists(&config.cache, &config.guest_of_job()) {
            return;
        }
        match LeakLatch::open(&config.cache, &config.guest_of_job()) {
            Ok(latch) => {
                let refusal = latch.recorded().map(|leak| call::leak_refusal(leak, config));
                self.problems.extend(refusal.map(|text| with_code(&text, Some(Check::LeakLatched))));
            }
            Err(error) => self.problems.push(error.to_string()),
        }
    }

    /// Reports how many tokens are kept in the cache directory.
    pub(super) fn report_tokens(&mut self, config: &Config) {
        let cache = config.cache.display();
        match token_store::count_tokens(&config.cache) {
            // The cache directory has warnings of its own, and calls create it.
            Err(TokenStoreError::Io(_) | TokenStoreError::Directory(_)) | Ok(0) => {}
            Err(error) if config.keep_tokens => self.warnings.push(error.to_string()),
            Err(_) => {}
            Ok(count) if config.keep_tokens => {
                self.good.push(format!("{cache}: tokens kept for later calls: {count}; `wasm-cpi forget-tokens` deletes them"));
            }
            Ok(count) => self.warnings.push(format!(
                "`keep_tokens` is false, but tokens are still in {cache}: {count}; `wasm-cpi forget-tokens` deletes them"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_does_not_exist_yet_is_a_warning_with_the_command_that_creates_it() {
        let mut report = CheckReport::default();
        report.check_cache(Path::new("/nonexistent/cache"), "00");
        let [warning] = report.warnings.as_slice() else { panic!("{:?}", report.warnings) };
        assert!(warning.starts_with("the cache directory /nonexistent/cache does not exist yet: "), "{warning}");
        assert!(warning.ends_with("run `wasm-cpi prepare` to avoid that"), "{warning}");
    }
}
