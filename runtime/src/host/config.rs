//! The interface `config`: translates between the WIT types and the call's properties and request.

use crate::bindings::bosh::cpi::config::{CallInfo, Host};
use crate::host::GuestState;

impl Host for GuestState {
    fn properties(&mut self) -> String {
        self.counts.config += 1;
        let host_call = self.start_host_call("config.properties", "");
        let properties =
            self.capabilities.as_ref().map(|capabilities| capabilities.properties.clone()).unwrap_or_default();
        host_call.succeed(properties.len());
        properties
    }

    fn call(&mut self) -> CallInfo {
        self.counts.config += 1;
        match &self.capabilities {
            Some(capabilities) => capabilities.call.clone(),
            None => CallInfo {
                method: String::new(),
                director_uuid: None,
                request_id: None,
                api_version: 0,
                stemcell_api_version: None,
            },
        }
    }
}
