//! `reboot_vm`: gently where the VM runs, by force where it does not.

use std::time::Duration;

use wasm_cpi_sdk::{Error, clock, log};

use super::get;
use crate::api::{patiently, unclear};
use crate::session::Session;

/// What a server does while it reboots.
const REBOOTING: [&str; 2] = ["REBOOT", "HARD_REBOOT"];

pub(crate) fn reboot(session: &Session, vm: &str) -> Result<(), Error> {
    let server = get(session, vm)?;
    let compute = session.compute()?;
    let kind = if server.status == "ACTIVE" { "SOFT" } else { "HARD" };
    patiently(|| match compute.reboot(vm, kind) {
        // It may have begun: then a second one would be refused with 409.
        Err(error) if unclear(&error) => {
            log::warn(format_args!("{error}; looking whether the reboot began"));
            if clock::sleep(Duration::from_secs(1)).is_err() {
                return Err(error);
            }
            match compute.server(vm)? {
                Some(server) if REBOOTING.contains(&server.status.as_str()) => Ok(()),
                _ => compute.reboot(vm, kind),
            }
        }
        outcome => outcome,
    })
    .map_err(|error| error.context(format_args!("rebooting VM `{vm}`")))?;
    let failed_before = server.status == "ERROR";
    session.poll().until(&format!("server `{vm}` to be active again"), || {
        let server = get(session, vm)?;
        match server.status.as_str() {
            "ACTIVE" => Ok(Some(())),
            "ERROR" if !failed_before => {
                Err(Error::cloud(format!("server `{vm}` failed to reboot: {}", server.fault())))
            }
            _ => Ok(None),
        }
    })
}
