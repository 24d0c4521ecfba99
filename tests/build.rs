//! Links the test programs so that they start other programs without a fork.
//!
//! Rust's `Command` uses `posix_spawn` if it finds these symbols of the C library, which a
//! static program has only if something refers to them. Without them `Command` forks, and a
//! fork of a test program with many threads costs more than most of the programs it starts.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu") {
        for name in ["gnu_get_libc_version", "posix_spawn_file_actions_addchdir_np"] {
            println!("cargo::rustc-link-arg=-Wl,--undefined={name}");
        }
    }
}
