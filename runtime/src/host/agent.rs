//! The interface `agent`: translates between the WIT types and `crate::agent`.

use crate::agent::{Additions, AgentError, AgentErrorKind, AgentSession, NetworkAddition};
use crate::bindings::bosh::cpi::agent::{self, Encoding, Error, Host, Settings};
use crate::bindings::bosh::cpi::types::DiskHint;
use crate::failure::Cause;
use crate::host::GuestState;
use crate::host::host_call::HostError;
use std::sync::Arc;

impl GuestState {
    fn agent(&self) -> Result<Arc<AgentSession>, HostError<Error>> {
        if let Some(why) = self.clock.message_for_guest() {
            return Err(Error::Cancelled(why).into());
        }
        let agent = self.capabilities.as_ref().map(|capabilities| Arc::clone(&capabilities.agent));
        agent.ok_or_else(|| Error::Refused("agent settings are not available in `describe`".into()).into())
    }
}

impl From<AgentError> for HostError<Error> {
    fn from(AgentError { kind, message, detail, check }: AgentError) -> Self {
        let error = match kind {
            AgentErrorKind::Refused => Error::Refused(message),
            AgentErrorKind::Registry => Error::Registry(message),
        };
        HostError { error, check, cause: Cause { login: None, text: detail } }
    }
}

impl Host for GuestState {
    async fn bootstrap(&mut self, settings: Settings) -> Result<String, Error> {
        let host_call = self.start_host_call("agent.bootstrap", &settings.vm_name);
        let seal = self.agent().and_then(|agent| Ok(agent.bootstrap(&additions(settings))?));
        host_call.finish(seal, String::len)
    }

    async fn created(&mut self, vm: String, registry_key: String) -> Result<(), Error> {
        let (host_call, agent) = (self.start_host_call("agent.created", &registry_key), self.agent());
        let deadline = self.clock.deadline();
        let done = async { Ok(agent?.created(&vm, &registry_key, deadline).await?) };
        host_call.finish(done.await, |()| 0)
    }

    async fn attached(&mut self, registry_key: String, disk: String, hint: DiskHint) -> Result<(), Error> {
        let (host_call, agent) = (self.start_host_call("agent.attached", &registry_key), self.agent());
        let deadline = self.clock.deadline();
        let done = async { Ok(agent?.attached(&registry_key, &disk, &hint.into(), deadline).await?) };
        host_call.finish(done.await, |()| 0)
    }

    async fn detached(&mut self, registry_key: String, disk: String) -> Result<(), Error> {
        let (host_call, agent) = (self.start_host_call("agent.detached", &registry_key), self.agent());
        let deadline = self.clock.deadline();
        let done = async { Ok(agent?.detached(&registry_key, &disk, deadline).await?) };
        host_call.finish(done.await, |()| 0)
    }

    async fn deleted(&mut self, registry_key: String) -> Result<(), Error> {
        let (host_call, agent) = (self.start_host_call("agent.deleted", &registry_key), self.agent());
        let deadline = self.clock.deadline();
        let done = async { Ok(agent?.deleted(&registry_key, deadline).await?) };
        host_call.finish(done.await, |()| 0)
    }
}

fn additions(settings: Settings) -> Additions {
    Additions {
        vm_name: settings.vm_name,
        system_disk: settings.system_disk,
        ephemeral_disk: settings.ephemeral_disk.map(Into::into),
        raw_ephemeral_disks: settings.raw_ephemeral_disks.into_iter().map(Into::into).collect(),
        networks: settings.networks.into_iter().map(Into::into).collect(),
        encodings: settings.encodings.into_iter().map(Into::into).collect(),
    }
}

impl From<DiskHint> for crate::agent::DiskHint {
    fn from(hint: DiskHint) -> Self {
        match hint {
            DiskHint::Text(text) => Self::Text(text),
            DiskHint::Fields(fields) => Self::Fields(fields),
        }
    }
}

impl From<agent::NetworkAddition> for NetworkAddition {
    fn from(addition: agent::NetworkAddition) -> Self {
        NetworkAddition {
            name: addition.name,
            mac: addition.mac,
            ip: addition.ip,
            netmask: addition.netmask,
            gateway: addition.gateway,
            dns: addition.dns,
            use_dhcp: addition.use_dhcp,
            preconfigured: addition.preconfigured,
            alias: addition.alias,
            routes: addition.routes,
        }
    }
}

impl From<Encoding> for crate::agent::Encoding {
    fn from(encoding: Encoding) -> Self {
        match encoding {
            Encoding::JsonString => Self::JsonString,
            Encoding::Base64 => Self::Base64,
            Encoding::Base64url => Self::Base64Url,
        }
    }
}
