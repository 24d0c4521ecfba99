//! The second step: withholds a response whose body cannot be searched, because it is compressed or in another
//! charset than UTF-8.

use super::screening::Screening;
use super::tripwire::search_withheld;
use super::withheld::{WithheldKind, WithheldResponse};
use super::{ResponseInScreening, charset};
use wasm_cpi_checks::Check;

impl Screening<'_, '_> {
    /// Withholds a response that is compressed.
    pub(super) fn reject_encoded(&mut self) -> Result<(), WithheldResponse> {
        let encoded = !self.response.body.is_empty() && is_encoded(self.response.headers);
        let accepted = Check::EncodedResponse.ensure(!encoded, || {
            let why = "it is encoded (Content-Encoding, Transfer-Encoding), which is refused for a guarded request; the \
                       server must respond without compression";
            self.error(WithheldKind::Encoded, why)
        });
        accepted.or_else(|error| self.withhold(error))
    }

    /// Withholds a response that is text in another charset than UTF-8.
    pub(super) fn reject_foreign_charset(&mut self) -> Result<(), WithheldResponse> {
        let ResponseInScreening { method, path, ref headers, ref body, .. } = *self.response;
        let is_foreign = !body.is_empty() && charset::is_foreign(headers, body);
        if is_foreign {
            search_withheld(self.vault, method, path, body)?;
        }
        let accepted = Check::CharsetResponse.ensure(!is_foreign, || {
            let why = "it is not text in UTF-8, which is refused for a guarded request; the server must respond in UTF-8, \
                       and send other files with a Content-Type such as `application/octet-stream`";
            self.error(WithheldKind::Encoded, why)
        });
        accepted.or_else(|error| self.withhold(error))
    }
}

fn is_encoded(headers: &[(String, String)]) -> bool {
    let encodes =
        |name: &str| ["content-encoding", "transfer-encoding"].iter().any(|one| name.eq_ignore_ascii_case(one));
    let encodings = headers.iter().filter(|(name, _)| encodes(name));
    let encodings = encodings.flat_map(|(_, value)| value.split(',')).map(str::trim);
    let (chunked, others): (Vec<&str>, Vec<&str>) =
        encodings.partition(|encoding| encoding.eq_ignore_ascii_case("chunked"));
    // The client removes one layer of chunks before the body arrives here.
    chunked.len() > 1
        || others.iter().any(|encoding| !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity"))
}
