//! Every engine setting in one place, each with its reason.
//!
//! The tool compiles with these settings and the hot binary loads with them:
//! what differs between the two is refused when an artifact is loaded.

use crate::limits::Limits;
use std::num::NonZeroUsize;
use wasm_cpi_checks::Check;
use wasmtime::{Config, Engine, WasmBacktraceDetails};

/// Address space per memory; larger ones move when they grow. Part of the
/// compiled code, hence a constant and no limit of the configuration.
const MEMORY_RESERVATION: u64 = 256 << 20;

/// Host functions run on the guest's stack as well.
const HOST_STACK: usize = 1 << 20;

pub fn engine(limits: &Limits) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    // Code for the plain architecture, not for the machine that prepared it: the
    // cache may lie on a disk that another machine gets.
    #[cfg(feature = "compiler")]
    config.target(TARGET)?;
    // Deadlines reach code that never calls the host.
    config.epoch_interruption(true);
    let stack = usize::try_from(limits.stack_kib * 1024)?;
    config.max_wasm_stack(stack);
    config.async_stack_size(stack + HOST_STACK);
    config.memory_reservation(MEMORY_RESERVATION);
    config.memory_reservation_for_growth(MEMORY_RESERVATION);
    // Never decided by the environment, which is the default.
    config.wasm_backtrace_details(WasmBacktraceDetails::Disable);
    config.wasm_backtrace_max_frames(NonZeroUsize::new(30));
    // What guests do not need has had holes: leave it out.
    config.wasm_memory64(!Check::EngineMemory64.on());
    config.wasm_multi_memory(!Check::EngineMultiMemory.on());
    let proposals = !Check::EngineProposals.on();
    // Leaving out the collector leaves `i31` in.
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
