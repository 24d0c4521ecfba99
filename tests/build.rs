//! How the test programs are linked: so that they start others without a copy of
//! themselves.
//!
//! Rust's `Command` asks whether the C library can do that, by names that a static
//! program has only if somebody wants them. Without them it forks, and a fork of a
//! test program with all its threads costs more than most of what it starts.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
        for name in ["gnu_get_libc_version", "posix_spawn_file_actions_addchdir_np"] {
            println!("cargo::rustc-link-arg=-Wl,--undefined={name}");
        }
    }
}
