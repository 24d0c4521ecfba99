//! Measures and limits a guest's memory, tables, CPU time and host calls.
//!
//! The store calls the meter before a memory or table grows, and at every crossing between guest
//! and host. A limit that is reached ends the call with a typed error, so that the response can
//! name the limit.

use crate::failure::Failure;
use crate::limits::{Limits, NamedLimit};
use nix::time::{ClockId, clock_gettime};
use std::fmt;
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasmtime::{CallHook, ResourceLimiter};

/// The error that ends the guest when a limit of the configuration is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitReached(pub NamedLimit);

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.failure().message)
    }
}

impl std::error::Error for LimitReached {}

impl LimitReached {
    /// Returns the failure that names the limit.
    pub fn failure(&self) -> Failure {
        Failure::limit(self.0.name, self.0.value, "the guest")
    }
}

/// The meter of one call.
pub struct Meter {
    max_memory_bytes: u64,
    max_memory_mib: u64,
    max_table_elements: u64,
    max_host_calls: u64,
    max_cpu: Duration,
    used: MeterReading,
    cpu: CpuTime,
}

/// What a guest has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct MeterReading {
    pub cpu: Duration,
    pub host_calls: u64,
    pub peak_memory_bytes: u64,
    table_elements: u64,
}

/// The most instances. No known component needs more, and each uses memory of the host.
const MAX_INSTANCES: usize = 100;

/// The most tables. No known component needs more, and each uses memory of the host.
const MAX_TABLES: usize = 100;

/// The most memories: one for each component that is nested in a guest. Each reserves address space.
const MAX_MEMORIES: usize = 4;

impl Meter {
    pub fn new(limits: &Limits) -> Meter {
        Meter {
            max_memory_bytes: limits.memory_mib << 20,
            max_memory_mib: limits.memory_mib,
            max_table_elements: limits.tables,
            max_host_calls: limits.host_calls,
            max_cpu: Duration::from_secs(limits.cpu_seconds),
            used: MeterReading::default(),
            cpu: CpuTime::default(),
        }
    }

    pub fn reading(&self) -> MeterReading {
        MeterReading { cpu: self.cpu.total(), ..self.used }
    }

    pub fn cpu_is_spent(&self) -> bool {
        self.cpu.total() >= self.max_cpu
    }

    /// Counts a crossing between guest and host.
    pub fn cross(&mut self, hook: CallHook) -> Result<(), LimitReached> {
        self.cpu.cross(hook.exiting_host());
        if matches!(hook, CallHook::CallingHost) {
            self.used.host_calls += 1;
            if self.used.host_calls > self.max_host_calls {
                return Err(LimitReached(NamedLimit { name: "host_calls", value: self.max_host_calls }));
            }
        }
        Ok(())
    }
}

/// The CPU time of guest code. Waiting and long work of the host do not count.
///
/// Reading the thread's CPU clock is a system call, and a call crosses between guest and host
/// many times. So that clock is read only after long intervals. A short interval counts with its
/// wall time, in the guest and in the host.
#[derive(Default)]
struct CpuTime {
    /// The CPU time of the guest up to `since`.
    counted: Duration,
    /// The thread's CPU clock when it was last read.
    since: Duration,
    /// The total of the short intervals after `since`.
    short: Duration,
    crossed: Option<Instant>,
    in_guest: bool,
}

impl CpuTime {
    const SHORT: Duration = Duration::from_micros(100);

    fn cross(&mut self, to_guest: bool) {
        let now = Instant::now();
        match self.crossed.replace(now).map(|before| now - before) {
            Some(took) if took < CpuTime::SHORT => self.short += took,
            _ => self.count(),
        }
        self.in_guest = to_guest;
    }

    /// Reads the thread's clock after a long interval, and adds the interval if the guest ran.
    fn count(&mut self) {
        self.counted = self.total();
        (self.since, self.short) = (thread_cpu(), Duration::ZERO);
    }

    fn total(&self) -> Duration {
        self.counted + if self.in_guest { thread_cpu().saturating_sub(self.since) } else { self.short }
    }
}

fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

fn bounded(count: usize) -> usize {
    Check::Instances.choose(count, usize::MAX)
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        // All memories share one limit. They only grow, so the sum is the peak.
        self.used.peak_memory_bytes += desired.saturating_sub(current) as u64;
        if self.used.peak_memory_bytes > self.max_memory_bytes {
            return Err(LimitReached(NamedLimit { name: "memory_mib", value: self.max_memory_mib }).into());
        }
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.used.table_elements += desired.saturating_sub(current) as u64;
        if self.used.table_elements > self.max_table_elements {
            return Err(LimitReached(NamedLimit { name: "tables", value: self.max_table_elements }).into());
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        bounded(MAX_INSTANCES)
    }

    fn tables(&self) -> usize {
        bounded(MAX_TABLES)
    }

    fn memories(&self) -> usize {
        bounded(MAX_MEMORIES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    fn compute(time: Duration) {
        let start = thread_cpu();
        while thread_cpu() - start < time {
            std::hint::spin_loop();
        }
    }

    fn about(time: Duration, expected: u128) {
        let ms = time.as_millis();
        assert!((expected..expected * 2).contains(&ms), "{ms} ms instead of {expected}");
    }

    #[test]
    fn computing_of_the_guest_counts_and_waiting_does_not() {
        let ms = Duration::from_millis;
        let mut time = CpuTime::default();
        for _ in 0..3 {
            time.cross(true);
            compute(ms(5));
            about(time.total() - time.counted, 5);
            time.cross(false);
            // The host works, and waits.
            compute(ms(20));
            sleep(ms(20));
        }
        about(time.total(), 15);
    }

    #[test]
    fn computing_between_very_many_host_calls_counts() {
        let mut time = CpuTime::default();
        let start = thread_cpu();
        for _ in 0..2000 {
            time.cross(true);
            compute(Duration::from_micros(20));
            time.cross(false);
        }
        let spent = thread_cpu() - start;
        assert!(time.total() * 10 >= spent * 9, "{:?} of {spent:?}", time.total());
    }
}
