//! The interface `clock`: clocks, and a sleep that ends when the call is ending.

use crate::bindings::bosh::cpi::clock::Host;
use crate::host::GuestState;
use nix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest sleep. A call ends before a longer one could.
const SLEEP_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

impl Host for GuestState {
    fn now_ms(&mut self) -> u64 {
        self.counts.clock += 1;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic_ns(&mut self) -> u64 {
        self.counts.clock += 1;
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
        u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
    }

    async fn sleep(&mut self, ms: u64) -> Result<(), String> {
        self.counts.clock += 1;
        let (clock, host_call) = (Arc::clone(&self.clock), self.start_host_call("clock.sleep", ""));
        let slept = tokio::select! {
            biased;
            () = clock.end_requested() => Err(self.clock.message_for_guest().unwrap_or_default()),
            () = tokio::time::sleep(Duration::from_millis(ms).min(SLEEP_MAX)) => Ok(()),
        };
        match slept {
            Ok(()) => host_call.succeed(0),
            Err(_) => host_call.cancel(),
        }
        slept
    }

    fn ending(&mut self) -> Option<String> {
        self.counts.clock += 1;
        self.clock.message_for_guest()
    }
}
