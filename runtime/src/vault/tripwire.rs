//! The tripwire: searches for credentials in responses and results.

use super::{Form, SearchStopped, SecretKind, Vault, views};
use std::ops::ControlFlow;
use wasm_cpi_checks::Check;

/// The name of a signature in messages.
const SIGNATURE: &str = "signature of a request";

impl Vault {
    /// The tripwire: returns the name of a credential that occurs in some encoding. Ignores texts
    /// that differ from it in case, because they may be other words, and halves, because a guest could
    /// guess one half after the other.
    pub fn leak_in(&self, bytes: &[u8]) -> Result<Option<String>, SearchStopped> {
        let known = self.leak_of_kinds(bytes, &|_| true)?;
        Ok(known.or_else(|| self.holds_signature(bytes).then(|| SIGNATURE.to_owned())))
    }

    /// Searches a text that the guest does not get. Values that a server chose do not count: a guest
    /// that makes a server return what it was given could otherwise choose what is searched for, and so read
    /// the text by its endings. Signatures do not count, either, because honest servers quote them in errors.
    pub fn leak_in_unseen(&self, bytes: &[u8]) -> Result<Option<String>, SearchStopped> {
        self.leak_of_kinds(bytes, &|kind| Check::TripwireUnseen.accepts(kind != SecretKind::FromServer))
    }

    fn leak_of_kinds(
        &self,
        bytes: &[u8],
        counts: &dyn Fn(SecretKind) -> bool,
    ) -> Result<Option<String>, SearchStopped> {
        let (index, deadline) = (self.credential_index(bytes.len()), self.search_deadline());
        let found = views::visit_all(bytes, views::Track::No, &mut |view, _| {
            index.scanner.scan(&view.bytes, &deadline, &mut |needle, _| match needle.form {
                Form::OtherCase | Form::Half => ControlFlow::Continue(()),
                _ if !counts(index.known[needle.owner].kind) => ControlFlow::Continue(()),
                _ => ControlFlow::Break(index.known[needle.owner].name.clone()),
            })
        });
        found.break_value().transpose()
    }
}
