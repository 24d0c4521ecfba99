//! Ends an instance, and deletes network interfaces that outlive it. An uncertain outcome is an error.

use std::time::Duration;

use wasm_cpi_sdk::Error;
use wasm_cpi_sdk::poll::Poll;

use super::{ENDED_TIMEOUT, not_found};
use crate::session::Session;

/// How long an interface may stay in use after the end of its instance.
const INTERFACE_BUDGET: Duration = Duration::from_secs(5 * 60);

/// The error for an instance that was just launched and is not known everywhere.
pub(super) const UNKNOWN_YET: &[&str] = &["InvalidInstanceID.NotFound"];

/// How long an instance that was just launched may be unknown.
const UNKNOWN_BUDGET: Duration = Duration::from_secs(60);

/// Ends an instance that this call launched.
pub(super) fn terminate(session: &Session, vm: &str) -> Result<(), Error> {
    match session.ec2().terminate_instance(vm).passing(UNKNOWN_YET).for_at_most(UNKNOWN_BUDGET).send() {
        Err(error) if error.is("InvalidInstanceID.NotFound") => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Waits until an instance has ended, or EC2 does not know it any more.
pub(super) fn wait_until_ended(session: &Session, vm: &str) -> Result<(), Error> {
    let query = session.ec2().instance(vm);
    Poll::for_at_most(ENDED_TIMEOUT).with_jitter().until(&format!("instance `{vm}` to end"), || match query.send() {
        Ok(found) => {
            Ok(found.iter().filter(|instance| instance.id == vm).all(|instance| instance.is_gone()).then_some(()))
        }
        Err(error) if error.is("InvalidInstanceID.NotFound") => Ok(Some(())),
        Err(error) => Err(not_found(error, vm)),
    })
}

/// Deletes an interface. Succeeds if it does not exist.
pub(super) fn delete_interface(session: &Session, id: &str) -> Result<(), Error> {
    // EC2 answers InvalidParameterValue for an interface that is in use, which passes after the end of its instance.
    let query = session.ec2().delete_interface(id);
    let query =
        query.passing(&["InvalidParameterValue", "InvalidNetworkInterface.InUse"]).for_at_most(INTERFACE_BUDGET);
    match query.send() {
        Err(error) if error.is_not_found() => Ok(()),
        outcome => Ok(outcome?),
    }
}

pub(super) fn combine(problems: Vec<Error>) -> Result<(), Error> {
    if problems.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = problems.into_iter().map(|error| error.message).collect();
    Err(Error::cloud(texts.join("; ")))
}
