use crate::bindings::bosh::cpi::image::{Error, Host, Member};
use crate::host::State;
use crate::image::{Image, ImageError};
use crate::rpc::method::Method;
use crate::sandbox::ending::Ending;
use std::sync::Arc;

const ELSEWHERE: &str = "there is an image in create_stemcell only";
const UNDECLARED: &str = "the module's needs do not declare `image`; add `\"image\": true` to them";

impl State {
    /// The image, or why there is none to read.
    fn image(&self) -> Result<Arc<Image>, Error> {
        if let Some(why) = self.cancelled() {
            return Err(Error::Cancelled(why));
        }
        let Some(host) = &self.host else { return Err(Error::Denied(ELSEWHERE.into())) };
        let why = if host.call.method == Method::CreateStemcell.name() { UNDECLARED } else { ELSEWHERE };
        host.image.clone().ok_or_else(|| Error::Denied(why.into()))
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
        let size = self.image().map(|image| image.size());
        self.note("image.size", "").answered(size, |_| 0)
    }

    async fn sha256(&mut self) -> Result<String, Error> {
        let (note, ending) = (self.note("image.sha256", ""), Arc::clone(&self.ending));
        let image = self.image();
        let digest = async { reading(ending, image?.sha256()).await };
        note.answered(digest.await, |_| 0)
    }

    fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        let note = self.note("image.read", "");
        note.answered(self.image().and_then(|image| Ok(image.read(offset, length)?)), Vec::len)
    }

    async fn members(&mut self) -> Result<Vec<Member>, Error> {
        let (note, ending) = (self.note("image.members", ""), Arc::clone(&self.ending));
        let image = self.image();
        let members = async { reading(ending, image?.members()).await };
        let members = note.answered(members.await, |_| 0)?;
        Ok(members.into_iter().map(|member| Member { name: member.name, size: member.size }).collect())
    }

    async fn read_member(&mut self, name: String, length: u32) -> Result<Vec<u8>, Error> {
        let (note, ending) = (self.note("image.read-member", &name), Arc::clone(&self.ending));
        let image = self.image();
        let bytes = async { reading(ending, image?.read_member(&name, length)).await };
        note.answered(bytes.await, Vec::len)
    }
}
