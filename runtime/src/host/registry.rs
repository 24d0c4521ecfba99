//! The interface `registry`: translates between the WIT types and `crate::registry`.

use crate::bindings::bosh::cpi::registry::{Error, Host};
use crate::failure::Cause;
use crate::host::GuestState;
use crate::host::host_call::HostError;
use crate::registry::{GuestRegistry, GuestRegistryError, GuestRegistryErrorKind};
use std::sync::Arc;

impl GuestState {
    fn registry(&self) -> Result<Arc<GuestRegistry>, HostError<Error>> {
        if let Some(why) = self.clock.message_for_guest() {
            return Err(Error::Cancelled(why).into());
        }
        let registry = self.capabilities.as_ref().map(|capabilities| Arc::clone(&capabilities.registry));
        registry.ok_or_else(|| Error::Denied("the registry is not available in `describe`".into()).into())
    }
}

impl From<GuestRegistryError> for HostError<Error> {
    fn from(GuestRegistryError { kind, message, detail, check }: GuestRegistryError) -> Self {
        let error = match kind {
            GuestRegistryErrorKind::Denied => Error::Denied(message),
            GuestRegistryErrorKind::NotFound => Error::NotFound,
            GuestRegistryErrorKind::Invalid => Error::Invalid(message),
            GuestRegistryErrorKind::Unavailable => Error::Unavailable(message),
        };
        HostError { error, check, cause: Cause { login: None, text: detail } }
    }
}

impl Host for GuestState {
    async fn get(&mut self, id: String) -> Result<String, Error> {
        let (host_call, registry) = (self.start_host_call("registry.get", &id), self.registry());
        let deadline = self.clock.deadline();
        let settings = async { Ok(registry?.get(&id, deadline).await?) };
        host_call.finish(settings.await, String::len)
    }

    async fn put(&mut self, id: String, settings: String) -> Result<(), Error> {
        let (host_call, registry) = (self.start_host_call("registry.put", &id), self.registry());
        let deadline = self.clock.deadline();
        let done = async { Ok(registry?.put(&id, &settings, deadline).await?) };
        host_call.finish(done.await, |()| settings.len())
    }

    async fn delete(&mut self, id: String) -> Result<(), Error> {
        let (host_call, registry) = (self.start_host_call("registry.delete", &id), self.registry());
        let deadline = self.clock.deadline();
        let done = async { Ok(registry?.delete(&id, deadline).await?) };
        host_call.finish(done.await, |()| 0)
    }
}
