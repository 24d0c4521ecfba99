//! Which cloud IDs the requests of a call created, as far as the traffic of the call proves it.
//!
//! A call that could not deliver its response deletes what it created. It must never delete what
//! existed before, for example a disk that a guest found and returned instead of creating one. So
//! an ID counts as created only if the first successful exchange that names it is
//!
//! - a POST whose response names the ID and which does not name it itself, or
//! - a PUT whose path names the ID, and whose status is 201 (Created).
//!
//! A request names an ID in its path, query, headers or body, in whatever encoding: each can say what the request is
//! about. So a POST with a name of the guest's choice proves nothing if the name is the ID, and what it creates stays.
//! An operation proves a creation only if the policy lists the operations that read, and it is not one of
//! these: of an API with one path, POST requests name what exists, too.
//!
//! An ID that an earlier response named existed before. A POST that got no response proves nothing,
//! even if a later GET shows the resource. Only what the guest itself could see counts, so that
//! nothing depends on a secret in a response.

use crate::net::gate::GuestResponse;
use crate::vault::visit_decoded;
use reqwest::Method;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most words that are kept, as hashes of eight bytes. A call that sees more proves nothing.
const MAX_WORDS: usize = 500_000;

/// The record of one call. The default one keeps nothing: it is for methods that create nothing which could be undone.
#[derive(Default)]
pub(super) struct Creations(Option<Mutex<State>>);

/// The words of a text, as hashes.
pub(super) type Words = HashSet<u64>;

/// What a request says about the resources that its response names.
pub(super) struct Evidence<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    /// What the request names in any of its parts.
    pub(super) named: &'a Words,
    /// False if the request cannot have created anything, or if that is unknown.
    pub(super) may_create: bool,
}

#[derive(Default)]
struct State {
    hasher: RandomState,
    /// All words of paths and responses so far.
    named: Words,
    /// The words that name something that this call created.
    created: Words,
    full: bool,
}

impl State {
    /// Returns the words of a text in every decoding.
    fn words_of(&self, text: &[u8]) -> Words {
        let mut found = Words::new();
        visit_decoded(text, &mut |view| found.extend(words(view).map(|word| self.hasher.hash_one(word))));
        found
    }
}

impl Creations {
    /// Returns a record that keeps what the requests create.
    pub(super) fn recording() -> Creations {
        Creations(Some(Mutex::default()))
    }

