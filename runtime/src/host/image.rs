use crate::bindings::bosh::cpi::image::{Error, Host, Member};
use crate::image::{Image, ImageError};
use crate::sandbox::ending::Ending;
use crate::sandbox::state::State;
use std::sync::Arc;
use std::time::Instant;

impl State {
    /// The image, or why there is none to read.
    fn image(&self) -> Result<Arc<Image>, Error> {
        if let Some(why) = self.cancelled() {
            return Err(Error::Cancelled(why));
        }
        let image = self.host.as_ref().and_then(|host| host.image.clone());
        image.ok_or_else(|| Error::Denied("there is an image in create_stemcell only".into()))
    }
}

/// Reading gigabytes takes a while: an ending call does not wait for it.
async fn reading<T>(ending: Arc<Ending>, read: impl Future<Output = Result<T, ImageError>>) -> Result<T, Error> {
    tokio::select! {
        read = read => Ok(read?),
        () = ending.begun() => Err(Error::Cancelled(ending.why().map(|why| why.word()).unwrap_or_default())),
    }
}

impl From<ImageError> for Error {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::Invalid(what) => Error::Invalid(what),
            ImageError::Io(what) => Error::Io(what),
        }
    }
}

impl Host for State {
    fn size(&mut self) -> Result<u64, Error> {
        Ok(self.image()?.size())
    }

    async fn sha256(&mut self) -> Result<String, Error> {
        let image = self.image()?;
        let since = Instant::now();
        let digest = reading(Arc::clone(&self.ending), image.sha256()).await;
        self.noted("image.sha256", since, 0);
        digest
    }

    fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        let since = Instant::now();
        let bytes = self.image()?.read(offset, length)?;
        self.noted("image.read", since, bytes.len());
        Ok(bytes)
    }

    async fn members(&mut self) -> Result<Vec<Member>, Error> {
        let image = self.image()?;
        let since = Instant::now();
        let members = reading(Arc::clone(&self.ending), image.members()).await?;
        self.noted("image.members", since, 0);
        Ok(members.into_iter().map(|member| Member { name: member.name, size: member.size }).collect())
    }

    async fn read_member(&mut self, name: String, length: u32) -> Result<Vec<u8>, Error> {
        let image = self.image()?;
        let since = Instant::now();
        let bytes = reading(Arc::clone(&self.ending), image.read_member(&name, length)).await?;
        self.noted("image.read-member", since, bytes.len());
        Ok(bytes)
    }
}
