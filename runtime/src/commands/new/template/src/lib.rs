//! A BOSH CPI for a cloud that makes a server of `POST /servers` and has each
//! under `/servers/ID`. A start: put your cloud's requests in place of these,
//! add the methods of `Cpi` that it can serve, and list them in `describe`.
//! Those left out answer "not implemented".

#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::json;
use wasm_cpi_sdk::{Cid, Cpi, CreatedVm, Description, Error, VmRequest, agent, config, describe, http, poll};

wasm_cpi_sdk::needs!(include_str!("../needs.json"));
wasm_cpi_sdk::export_cpi!(Cloud);

/// The operator's properties that this CPI reads. `token` is none of them: the
/// policy lets the host add it to requests, and the guest never sees it.
#[derive(Deserialize)]
struct Cloud {
    endpoint: String,
}

/// `cloud_properties` of a VM type.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VmProperties {
    size: String,
}

/// What the cloud says of a server.
#[derive(Deserialize)]
struct Server {
    id: String,
    status: String,
}

impl Cpi for Cloud {
    fn describe() -> Description {
        let formats = [concat!(env!("CARGO_PKG_NAME"), "-raw")];
        let methods = ["create_vm", "has_vm", "delete_vm"];
        describe(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), &formats, &methods)
    }

    fn open() -> Result<Self, Error> {
        config::properties()
    }

    fn create_vm(&self, request: VmRequest) -> Result<CreatedVm, Error> {
        let VmProperties { size } = request.cloud_properties.parse()?;
        let name = format!("vm-{}", request.agent_id);
        // A seal: the host puts the Agent's settings in its place, in the slot that needs.json declares.
        let user_data = agent::bootstrap(&agent::settings(&name))?;
        let body = json!({"name": name, "image": request.stemcell, "size": size, "user_data": user_data});
        let server: Server = http::post(self.url("/servers")).json(&body).send()?.ok()?.json()?;
        if let Err(error) = self.finish(&server.id) {
            // Half a VM is worse than none; the first error is the one to tell.
            drop(self.delete_vm(server.id));
            return Err(error);
        }
        Ok(CreatedVm { vm: server.id, networks: request.networks })
    }

    fn has_vm(&self, vm: Cid) -> Result<bool, Error> {
        Ok(self.server(&vm)?.is_some())
    }

    fn delete_vm(&self, vm: Cid) -> Result<(), Error> {
        let deleted = http::delete(self.server_url(&vm)).retries(3).send()?.found()?;
        deleted.ok_or_else(|| Error::vm_not_found(&vm))?;
        agent::deleted(&vm)
    }
}

impl Cloud {
    /// Waits until the server runs, and stores the Agent's settings under its ID.
    fn finish(&self, vm: &str) -> Result<(), Error> {
        poll::until(&format!("server {vm} to run"), || {
            let server = self.server(vm)?.ok_or_else(|| Error::cloud(format!("server {vm} has vanished")))?;
            match server.status.as_str() {
                "running" => Ok(Some(())),
                "error" => Err(Error::vm_creation_failed(format!("server {vm} did not start"), true)),
                _ => Ok(None),
            }
        })?;
        agent::created(vm, vm)
    }

    fn server(&self, vm: &str) -> Result<Option<Server>, Error> {
        let found = http::get(self.server_url(vm)).retries(3).send()?.found()?;
        Ok(found.map(|response| response.json()).transpose()?)
    }

    fn server_url(&self, vm: &str) -> String {
        self.url(&format!("/servers/{}", http::segment(vm)))
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.endpoint.trim_end_matches('/'))
    }
}
