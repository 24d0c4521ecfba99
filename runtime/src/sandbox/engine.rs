//! All settings of the engine, each with its reason.
//!
//! The tool compiles with these settings, and the hot program loads with them. wasmtime rejects
//! an artifact that was compiled with other settings.

use crate::limits::Limits;
use std::num::NonZeroUsize;
use wasm_cpi_checks::Check;
use wasmtime::{Config, Engine, WasmBacktraceDetails};

/// The address space that is reserved for each memory. A larger memory moves when it grows. The
/// value is part of the compiled code, so it is a constant and not a limit of the configuration.
const MEMORY_RESERVATION: u64 = 256 << 20;

/// The additional stack for host functions, which run on the guest's stack.
const HOST_STACK: usize = 1 << 20;

/// Returns an engine with these limits.
pub fn build(limits: &Limits) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    // Code for the baseline architecture instead of this machine, because another machine may
    // use the same disk later.
    #[cfg(feature = "compiler")]
    config.target(TARGET)?;
    // Needed for deadlines of code that never calls the host.
    config.epoch_interruption(true);
    let stack = usize::try_from(limits.stack_kib * 1024)?;
    config.max_wasm_stack(stack);
    config.async_stack_size(stack + HOST_STACK);
    config.memory_reservation(MEMORY_RESERVATION);
    config.memory_reservation_for_growth(MEMORY_RESERVATION);
    // By default, an environment variable decides this.
    config.wasm_backtrace_details(WasmBacktraceDetails::Disable);
    config.wasm_backtrace_max_frames(NonZeroUsize::new(30));
    // The adapters that wasmtime generates between nested components have one memory for each side.
    // `component::declarations` refuses a guest whose own modules have several.
    config.wasm_multi_memory(true);
    // Guests do not need these features, and some had vulnerabilities.
    config.wasm_memory64(Check::EngineMemory64.choose(false, true));
    let proposals = Check::EngineProposals.choose(false, true);
    // The collector is not compiled in, but `i31` would still be accepted.
    config.wasm_gc(false);
    config.wasm_relaxed_simd(proposals);
    config.wasm_tail_call(proposals);
    config.wasm_custom_page_sizes(proposals);
    config.wasm_wide_arithmetic(proposals);
    Engine::new(&config)
}

#[cfg(all(feature = "compiler", target_arch = "x86_64"))]
const TARGET: &str = "x86_64-unknown-linux-gnu";
#[cfg(all(feature = "compiler", target_arch = "aarch64"))]
const TARGET: &str = "aarch64-unknown-linux-gnu";
