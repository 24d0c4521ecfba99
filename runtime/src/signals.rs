//! SIGTERM and SIGINT, noticed instead of obeyed: a call that was begun ends with
//! a response, and with what it created cleaned up.

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// One per process, as signals are.
static ARRIVED: OnceLock<[(Arc<AtomicBool>, &str); 2]> = OnceLock::new();

/// From here on signals are only noted. Before, they end the process, which is
/// right while nothing was begun.
pub fn watch() {
    survive_full_files();
    ARRIVED.get_or_init(|| {
        [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")].map(|(signal, name)| {
            let flag = Arc::new(AtomicBool::new(false));
            // Fails for signals that cannot be caught, and these can be.
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
            (flag, name)
        })
    });
}

/// A file that reached the process's limit on sizes is an error of its write, and
/// no reason to end.
pub fn survive_full_files() {
    static NOTED: OnceLock<()> = OnceLock::new();
    NOTED.get_or_init(|| drop(signal_hook::flag::register(SIGXFSZ, Arc::default())));
}

/// The signal that arrived, if one did.
pub fn arrived() -> Option<&'static str> {
    let signals = ARRIVED.get()?;
    signals.iter().find(|(flag, _)| flag.load(Ordering::Relaxed)).map(|(_, name)| *name)
}
