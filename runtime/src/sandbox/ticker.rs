//! The one thread beside the guest's: it advances the engine's epoch, so that
//! running code looks up, and watches the wall clock and the signals.

use crate::sandbox::ending::{Ending, Why};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wasmtime::Engine;

pub const TICK: Duration = Duration::from_millis(10);

/// Runs until the process ends; a call is a process.
pub fn start(engine: Engine, ending: Arc<Ending>) -> std::io::Result<()> {
    let signals = [(SIGTERM, "SIGTERM"), (SIGINT, "SIGINT")].map(|(signal, name)| {
        let arrived = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal, Arc::clone(&arrived)).map(|_| (arrived, name))
    });
    let signals = signals.into_iter().collect::<Result<Vec<_>, _>>()?;
    std::thread::Builder::new().name("ticker".into()).stack_size(64 * 1024).spawn(move || {
        loop {
            std::thread::sleep(TICK);
            engine.increment_epoch();
            ending.begin_if_wall_passed();
            for (arrived, name) in &signals {
                if arrived.load(Ordering::Relaxed) {
                    ending.begin(Why::Signal(name));
                }
            }
        }
    })?;
    Ok(())
}
