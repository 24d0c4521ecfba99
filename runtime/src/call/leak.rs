//! What operators read after a guest got or returned a credential: why calls are refused, and how
//! they are allowed again.

use crate::call::execute::FinishedRun;
use crate::config::ConfigSource;
use crate::failure::Failure;
use crate::leak_latch::RecordedLeak;
use crate::sandbox::call_clock::EndReason;

/// Says why calls of a guest are refused, and how they are allowed again.
pub fn leak_refusal(leak: &RecordedLeak, source: &ConfigSource) -> String {
    let RecordedLeak { at, method, secret, place, .. } = leak;
    format!(
        "{place} held the credential `{secret}` in an earlier call of this guest (`{method}`, {at}), so its calls are \
         refused; look at its requests in the audit log, and then run `{}`",
        forget_command(source)
    )
}

/// Returns the command that allows calls of a guest again.
fn forget_command(source: &ConfigSource) -> String {
    let module = source.module.as_ref().map(|module| format!(" --module {module}")).unwrap_or_default();
    format!("wasm-cpi forget-leaks --config {}{module}", source.written_path().display())
}

/// Says what follows for later calls.
pub(super) fn after_leak(run: &FinishedRun) -> String {
    let command = forget_command(&run.source);
    format!("; further calls of this guest are refused until you have looked at this and run `{command}`")
}

/// Adds to the failure of a call that ends because of a leak what follows for later calls.
pub(super) fn with_leak(failure: Failure, why: &EndReason, run: &FinishedRun) -> Failure {
    if !matches!(why, EndReason::Leak(_)) || run.latch.is_none() {
        return failure;
    }
    Failure { message: format!("{}{}", failure.message, after_leak(run)), ..failure }
}
