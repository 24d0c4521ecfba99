//! SIGTERM and SIGINT are recorded instead of ending the process, so that a call that has started
//! cleans up and ends with a response.

use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A flag for each signal. Signals belong to the process, so there is one list for it.
static ARRIVED: OnceLock<[(Arc<AtomicBool>, &str); 2]> = OnceLock::new();

/// Records signals from now on. Before this, a signal ends the process, which is right as long as
/// no call has started.
pub fn watch() {
    ignore_file_size_signal();
    ARRIVED.get_or_init(|| {
        [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")].map(|(signal, name)| {
            let flag = Arc::new(AtomicBool::new(false));
            // Fails only for signals that cannot be caught.
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
            (flag, name)
        })
    });
}

/// Prevents SIGXFSZ from ending the process. A write beyond the limit on file sizes then returns
/// an error.
pub fn ignore_file_size_signal() {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    REGISTERED.get_or_init(|| drop(signal_hook::flag::register(SIGXFSZ, Arc::default())));
}

/// Returns the name of a signal that has arrived, if any.
pub fn arrived() -> Option<&'static str> {
    let signals = ARRIVED.get()?;
    signals.iter().find(|(flag, _)| flag.load(Ordering::Relaxed)).map(|(_, name)| *name)
}
