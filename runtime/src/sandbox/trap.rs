//! Explains why a guest stopped, in one sentence, with its backtrace for the log.

use crate::failure::Failure;
use crate::limits::Limits;
use crate::sandbox::call_clock::{CleanupOver, EndReason};
use crate::sandbox::engine_limit::EngineLimit;
use crate::sandbox::meter::LimitReached;
use wasm_cpi_checks::{Check, RefusedBy};
use wasmtime::{FrameInfo, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

/// Returns the failure for an error of the engine. `method` is the method that ran.
pub fn explain(error: wasmtime::Error, reason: Option<EndReason>, method: &str, limits: &Limits) -> Failure {
    let backtrace = error.downcast_ref::<WasmBacktrace>().map(lines).unwrap_or_default();
    cause(&error, reason, method, limits).with_detail(backtrace)
}

/// Returns the backtrace with one line for each frame. Names with control characters are escaped.
fn lines(backtrace: &WasmBacktrace) -> String {
    let names = |frame: &FrameInfo| [frame.func_name().map(str::to_owned), frame.module().name().map(str::to_owned)];
    let names = backtrace.frames().iter().flat_map(names).flatten();
    let steering = names.filter(|name| Check::GuestLines.refuses(name.contains(char::is_control)));
    steering.fold(backtrace.to_string(), |text, name| text.replace(&name, &name.escape_debug().to_string()))
}

fn cause(error: &wasmtime::Error, reason: Option<EndReason>, method: &str, limits: &Limits) -> Failure {
    if let Some(limit) = error.downcast_ref::<LimitReached>() {
        return limit.failure();
    }
    if error.downcast_ref::<CleanupOver>().is_some()
        && let Some(reason) = reason
    {
        return reason.failure();
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        let what =
            format!("called exit({}) in {method} instead of returning a result; this is a bug in the guest", exit.0);
        return Failure::guest(what).refused_by(Check::ExitIsFailure);
    }
    match EngineLimit::of(error) {
        Some(EngineLimit::HostCallData) => {
            return Failure::limit("hostcall_mib", limits.hostcall_mib, "the data of one host call");
        }
        Some(EngineLimit::Handles) => {
            return Failure::limit("handles", limits.handles, "the guest's open resources");
        }
        None => {}
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => Failure::limit("stack_kib", limits.stack_kib, "the guest's recursion"),
        Some(Trap::MemoryOutOfBounds) => Failure::guest(format!(
            "trapped in {method}: out of bounds memory access; this is a bug in the guest, for example endless recursion"
        )),
        Some(trap) => {
            let trap = trap.to_string();
            let trap = trap.strip_prefix("wasm trap: ").unwrap_or(&trap);
            Failure::guest(format!("trapped in {method}: {trap}; this is a bug in the guest, see the log for where"))
        }
        None => Failure::guest(format!("failed in {method}: {}; this is a bug in the guest", error.root_cause())),
    }
}
