//! Adds to the words about a leak the command that allows calls of the guest again.

use crate::call::execute::FinishedRun;
use crate::config::{self, Config, ConfigSource};
use crate::failure::Failure;
use crate::leak_latch::RecordedLeak;
use crate::leak_message;
use crate::sandbox::call_clock::EndReason;
use std::path::Path;

/// Says why calls of a guest are refused, and how they are allowed again.
pub fn leak_refusal(leak: &RecordedLeak, config: &Config) -> String {
    let RecordedLeak { at, method, secret, place, .. } = leak;
    leak_message::refused_call(place, secret, method, at, &forget_command(&config.source, &config.cache))
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

/// Says that later calls are refused, and which command allows them again.
pub(super) fn further_calls_refused(run: &FinishedRun) -> String {
    leak_message::further_calls_refused(&forget_command(&run.ended.source, &run.ended.cache))
}

/// Appends to the failure of a leak that later calls are refused, and the command that allows them again.
pub(super) fn with_leak(failure: Failure, why: &EndReason, run: &FinishedRun) -> Failure {
    if !matches!(why, EndReason::Leak(_)) || run.capabilities.latch.is_none() {
        return failure;
    }
    Failure { message: format!("{}; {}", failure.message, further_calls_refused(run)), ..failure }
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
