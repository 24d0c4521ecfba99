//! What makes a call look up: at the wall clock, at the signals, at its own time.
//!
//! Running code looks up when the engine's epoch advances, which a timer of the
//! kernel does after so much computing; a guest that waits is looked after by the
//! loop that waits. No thread: starting one, and seeing it off, would take a
//! tenth of a short call.

use crate::sandbox::ending::{Ending, Why};
use crate::signals;
use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use std::convert::Infallible;
use std::io;
use std::time::Duration;
use wasmtime::Engine;

pub const TICK: Duration = Duration::from_millis(10);

/// Advances the epoch from now on, until the process ends; a call is a process.
pub fn start(engine: &Engine) -> io::Result<()> {
    let engine = engine.clone();
    // SAFETY: an epoch is an atomic counter. The handler does nothing but add to it.
    #[expect(unsafe_code, reason = "whether a handler may run at any time, no type can tell")]
    unsafe { signal_hook::low_level::register(Signal::SIGVTALRM as i32, move || engine.increment_epoch()) }?;
    let notify = SigevNotify::SigevSignal { signal: Signal::SIGVTALRM, si_value: 0 };
    let mut timer = Timer::new(ClockId::CLOCK_PROCESS_CPUTIME_ID, SigEvent::new(notify)).map_err(|error| {
        io::Error::other(format!("no timer ({error}): raise the limit of pending signals, `ulimit -i`"))
    })?;
    timer.set(Expiration::Interval(TICK.into()), TimerSetTimeFlags::empty())?;
    std::mem::forget(timer);
    Ok(())
}

/// Looks up as long as it is waited for.
pub async fn watch(ending: &Ending) -> Infallible {
    loop {
        look(ending);
        tokio::time::sleep(TICK).await;
    }
}

/// The call begins to end if it is time, or if somebody asked for it.
pub fn look(ending: &Ending) {
    ending.begin_if_wall_passed();
    if let Some(signal) = signals::arrived() {
        ending.begin(Why::Signal(signal));
    }
}
