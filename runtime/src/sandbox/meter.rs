//! What a guest may use of memory, tables, CPU and host calls.
//!
//! The store asks here before anything grows and around every crossing of the
//! border. A limit that is reached ends the call with a typed error, so that the
//! response can name it.

use crate::failure::Failure;
use crate::limits::Limits;
use nix::time::{ClockId, clock_gettime};
use std::fmt;
use std::time::{Duration, Instant};
use wasm_cpi_checks::Check;
use wasmtime::{CallHook, ResourceLimiter};

/// A limit of the configuration was reached: the error that ends the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitReached {
    pub name: &'static str,
    pub value: u64,
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.failure().message)
    }
}

impl std::error::Error for LimitReached {}

impl LimitReached {
    pub fn failure(&self) -> Failure {
        Failure::limit(self.name, self.value, "the guest")
    }
}

/// Meters one call.
pub struct Meter {
    memory_bytes: u64,
    memory_mib: u64,
    tables: u64,
    host_calls: u64,
    cpu_limit: Duration,
    used: Usage,
    cpu: CpuTime,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub cpu: Duration,
    pub host_calls: u64,
    pub peak_memory: u64,
    table_elements: u64,
}

/// No component of ours needs more; each costs the host memory of its own.
const INSTANCES: usize = 100;

impl Meter {
    pub fn new(limits: &Limits) -> Meter {
        Meter {
            memory_bytes: limits.memory_mib << 20,
            memory_mib: limits.memory_mib,
            tables: limits.tables,
            host_calls: limits.host_calls,
            cpu_limit: Duration::from_secs(limits.cpu_seconds),
            used: Usage::default(),
            cpu: CpuTime::default(),
        }
    }

    pub fn usage(&self) -> Usage {
        Usage { cpu: self.cpu.so_far(), ..self.used }
    }

    pub fn cpu_is_spent(&self) -> bool {
        self.cpu.so_far() >= self.cpu_limit
    }

    /// Around every crossing between guest and host.
    pub fn cross(&mut self, hook: CallHook) -> Result<(), LimitReached> {
        self.cpu.cross(hook.exiting_host());
        if matches!(hook, CallHook::CallingHost) {
            self.used.host_calls += 1;
            if self.used.host_calls > self.host_calls {
                return Err(LimitReached { name: "host_calls", value: self.host_calls });
            }
        }
        Ok(())
    }
}

/// CPU time of guest code. Waiting does not count, nor what the host does for longer
/// than a moment.
///
/// The thread's own clock is a system call, and a call crosses the border many
/// times. So it is asked about stretches that lasted; the others take the CPU for as
/// long as they take, on whichever side.
#[derive(Default)]
struct CpuTime {
    /// Up to `since`.
    counted: Duration,
    /// What the thread's clock said then.
    since: Duration,
    /// How long the short stretches since then took.
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

    /// A long stretch ends: the guest's counts, the host's does not.
    fn count(&mut self) {
        self.counted = self.so_far();
        (self.since, self.short) = (thread_cpu(), Duration::ZERO);
    }

    fn so_far(&self) -> Duration {
        self.counted + if self.in_guest { thread_cpu().saturating_sub(self.since) } else { self.short }
    }
}

fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

fn bounded(count: usize) -> usize {
    if Check::Instances.on() { count } else { usize::MAX }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        // One limit for all memories; they only grow, so the sum is the peak.
        self.used.peak_memory += desired.saturating_sub(current) as u64;
        if self.used.peak_memory > self.memory_bytes {
            return Err(LimitReached { name: "memory_mib", value: self.memory_mib }.into());
        }
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.used.table_elements += desired.saturating_sub(current) as u64;
        if self.used.table_elements > self.tables {
            return Err(LimitReached { name: "tables", value: self.tables }.into());
        }
        Ok(true)
    }

    fn instances(&self) -> usize {
        bounded(INSTANCES)
    }

    fn tables(&self) -> usize {
        bounded(INSTANCES)
    }

    fn memories(&self) -> usize {
        bounded(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    fn compute(time: Duration) {
        let begun = thread_cpu();
        while thread_cpu() - begun < time {
            std::hint::spin_loop();
        }
    }

    fn about(time: Duration, expected: u128) {
        let ms = time.as_millis();
        assert!((expected..expected * 2).contains(&ms), "{ms} ms instead of {expected}");
    }

    #[test]
    fn what_the_guest_computes_counts_and_what_it_waits_for_does_not() {
        let ms = Duration::from_millis;
        let mut time = CpuTime::default();
        for _ in 0..3 {
            time.cross(true);
            compute(ms(5));
            about(time.so_far() - time.counted, 5);
            time.cross(false);
            // The host works, and waits.
            compute(ms(20));
            sleep(ms(20));
        }
        about(time.so_far(), 15);
    }

    #[test]
    fn what_a_guest_computes_between_calls_without_number_counts() {
        let mut time = CpuTime::default();
        let begun = thread_cpu();
        for _ in 0..2000 {
            time.cross(true);
            compute(Duration::from_micros(20));
            time.cross(false);
        }
        let spent = thread_cpu() - begun;
        assert!(time.so_far() * 10 >= spent * 9, "{:?} of {spent:?}", time.so_far());
    }
}
