//! The program that libFuzzer runs: `fuzz --target=NAME [-flags] [CORPUS]`.
//!
//! It holds all targets, as linking is the slowest step of the build. `--list` prints
//! the targets. Flags with one dash are libFuzzer's.

#![no_main]
#![allow(unsafe_code, reason = "libFuzzer is C++, and calls these functions as C")]
#![allow(clippy::print_stdout, reason = "xtask reads the list")]

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

static TARGET: OnceLock<fuzz::Target> = OnceLock::new();

#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerInitialize(_count: *mut c_int, _arguments: *mut *mut *mut c_char) -> c_int {
    if std::env::args().any(|argument| argument == "--list") {
        fuzz::TARGETS.iter().for_each(|(name, _)| println!("{name}"));
        std::process::exit(0);
    }
    let wanted = std::env::args().find_map(|argument| argument.strip_prefix("--target=").map(str::to_owned));
    let target = fuzz::TARGETS.iter().find(|(name, _)| wanted.as_deref() == Some(*name));
    let _ = TARGET.set(target.expect("--target= must name one of the targets that --list prints").1);
    // Aborts before the stack unwinds: libFuzzer catches the signal and stores the input.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        hook(info);
        std::process::abort();
    }));
    0
}

#[unsafe(no_mangle)]
extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> c_int {
    // SAFETY: libFuzzer passes its own buffer of this size, and does not change it until this function returns.
    let input = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, size) } };
    if let Some(target) = TARGET.get() {
        target(input);
    }
    0
}
