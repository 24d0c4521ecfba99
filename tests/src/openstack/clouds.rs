//! Runs a test on every cloud: always on the simulator, and on real services if they
//! are available.
//!
//! Tests count the resources of a tenant, so each test uses a tenant of the real cloud
//! alone and waits until one is free. A test must leave the tenant as it found it.

use super::Gateway;
use super::real_cloud::RealCloud;
use super::simulator::Simulator;
use crate::skip;
use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, PoisonError};

/// The numbers of the tenants in use.
static IN_USE: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
/// Notified when a tenant becomes free.
static RETURNED: Condvar = Condvar::new();

/// A tenant of the real cloud, reserved until this is dropped.
pub struct Tenant {
    number: usize,
    real: RealCloud,
}

impl Tenant {
    /// Waits for a free tenant and reserves it. Returns `None` and reports a skip if no
    /// real cloud is configured.
    #[track_caller]
    pub fn take() -> Option<Tenant> {
        let Some(real) = RealCloud::from_environment() else {
            skip("openstack", "the same test on real services: no cloud is named");
            return None;
        };
        let tenants = real.tenants();
        assert!(!tenants.is_empty(), "the cloud.json of the real cloud is outdated: it lists no tenants for tests");
        let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let free = tenants.iter().enumerate().find(|(number, _)| !in_use.contains(number));
            if let Some((number, real)) = free {
                in_use.insert(number);
                return Some(Tenant { number, real: real.clone() });
            }
            in_use = RETURNED.wait(in_use).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns the cloud with this tenant's credentials and resources.
    pub fn cloud(&self) -> RealCloud {
        self.real.clone()
    }
}

impl Drop for Tenant {
    fn drop(&mut self) {
        IN_USE.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
        RETURNED.notify_one();
    }
}

/// Runs the test on each cloud, behind its own gateway.
#[track_caller]
pub fn on_each_cloud(run: impl Fn(&str, &Gateway)) {
    run("simulator", &Gateway::start(Simulator::new()));
    if let Some(tenant) = Tenant::take() {
        run("real services", &Gateway::start(tenant.cloud()));
    }
}

/// Runs the test on each cloud, behind its own gateway with TLS and its own
/// certificate authority.
#[track_caller]
pub fn on_each_secure_cloud(run: impl Fn(&str, &Gateway)) {
    run("simulator", &Gateway::secure(Simulator::new()));
    if let Some(tenant) = Tenant::take() {
        run("real services", &Gateway::secure(tenant.cloud()));
    }
}
