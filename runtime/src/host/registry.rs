use crate::bindings::bosh::cpi::registry::{Error, Host};
use crate::registry::{GuestRegistry, GuestRegistryError};
use crate::sandbox::state::State;
use std::sync::Arc;
use std::time::Instant;

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
        let since = Instant::now();
        let settings = self.registry()?.get(&id, self.ending.deadline()).await;
        self.noted("registry.get", since, settings.as_ref().map_or(0, String::len));
        Ok(settings?)
    }

    async fn put(&mut self, id: String, settings: String) -> Result<(), Error> {
        let since = Instant::now();
        let done = self.registry()?.put(&id, &settings, self.ending.deadline()).await;
        self.noted("registry.put", since, settings.len());
        Ok(done?)
    }

    async fn delete(&mut self, id: String) -> Result<(), Error> {
        let since = Instant::now();
        let done = self.registry()?.delete(&id, self.ending.deadline()).await;
        self.noted("registry.delete", since, 0);
        Ok(done?)
    }
}
