//! The one thread beside the guest's: it advances the engine's epoch, so that
//! running code looks up, and watches the wall clock and the signals.

use crate::sandbox::ending::{Ending, Why};
use crate::signals;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::Engine;

pub const TICK: Duration = Duration::from_millis(10);

/// Runs until the process ends; a call is a process.
pub fn start(engine: Engine, ending: Arc<Ending>) -> std::io::Result<()> {
    std::thread::Builder::new().name("ticker".into()).stack_size(64 * 1024).spawn(move || {
        loop {
            std::thread::sleep(TICK);
            engine.increment_epoch();
            ending.begin_if_wall_passed();
            if let Some(signal) = signals::arrived() {
                ending.begin(Why::Signal(signal));
            }
        }
    })?;
    Ok(())
}
