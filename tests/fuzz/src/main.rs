//! What libFuzzer drives: `fuzz --target=NAME [-flags] [CORPUS]`.
//!
//! One program for all targets, as linking takes longer than anything else.
//! `--list` prints the targets. Flags with one dash are libFuzzer's own.

#![no_main]
#![allow(unsafe_code, reason = "libFuzzer is C++, and calls us as C")]
#![allow(clippy::print_stdout, reason = "the list is for xtask")]

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

static BODY: OnceLock<fuzz::Body> = OnceLock::new();

#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerInitialize(_count: *mut c_int, _words: *mut *mut *mut c_char) -> c_int {
    if std::env::args().any(|word| word == "--list") {
        fuzz::TARGETS.iter().for_each(|(name, _)| println!("{name}"));
        std::process::exit(0);
    }
    let named = std::env::args().find_map(|word| word.strip_prefix("--target=").map(str::to_owned));
    let body = fuzz::TARGETS.iter().find(|(name, _)| named.as_deref() == Some(*name));
    let _ = BODY.set(body.expect("--target= names one of those that --list prints").1);
    // Before anything unwinds: libFuzzer takes the signal, and keeps the input.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        std::process::abort();
    }));
    0
}

#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> c_int {
    // SAFETY: libFuzzer hands over its own buffer of this size, and waits.
    let input = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, size) } };
    if let Some(body) = BODY.get() {
        body(input);
    }
    0
}
