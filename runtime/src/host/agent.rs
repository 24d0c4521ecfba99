use crate::agent::{Additions, AgentError, AgentSession, NetworkAddition};
use crate::bindings::bosh::cpi::agent::{self, Encoding, Error, Host, Settings};
use crate::bindings::bosh::cpi::types::DiskHint;
use crate::host::State;
use std::sync::Arc;

impl State {
    fn agent(&self) -> Result<Arc<AgentSession>, Error> {
        if let Some(why) = self.cancelled() {
            return Err(Error::Cancelled(why));
        }
        let agent = self.host.as_ref().map(|host| Arc::clone(&host.agent));
        agent.ok_or_else(|| Error::Refused("there are no agent settings here".into()))
    }
}

impl From<AgentError> for Error {
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Refused(what) => Error::Refused(what),
            AgentError::Registry(what) => Error::Registry(what),
        }
    }
}

impl Host for State {
    async fn bootstrap(&mut self, settings: Settings) -> Result<String, Error> {
        let note = self.note("agent.bootstrap", &settings.vm_name);
        let seal = self.agent().and_then(|agent| Ok(agent.bootstrap(&additions(settings))?));
        note.answered(seal, String::len)
    }

    async fn created(&mut self, vm: String, registry_key: String) -> Result<(), Error> {
        let (note, agent) = (self.note("agent.created", &registry_key), self.agent());
        let deadline = self.ending.deadline();
        let done = async { Ok(agent?.created(&vm, &registry_key, deadline).await?) };
        note.answered(done.await, |()| 0)
    }

    async fn attached(&mut self, registry_key: String, disk: String, hint: DiskHint) -> Result<(), Error> {
        let (note, agent) = (self.note("agent.attached", &registry_key), self.agent());
        let deadline = self.ending.deadline();
        let done = async { Ok(agent?.attached(&registry_key, &disk, &hint.into(), deadline).await?) };
        note.answered(done.await, |()| 0)
    }

    async fn detached(&mut self, registry_key: String, disk: String) -> Result<(), Error> {
        let (note, agent) = (self.note("agent.detached", &registry_key), self.agent());
        let deadline = self.ending.deadline();
        let done = async { Ok(agent?.detached(&registry_key, &disk, deadline).await?) };
        note.answered(done.await, |()| 0)
    }

    async fn deleted(&mut self, registry_key: String) -> Result<(), Error> {
        let (note, agent) = (self.note("agent.deleted", &registry_key), self.agent());
        let deadline = self.ending.deadline();
        let done = async { Ok(agent?.deleted(&registry_key, deadline).await?) };
        note.answered(done.await, |()| 0)
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
        max_bytes: settings.max_bytes,
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
