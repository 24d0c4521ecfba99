//! One test, every cloud: the simulator always, real services if there are any.

use super::gateway::Gateway;
use super::simulator::Simulator;
use super::upstream::Real;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The real one has one tenant, and who counts what is there wants to be alone.
static ALONE: Mutex<()> = Mutex::new(());

/// For a test that goes to the real one by itself.
pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs it on each, behind a gateway of its own.
#[track_caller]
#[expect(clippy::print_stderr, reason = "a test that does less has to say so")]
pub fn on_each_cloud(run: impl Fn(&str, &Gateway)) {
    run("simulator", &Gateway::start(Simulator::new()));
    match Real::from_environment() {
        Some(real) => {
            let _alone = alone();
            run("real services", &Gateway::start(real));
        }
        None => eprintln!("NOT RUN on real services: no cloud is named"),
    }
}
