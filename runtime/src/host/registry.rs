use crate::bindings::bosh::cpi::registry::{Error, Host};
use crate::host::State;
use crate::registry::{GuestRegistry, GuestRegistryError};
use std::sync::Arc;

impl State {
    fn registry(&self) -> Result<Arc<GuestRegistry>, Error> {
        if let Some(why) = self.cancelled() {
            return Err(Error::Cancelled(why));
        }
        let registry = self.host.as_ref().map(|host| Arc::clone(&host.registry));
        registry.ok_or_else(|| Error::Denied("there is no registry here".into()))
    }
}

impl From<GuestRegistryError> for Error {
    fn from(error: GuestRegistryError) -> Self {
        match error {
            GuestRegistryError::Denied(what) => Error::Denied(what),
            GuestRegistryError::NotFound => Error::NotFound,
            GuestRegistryError::Invalid(what) => Error::Invalid(what),
            GuestRegistryError::Unavailable(what) => Error::Unavailable(what),
        }
    }
}

impl Host for State {
    async fn get(&mut self, id: String) -> Result<String, Error> {
        let (note, registry) = (self.note("registry.get", &id), self.registry());
        let deadline = self.ending.deadline();
        let settings = async { Ok(registry?.get(&id, deadline).await?) };
        note.answered(settings.await, String::len)
    }

    async fn put(&mut self, id: String, settings: String) -> Result<(), Error> {
        let (note, registry) = (self.note("registry.put", &id), self.registry());
        let deadline = self.ending.deadline();
        let done = async { Ok(registry?.put(&id, &settings, deadline).await?) };
        note.answered(done.await, |()| settings.len())
    }

    async fn delete(&mut self, id: String) -> Result<(), Error> {
        let (note, registry) = (self.note("registry.delete", &id), self.registry());
        let deadline = self.ending.deadline();
        let done = async { Ok(registry?.delete(&id, deadline).await?) };
        note.answered(done.await, |()| 0)
    }
}
