//! The behavior of a hostile or broken guest. Most of these operations do not end, and
//! native tests do not run them.

use std::hint::black_box;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use wasm_cpi_sdk::clock;

use super::Failure;

/// The size of each frame on the guest's own stack: almost nothing, so that the
/// engine's stack overflows first, or a page, so that the guest's stack does.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Frames {
    Small,
    Large,
}

pub(super) fn forever() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// Computes for `ms` milliseconds.
pub(super) fn spin(ms: u64) -> Value {
    let end = clock::monotonic().saturating_add(Duration::from_millis(ms));
    while clock::monotonic() < end {
        for turn in 0..1_000_000_u32 {
            black_box(turn);
        }
    }
    Value::Null
}

/// Allocates memory, writes to it, and never frees it.
pub(super) fn grow(mib: usize) -> Result<Value, Failure> {
    const MIB: usize = 1024 * 1024;
    const PAGE: usize = 64 * 1024;
    let mut allocated = 0;
    while allocated < mib {
        let mut block: Vec<u8> = vec![];
        block.try_reserve_exact(MIB).map_err(|_| {
            Failure::new("memory", format!("allocation failed after {allocated} MiB")).with("mib", allocated)
        })?;
        block.resize(MIB, 0);
        block.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        black_box(block.leak());
        allocated += 1;
    }
    Ok(allocated.into())
}

pub(super) fn recurse(frames: Option<Frames>) -> Value {
    match frames.unwrap_or(Frames::Small) {
        Frames::Small => small_frame(0).into(),
        Frames::Large => large_frame(0).into(),
    }
}

#[inline(never)]
fn small_frame(depth: u64) -> u64 {
    if black_box(depth) == u64::MAX { 0 } else { black_box(small_frame(depth + 1)) + 1 }
}

#[inline(never)]
fn large_frame(depth: u64) -> u64 {
    let mut frame = [0_u8; 4096];
    black_box(&mut frame);
    if black_box(depth) == u64::MAX { 0 } else { black_box(large_frame(depth + 1)) + u64::from(frame[7]) + 1 }
}

pub(super) fn trap() -> ! {
    #[cfg(target_family = "wasm")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_family = "wasm"))]
    std::process::abort();
}