    /// Returns the words of the parts of a request, also those that are escaped; none if nothing is recorded.
    pub(super) fn words_of_request<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) -> Words {
        let Some(state) = self.lock() else { return Words::new() };
        parts.into_iter().flat_map(|part| state.words_of(part)).collect()
    }

    /// Records an exchange with a response that the guest gets.
    pub(super) fn record(&self, request: &Evidence<'_>, response: &GuestResponse) {
        let Some(mut state) = self.lock() else { return };
        if state.full || !(200..300).contains(&response.status) {
            return;
        }
        let hash = |word: &[u8]| state.hasher.hash_one(word);
        let Evidence { method, path, named: in_request, may_create } = *request;
        let in_path: Words = words(path.as_bytes()).map(hash).collect();
        let headers = response.headers.iter().flat_map(|(_, value)| words(value.as_bytes()));
        let in_response: Words = words(&response.body).chain(headers).map(hash).collect();
        let created: Vec<u64> = match (method, response.status) {
            _ if !may_create => Vec::new(),
            (&Method::POST, _) => {
                in_response.difference(&in_path).filter(|word| !in_request.contains(word)).copied().collect()
            }
            (&Method::PUT, 201) => in_path.iter().copied().collect(),
            _ => Vec::new(),
        };
        let decoded = state.words_of(&response.body);
        let State { named, created: all, full, .. } = &mut *state;
        all.extend(created.into_iter().filter(|word| !named.contains(word)));
        named.extend(in_path);
        named.extend(in_request);
        named.extend(in_response);
        named.extend(decoded);
        *full = named.len() > MAX_WORDS;
    }

    /// Returns true if this call created the resource. Of an ID with several parts, such as
    /// `zone/id`, the longest part counts.
    pub(super) fn has_created(&self, cid: &str) -> bool {
        let Some(state) = self.lock() else { return false };
        let longest = words(cid.as_bytes()).max_by_key(|word| word.len());
        longest.is_some_and(|word| !state.full && state.created.contains(&state.hasher.hash_one(word)))
    }

    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the words of a text: the longest runs of characters that IDs are made of.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let separates = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    text.split(separates).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records exchanges of method, path, status and body, and returns whether `vm-7` was created.
    fn proven(exchanges: &[(Method, &str, u16, &str)]) -> bool {
        let creations = Creations::recording();
        for (method, path, status, body) in exchanges {
            let response = GuestResponse { status: *status, headers: Vec::new(), body: (*body).into() };
            record(&creations, method, path, &response);
        }
        creations.has_created("vm-7")
    }

    fn record(creations: &Creations, method: &Method, path: &str, response: &GuestResponse) {
        creations.record(&Evidence { method, path, named: &Words::new(), may_create: true }, response);
    }

    /// Records requests with operations, each with its body, whether it may create something, and the body of its
    /// response. Returns whether `vm-7` was created.
    fn proven_by_bodies(exchanges: &[(&str, bool, &str)]) -> bool {
        let creations = Creations::recording();
        for (body, may_create, response) in exchanges {
            let named = creations.words_of_request([body.as_bytes()]);
            let response = GuestResponse { status: 200, headers: Vec::new(), body: (*response).into() };
            let request = Evidence { method: &Method::POST, path: "/", named: &named, may_create: *may_create };
            creations.record(&request, &response);
        }
        creations.has_created("vm-7")
    }

    #[test]
    fn of_operations_only_the_response_to_one_that_may_create_proves_it() {
        const RUN: (&str, bool, &str) = ("Action=Run&Image=img-1", true, "<id>vm-7</id><image>img-1</image>");
        assert!(proven_by_bodies(&[RUN]));
        assert!(proven_by_bodies(&[("Action=Describe", false, "<id>vm-6</id>"), RUN]));
        assert!(proven_by_bodies(&[RUN, ("Action=Describe&Id.1=vm-7", false, "<id>vm-7</id>")]));
        for exchanges in [
            // It reads, or may only read.
            &[("Action=Describe", false, "<id>vm-7</id>")][..],
            &[("Action=Describe", false, "<id>vm-7</id>"), RUN],
            // It names what it changes, in whatever encoding.
            &[("Action=Modify&Id=vm-7", true, "<id>vm-7</id>")],
            &[("Action=Modify&Id=vm%2D7", true, "<id>vm-7</id>")],
            &[("Action=Modify&vm-7=x", true, "<id>vm-7</id>")],
            &[("{\"stop\": {\"id\": \"vm-7\"}}", true, "{\"id\": \"vm-7\"}")],
            &[("{\"id\": \"vm\\u002d7\"}", true, "{\"id\": \"vm-7\"}")],
            &[("<id>vm&#45;7</id>", true, "<id>vm-7</id>")],
            &[("Action=List", true, "{\"id\": \"vm\\u002d7\"}"), RUN],
            &[("Action=Stop&Id=vm-7", true, ""), RUN],
        ] {
            assert!(!proven_by_bodies(exchanges), "{exchanges:?}");
        }
        assert!(Creations::default().words_of_request([b"vm-7".as_slice()]).is_empty());
    }

    const CREATED: (Method, &str, u16, &str) = (Method::POST, "/servers", 202, r#"{"server":{"id":"vm-7"}}"#);

    #[test]
    fn a_response_that_is_the_first_to_name_the_id_proves_it() {
        assert!(proven(&[CREATED]));
        assert!(proven(&[
            (Method::GET, "/servers", 200, r#"["vm-6"]"#),
            CREATED,
            (Method::GET, "/servers/vm-7", 200, "")
        ]));
        assert!(proven(&[(Method::POST, "/servers", 200, "<id>vm-7</id>")]));
        // The guest chose the name, and asked first whether it is free.
        assert!(proven(&[(Method::GET, "/servers/vm-7", 404, ""), (Method::PUT, "/servers/vm-7", 201, "")]));
    }

    #[test]
    fn everything_else_proves_nothing() {
        for exchanges in [
            vec![],
            vec![(Method::GET, "/servers", 200, r#"{"id":"vm-7"}"#)],
            // It was there before, under its own path or in a list.
            vec![(Method::GET, "/servers", 200, r#"["vm-7"]"#), CREATED],
            vec![(Method::GET, "/servers/vm-7", 200, "{}"), CREATED],
            // A change of what exists, and one that failed.
            vec![(Method::POST, "/servers/vm-7/action", 202, r#"{"id":"vm-7"}"#)],
            vec![(Method::POST, "/servers/vm-7/action", 202, ""), CREATED],
            vec![(Method::PUT, "/servers/vm-7", 200, "")],
            vec![(Method::POST, "/servers", 409, r#"{"id":"vm-7"}"#)],
            vec![(Method::DELETE, "/servers", 200, r#"{"id":"vm-7"}"#)],
            // Another ID that begins or ends with this one.
            vec![(Method::POST, "/servers", 202, r#"{"id":"vm-77","old":"a-vm-7"}"#)],
        ] {
            assert!(!proven(&exchanges), "{exchanges:?}");
        }
        assert!(!Creations::default().has_created("vm-7"));
    }

    #[test]
    fn a_header_counts_and_the_longest_part_of_an_id_counts() {
        let creations = Creations::recording();
        let headers = vec![("location".to_owned(), "https://api/v1/servers/0a1b2c3d".to_owned())];
        let response = GuestResponse { status: 201, headers, body: Vec::new() };
        record(&creations, &Method::POST, "/servers", &response);
        assert!(
            creations.has_created("zone-1/0a1b2c3d")
                && !creations.has_created("zone-1/0a1b2c3e")
                && !creations.has_created("/")
        );
    }

    #[test]
    fn a_call_that_sees_too_much_proves_nothing() {
        let creations = Creations::recording();
        let body: String = (0..=MAX_WORDS).map(|n| format!("{n} ")).collect();
        let response = GuestResponse { status: 200, headers: Vec::new(), body: body.into() };
        record(&creations, &Method::POST, "/", &response);
        assert!(!creations.has_created("7"));
    }
}
