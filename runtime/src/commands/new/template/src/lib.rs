//! A BOSH CPI for an example cloud: `POST /servers` creates a server, and
//! `/servers/ID` finds and deletes it. Replace its requests by those of your
//! cloud, add the methods of `Cpi` that your cloud supports, and list them in
//! `describe`. All other methods return "not implemented".

#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde_json::json;
use wasm_cpi_sdk::{Cid, Cpi, CreatedVm, Description, Error, VmRequest, agent, config, description, http, poll};

wasm_cpi_sdk::needs!(include_str!("../needs.json"));
wasm_cpi_sdk::export_cpi!(Cloud);

/// The operator's properties that this CPI reads. `token` is not among them: the
/// host adds it to requests, and the guest never sees it.
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

/// A server, as the cloud describes it.
#[derive(Deserialize)]
struct Server {
    id: String,
    status: String,
}

impl Cpi for Cloud {
    fn describe() -> Description {
        let formats = [concat!(env!("CARGO_PKG_NAME"), "-raw")];
        let methods = ["create_vm", "has_vm", "delete_vm"];
        description(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), &formats, &methods)
    }

    fn open() -> Result<Self, Error> {
        config::properties()
    }

    fn create_vm(&self, request: VmRequest) -> Result<CreatedVm, Error> {
        let VmProperties { size } = request.cloud_properties.parse()?;
        let name = format!("vm-{}", request.agent_id);
        // A seal: in the slot that needs.json declares, the host replaces it by the Agent's settings.
        let user_data = agent::bootstrap(&agent::settings(&name))?;
        let body = json!({"name": name, "image": request.stemcell, "size": size, "user_data": user_data});
        let server: Server = http::post(self.url("/servers")).json(&body).send()?.ok()?.json()?;
        if let Err(error) = self.finish(&server.id) {
            // Leave no server behind, and report the first error.
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
        poll::until(&format!("server `{vm}` to run"), || {
            let server = self
                .server(vm)?
                .ok_or_else(|| Error::cloud(format!("server `{vm}` disappeared while it was starting")))?;
            match server.status.as_str() {
                "running" => Ok(Some(())),
                "error" => {
                    Err(Error::vm_creation_failed(format!("the cloud could not start server `{vm}`")).ok_to_retry(true))
                }
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
