//! Removes secrets and seals from texts for operators: logs, the audit log, the explanation of an error.

use super::{LOOKAHEAD, SecretKind, Vault, needles, views};
use crate::vault::scanner::Searched;
use std::ops::{ControlFlow, Range};
use wasm_cpi_checks::Check;

impl Vault {
    /// Returns the text with `<redacted>` instead of secrets and `<sealed:name>` instead of
    /// seals, in any encoding. Does not escape anything else. The text is for operators only: a
    /// guest could find out from it which of its own words are secrets.
    #[cfg(any(test, feature = "fuzzing", feature = "mutation-testing"))]
    pub fn redact(&self, text: &str) -> String {
        self.redact_start(text, usize::MAX).0
    }

    /// Redacts the first `most` bytes of a text. If a secret begins before
    /// the cut and could end after it, the text is cut before the secret: the part before the cut
    /// alone would not be recognised. Returns the redacted start, and how many bytes are left out.
    /// Nothing is returned of a text whose search was stopped.
    pub fn redact_start(&self, text: &str, most: usize) -> (String, usize) {
        self.redact_kinds(text, most, &|_| true)
    }

    /// Redacts a text for the audit log: values that a server chose stay.
    pub fn redact_audit(&self, text: &str) -> String {
        self.redact_audit_start(text, usize::MAX).0
    }

    /// Redacts the start of a text for the audit log: values that a server chose stay.
    pub fn redact_audit_start(&self, text: &str, most: usize) -> (String, usize) {
        self.redact_kinds(text, most, &|kind| {
            Check::AuditTarget.accepts(!matches!(kind, SecretKind::FromServer | SecretKind::Token))
        })
    }

    fn redact_kinds(&self, text: &str, most: usize, redacts: &dyn Fn(SecretKind) -> bool) -> (String, usize) {
        let (secrets, seals) = (self.secret_index(text.len()), self.seal_index());
        let mut marks: Vec<(Range<usize>, Option<usize>)> = Vec::new();
        let most = text.floor_char_boundary(most);
        let (mut cut, is_cut) = (most, Check::RedactCut.choose(most < text.len(), false));
        let read = &text[..text.floor_char_boundary(most.saturating_add(LOOKAHEAD))];
        let deadline = self.search_deadline();
        let searched: Searched<()> = views::visit_all(read.as_bytes(), views::Track::Yes, &mut |view, _| {
            if is_cut {
                let before = view.length_before(most);
                let counts = |needle: &needles::Needle| redacts(secrets.known[needle.owner].kind);
                let unfinished = secrets.scanner.unfinished(&view.bytes[..before], &counts);
                if unfinished > 0 {
                    cut = cut.min(view.origin(before - unfinished..before).start);
                }
            }
            secrets.scanner.scan(&view.bytes, &deadline, &mut |needle, span| {
                if redacts(secrets.known[needle.owner].kind) {
                    marks.push((view.origin(span), None));
                }
                ControlFlow::Continue(())
            })?;
            let mut seal = |needle: &needles::Needle, span| {
                marks.push((view.origin(span), Some(needle.owner)));
                ControlFlow::Continue(())
            };
            let found = Check::SealPrinted.perform(|| seals.scanner.scan(&view.bytes, &deadline, &mut seal));
            found.unwrap_or(ControlFlow::Continue(()))
        });
        if let ControlFlow::Break(Err(stopped)) = searched {
            return (format!("<redacted: {stopped}>"), text.len());
        }
        let cut = text.floor_char_boundary(cut);
        marks.retain(|(span, _)| span.start < cut);
        marks.sort_by_key(|(span, _)| span.start);

        let mut redacted = String::with_capacity(cut);
        let mut done = 0;
        let mut marks = marks.into_iter().peekable();
        while let Some((mut span, mut seal)) = marks.next() {
            while let Some((next, other)) = marks.next_if(|(next, _)| next.start < span.end) {
                span.end = span.end.max(next.end);
                seal = seal.filter(|_| other.is_some());
            }
            let (start, end) = (text.floor_char_boundary(span.start), text.ceil_char_boundary(span.end));
            redacted.push_str(&text[done.min(start)..start]);
            match seal {
                Some(owner) => redacted.push_str(&format!("<sealed:{}>", seals.sealed[owner].1)),
                None => redacted.push_str("<redacted>"),
            }
            done = end;
        }
        redacted.push_str(&text[done.min(cut)..cut]);
        (redacted, text.len() - cut)
    }
}
