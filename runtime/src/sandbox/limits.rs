//! What a guest may use of memory, tables, CPU and host calls.
//!
//! The store asks here before anything grows and around every crossing of the
//! border. A limit that is reached ends the call with a typed error, so that the
//! response can name it.

use crate::failure::Failure;
use crate::holes::Check;
use crate::limits::Limits;
use nix::time::{ClockId, clock_gettime};
use std::fmt;
use std::time::Duration;
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
    /// Thread CPU time at which guest code was entered, while it runs.
    entered: Option<Duration>,
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
            entered: None,
        }
    }

    pub fn usage(&self) -> Usage {
        Usage { cpu: self.cpu(), ..self.used }
    }

    /// CPU time of guest code so far; waiting and host code do not count.
    fn cpu(&self) -> Duration {
        self.used.cpu + self.entered.map_or(Duration::ZERO, |entered| thread_cpu().saturating_sub(entered))
    }

    pub fn cpu_is_spent(&self) -> bool {
        self.cpu() >= self.cpu_limit
    }

    /// Around every crossing between guest and host.
    pub fn cross(&mut self, hook: CallHook) -> Result<(), LimitReached> {
        if hook.entering_host() {
            self.used.cpu = self.cpu();
            self.entered = None;
        } else {
            self.entered = Some(thread_cpu());
        }
        if matches!(hook, CallHook::CallingHost) {
            self.used.host_calls += 1;
            if self.used.host_calls > self.host_calls {
                return Err(LimitReached { name: "host_calls", value: self.host_calls });
            }
        }
        Ok(())
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
