//! Checks the deadlines of a call, signals and the caller while its guest runs or waits.
//!
//! A timer of the kernel advances the engine's epoch after some CPU time, so running code is
//! interrupted. While a guest waits, an async loop checks. There is no watchdog thread, because
//! starting and joining one would take a tenth of a short call.

use crate::caller;
use crate::sandbox::call_clock::{CallClock, EndReason};
use crate::signals;
use nix::sys::signal::{SigEvent, SigevNotify, Signal};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use std::convert::Infallible;
use std::io;
use std::time::Duration;
use wasmtime::Engine;

pub const TICK: Duration = Duration::from_millis(10);

/// Starts the timer that advances the epoch until the process ends, which is after one call.
pub fn start(engine: &Engine) -> io::Result<()> {
    let engine = engine.clone();
    // SAFETY: an epoch is an atomic counter, and the handler only adds to it.
    #[expect(unsafe_code, reason = "no type can express that a handler may run at any time")]
    unsafe { signal_hook::low_level::register(Signal::SIGVTALRM as i32, move || engine.increment_epoch()) }?;
    let notify = SigevNotify::SigevSignal { signal: Signal::SIGVTALRM, si_value: 0 };
    let mut timer = Timer::new(ClockId::CLOCK_PROCESS_CPUTIME_ID, SigEvent::new(notify)).map_err(|error| {
        io::Error::other(format!("cannot create a timer ({error}); raise the limit of pending signals (`ulimit -i`)"))
    })?;
    timer.set(Expiration::Interval(TICK.into()), TimerSetTimeFlags::empty())?;
    std::mem::forget(timer);
    Ok(())
}

/// Checks periodically while it is awaited.
pub async fn check_periodically(clock: &CallClock) -> Infallible {
    loop {
        request_end_if_due(clock);
        tokio::time::sleep(TICK).await;
    }
}

/// Asks the guest to end if the wall time is over, a signal arrived or the caller is gone.
pub fn request_end_if_due(clock: &CallClock) {
    clock.request_end_if_wall_time_is_over();
    if !clock.is_interruptible() {
        return;
    }
    if let Some(signal) = signals::arrived() {
        clock.request_end(EndReason::Signal(signal));
    } else if caller::is_gone() {
        clock.request_end(EndReason::CallerGone);
    }
}
