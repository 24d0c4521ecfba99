//! `reboot_vm`: a soft reboot if the VM runs, and a hard reboot otherwise.

use wasm_cpi_sdk::Error;

use super::get;
use crate::api::request_change;
use crate::session::Session;

/// The states of a server that reboots.
const REBOOTING: [&str; 2] = ["REBOOT", "HARD_REBOOT"];

pub(crate) fn reboot(session: &Session, vm: &str) -> Result<(), Error> {
    let server = get(session, vm)?;
    let compute = session.compute()?;
    let kind = if server.status == "ACTIVE" { "SOFT" } else { "HARD" };
    // A reboot that started is not requested again: Nova would reject that.
    let rebooting = || {
        let server = compute.server(vm)?;
        Ok(server.is_some_and(|server| REBOOTING.contains(&server.status.as_str())))
    };
    request_change("the reboot started", || compute.reboot(vm, kind), rebooting)
        .map_err(|error| Error::from(error).context(format_args!("rebooting VM `{vm}`")))?;
    let failed_before = server.status == "ERROR";
    session.poll().until(&format!("server `{vm}` to be active again"), || {
        let server = get(session, vm)?;
        match server.status.as_str() {
            "ACTIVE" => Ok(Some(())),
            "ERROR" if !failed_before => Err(Error::cloud(format!(
                "server `{vm}` failed to reboot: {}; look at `openstack server show {vm}`",
                server.fault()
            ))),
            _ => Ok(None),
        }
    })
}
