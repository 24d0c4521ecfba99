//! Searches for seals in what a guest sends.

use super::scanner::Searched;
use super::{Form, Vault, views};
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

impl Vault {
    /// Returns the seals that occur unchanged in the bytes, each once, in the order of their first
    /// occurrences. A seal that a stopped search did not find is sent as it is, and has no value.
    pub fn seals_in(&self, bytes: &[u8]) -> Vec<String> {
        let index = self.seal_index();
        let mut found: Vec<(usize, usize)> = Vec::new();
        let _: Searched<()> = index.scanner.scan(bytes, &self.search_deadline(), &mut |needle, span| {
            if needle.form == Form::Plain && !found.iter().any(|(_, owner)| *owner == needle.owner) {
                found.push((span.start, needle.owner));
            }
            ControlFlow::Continue(())
        });
        found.sort_unstable();
        found.into_iter().map(|(_, owner)| index.sealed[owner].0.clone()).collect()
    }

    /// Returns the name of a seal that occurs in a changed form, and how it was changed. This
    /// helps authors of guests and protects nothing: a changed seal that is not found is sent as
    /// it is, and has no value.
    pub fn transformed_seal_in(&self, bytes: &[u8]) -> Option<(String, Form)> {
        let (index, deadline) = (self.seal_index(), self.search_deadline());
        let mut verbatim: HashMap<usize, usize> = HashMap::new();
        let found = views::visit_all(bytes, views::Track::No, &mut |view, encoding| {
            let mut plain: HashMap<usize, usize> = HashMap::new();
            index.scanner.scan(&view.bytes, &deadline, &mut |needle, span| {
                let (seal, name) = &index.sealed[needle.owner];
                match needle.form {
                    Form::Plain => *plain.entry(needle.owner).or_default() += 1,
                    Form::Half if is_within(seal, &view.bytes, &span) => {}
                    Form::OtherCase if view.bytes[span.clone()] == *seal.as_bytes() => {}
                    form => return ControlFlow::Break((name.clone(), form)),
                }
                ControlFlow::Continue(())
            })?;
            if encoding == Form::Plain {
                verbatim = plain;
                return ControlFlow::Continue(());
            }
            // A view also holds the unchanged seals: only additional ones were encoded.
            let new = plain.iter().find(|(owner, count)| verbatim.get(owner).is_none_or(|before| *count > before));
            new.map_or(ControlFlow::Continue(()), |(owner, _)| {
                ControlFlow::Break(Ok((index.sealed[*owner].1.clone(), encoding)))
            })
        });
        found.break_value().and_then(Result::ok)
    }
}

/// Returns true if the half of a seal at `span` is part of the complete seal.
fn is_within(seal: &str, bytes: &[u8], span: &Range<usize>) -> bool {
    bytes[span.start..].starts_with(seal.as_bytes()) || bytes[..span.end].ends_with(seal.as_bytes())
}
