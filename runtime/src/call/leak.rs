//! What operators read after a guest got or returned a credential: why calls are refused, and how
//! they are allowed again.

use crate::call::execute::FinishedRun;
use crate::config::{self, Config, ConfigSource};
use crate::failure::Failure;
use crate::leak_latch::RecordedLeak;
use crate::sandbox::call_clock::EndReason;
use std::path::Path;

/// Says why calls of a guest are refused, and how they are allowed again.
pub fn leak_refusal(leak: &RecordedLeak, config: &Config) -> String {
    let RecordedLeak { at, method, secret, place, .. } = leak;
    format!(
        "{place} held the credential `{secret}` in an earlier call of this guest (`{method}`, {at}), so its calls are \
         refused; look at its requests in the audit log, and then run `{}`",
        forget_command(&config.source, &config.cache)
    )
}

/// Returns the command that allows calls of a guest again. The CLI deletes a config that it
/// installed, so for such a config the command names the cache instead.
fn forget_command(source: &ConfigSource, cache: &Path) -> String {
    let path = source.written_path();
    if config::is_installed_by_cli(&path) {
        return format!("wasm-cpi forget-leaks --cache {}", config::written_path(cache).display());
    }
    let module = source.module.as_ref().map(|module| format!(" --module {module}")).unwrap_or_default();
    format!("wasm-cpi forget-leaks --config {}{module}", path.display())
}

/// Says what follows for later calls.
pub(super) fn after_leak(run: &FinishedRun) -> String {
    let command = forget_command(&run.source, &run.cache);
    format!("; further calls of this guest are refused until you have looked at this and run `{command}`")
}

/// Adds to the failure of a call that ends because of a leak what follows for later calls.
pub(super) fn with_leak(failure: Failure, why: &EndReason, run: &FinishedRun) -> Failure {
    if !matches!(why, EndReason::Leak(_)) || run.latch.is_none() {
        return failure;
    }
    Failure { message: format!("{}{}", failure.message, after_leak(run)), ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_the_config_or_the_cache_of_a_config_that_the_cli_deletes() {
        let installed = "/h/.bosh/installations/1-2";
        for (config, module, cache, arguments) in [
            ("/var/vcap/jobs/j/bin/../config/cpi.json", None, "/c", "--config /var/vcap/jobs/j/config/cpi.json"),
            ("/job/cpi.json", Some("acme"), "/c", "--config /job/cpi.json --module acme"),
            (&format!("{installed}/jobs/j/config/cpi.json"), None, &format!("{installed}/data/j/cache"), ""),
            (
                &format!("{installed}/jobs/j/bin/../config/cpi.json"),
                None,
                &format!("{installed}/x/../data/j/cache"),
                "",
            ),
        ] {
            let arguments = match arguments {
                "" => format!("--cache {installed}/data/j/cache"),
                arguments => arguments.to_owned(),
            };
            let source = ConfigSource { module: module.map(str::to_owned), ..ConfigSource::new(Path::new(config)) };
            let command = forget_command(&source, Path::new(cache));
            assert_eq!(command, format!("wasm-cpi forget-leaks {arguments}"));
        }
    }
}
