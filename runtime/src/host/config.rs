use crate::bindings::bosh::cpi::config::{CallInfo, Host};
use crate::sandbox::state::State;
use std::time::Instant;

impl Host for State {
    fn properties(&mut self) -> String {
        let since = Instant::now();
        let properties = self.host.as_ref().map(|host| host.properties.clone()).unwrap_or_default();
        self.noted("config.properties", since, properties.len());
        properties
    }

    fn call(&mut self) -> CallInfo {
        match &self.host {
            Some(host) => host.call.clone(),
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
