//! One test, every cloud: the simulator always, real services if there are any.
//!
//! Who counts what is there wants to be alone: a test has a tenant of the real
//! cloud to itself as long as it runs, and waits where none is free. It leaves the
//! tenant as it found it.

use super::gateway::Gateway;
use super::simulator::Simulator;
use super::upstream::Real;
use crate::skip;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};

/// Those that are somebody's now.
static TAKEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
static RETURNED: Condvar = Condvar::new();

/// A tenant of the real cloud, until this is dropped.
pub struct Tenant {
    number: usize,
    real: Real,
}

impl Tenant {
    /// The first that is free. None, which is reported as a skip, if no cloud is named.
    #[track_caller]
    pub fn take() -> Option<Tenant> {
        let Some(real) = Real::from_environment() else {
            skip("openstack", "the same test on real services: no cloud is named");
            return None;
        };
        let tenants = real.tenants();
        assert!(!tenants.is_empty(), "the real cloud is of an older kind: it names no tenants for tests");
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let free = tenants.iter().enumerate().find(|(number, _)| !taken.contains(number));
            if let Some((number, real)) = free {
                taken.insert(number);
                return Some(Tenant { number, real: real.clone() });
            }
            taken = RETURNED.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The services as this tenant sees them.
    pub fn cloud(&self) -> Real {
        self.real.clone()
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
        RETURNED.notify_one();
    }
}

/// Runs it on each, behind a gateway of its own.
#[track_caller]
pub fn on_each_cloud(run: impl Fn(&str, &Gateway)) {
    run("simulator", &Gateway::start(Simulator::new()));
    if let Some(tenant) = Tenant::take() {
        run("real services", &Gateway::start(tenant.cloud()));
    }
}

/// The same with TLS and an authority of its own.
#[track_caller]
pub fn on_each_secure_cloud(run: impl Fn(&str, &Gateway)) {
    run("simulator", &Gateway::secure(Simulator::new()));
    if let Some(tenant) = Tenant::take() {
        run("real services", &Gateway::secure(tenant.cloud()));
    }
}
