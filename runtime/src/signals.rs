//! SIGTERM, SIGINT, SIGHUP and SIGQUIT are recorded instead of ending the process, so that a call
//! that has started cleans up and ends with a response.
//!
//! SIGPIPE is ignored by the standard library and stays so: otherwise any server that closes a
//! connection could end a call.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A flag for each signal. Signals belong to the process, so there is one list for it.
static ARRIVED: OnceLock<[(Arc<AtomicBool>, &str); 4]> = OnceLock::new();

/// Records signals from now on. Before this, a signal ends the process, which is right as long as
/// no call has started.
pub fn record_from_now_on() {
    ignore_file_size_signal();
    ARRIVED.get_or_init(|| {
        let signals = [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT"), (SIGHUP, "SIGHUP"), (SIGQUIT, "SIGQUIT")];
        signals.map(|(signal, name)| {
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
