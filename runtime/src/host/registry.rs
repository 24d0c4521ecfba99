use crate::bindings::bosh::cpi::registry::{Error, Host};
use crate::registry::{GuestRegistry, GuestRegistryError};
use crate::sandbox::state::State;
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
        Ok(self.registry()?.get(&id, self.ending.deadline()).await?)
    }

    async fn put(&mut self, id: String, settings: String) -> Result<(), Error> {
        Ok(self.registry()?.put(&id, &settings, self.ending.deadline()).await?)
    }

    async fn delete(&mut self, id: String) -> Result<(), Error> {
        Ok(self.registry()?.delete(&id, self.ending.deadline()).await?)
    }
}
