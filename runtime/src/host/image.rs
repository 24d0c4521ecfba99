//! The interface `image`: translates between the WIT types and `crate::image`.

use crate::bindings::bosh::cpi::image::{Error, Host, Member};
use crate::host::GuestState;
use crate::host::host_call::HostError;
use crate::image::{Image, ImageError};
use crate::rpc::method::Method;
use crate::sandbox::call_clock::CallClock;
use std::sync::Arc;
use wasm_cpi_checks::Check;

const ONLY_IN_CREATE_STEMCELL: &str = "the image is available in create_stemcell only";
const UNDECLARED: &str = "the guest's needs do not declare `image`; add `\"image\": true` to them";

impl GuestState {
    /// Returns the image, or why the guest cannot read one.
    fn image(&self) -> Result<Arc<Image>, HostError<Error>> {
        if let Some(why) = self.clock.message_for_guest() {
            return Err(Error::Cancelled(why).into());
        }
        let Some(capabilities) = &self.capabilities else {
            return Err(Error::Denied(ONLY_IN_CREATE_STEMCELL.into()).into());
        };
        let absent = || match capabilities.call.method == Method::CreateStemcell.name() {
            true => HostError { check: Some(Check::NeedsImage), ..Error::Denied(UNDECLARED.into()).into() },
            false => Error::Denied(ONLY_IN_CREATE_STEMCELL.into()).into(),
        };
        capabilities.image.clone().ok_or_else(absent)
    }
}

/// Reads from the image until the call is ending, because reading gigabytes takes long.
async fn reading<T>(
    clock: Arc<CallClock>,
    read: impl Future<Output = Result<T, ImageError>>,
) -> Result<T, HostError<Error>> {
    tokio::select! {
        read = read => Ok(read?),
        () = clock.end_requested() => Err(Error::Cancelled(clock.message_for_guest().unwrap_or_default()).into()),
    }
}

impl From<ImageError> for HostError<Error> {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::Invalid { message, check } => HostError { check, ..Error::Invalid(message).into() },
            ImageError::Io(message) => Error::Io(message).into(),
        }
    }
}

impl Host for GuestState {
    fn size(&mut self) -> Result<u64, Error> {
        let size = self.image().map(|image| image.size());
        self.start_host_call("image.size", "").finish(size, |_| 0)
    }

    async fn sha256(&mut self) -> Result<String, Error> {
        let (host_call, clock) = (self.start_host_call("image.sha256", ""), Arc::clone(&self.clock));
        let image = self.image();
        let digest = async { reading(clock, image?.sha256()).await };
        host_call.finish(digest.await, |_| 0)
    }

    fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        let host_call = self.start_host_call("image.read", "");
        host_call.finish(self.image().and_then(|image| Ok(image.read(offset, length)?)), Vec::len)
    }

    async fn members(&mut self) -> Result<Vec<Member>, Error> {
        let (host_call, clock) = (self.start_host_call("image.members", ""), Arc::clone(&self.clock));
        let image = self.image();
        let members = async { reading(clock, image?.members()).await };
        let members = host_call.finish(members.await, |_| 0)?;
        Ok(members.into_iter().map(|member| Member { name: member.name, size: member.size }).collect())
    }

    async fn read_member(&mut self, name: String, length: u32) -> Result<Vec<u8>, Error> {
        let (host_call, clock) = (self.start_host_call("image.read-member", &name), Arc::clone(&self.clock));
        let image = self.image();
        let bytes = async { reading(clock, image?.read_member(&name, length)).await };
        host_call.finish(bytes.await, Vec::len)
    }
}
