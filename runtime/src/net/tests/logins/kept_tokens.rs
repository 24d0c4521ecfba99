//! Tokens that are kept for later calls, and that a server refuses.

use super::*;
use std::os::unix::fs::PermissionsExt;

/// An identity service, an API that accepts some tokens, and the cache and image of calls.
struct Cloud {
    identity: Server,
    api: Server,
    cache: tempfile::TempDir,
}

impl Cloud {
    fn new(accepted: &'static [&'static str]) -> Cloud {
        let cache = tempfile::tempdir().unwrap();
        std::fs::set_permissions(cache.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::write(cache.path().join("image"), b"image").unwrap();
        Cloud { identity: identity("3600"), api: api(accepted), cache }
    }

    /// Starts a call that keeps its token.
    fn call(&self) -> Running {
        let image = Image::open(&self.cache.path().join("image"), &[]).unwrap();
        let cache = Some(self.cache.path().to_owned());
        Fixture { image: Some(Arc::new(image)), cache, ..fixture(&self.identity, &self.api) }.start()
    }

    /// Returns a request that is not sent again, because its body is read once.
    fn upload(&self) -> GuestRequest {
        GuestRequest { body: GuestBody::Image(ImagePart::Whole), ..request("PUT", self.api.url("/i")) }
    }

    /// Returns the numbers of the tokens that the API received.
    fn received(&self) -> Vec<String> {
        let tokens = self.api.requests().into_iter().map(|seen| seen.header("x-auth-token").unwrap().to_owned());
        tokens.map(|token| token.replace("token-number-", "")).collect()
    }
}

#[test]
fn the_next_request_does_not_use_a_token_that_was_refused_in_an_upload() {
    let cloud = Cloud::new(&["token-number-2"]);
    let first = cloud.call();
    first.session("main").unwrap();
    // The token may come from this call or from an earlier one.
    for call in [first, cloud.call()] {
        let is_first = cloud.received().is_empty();
        assert_eq!(call.send(cloud.upload()).unwrap().status, if is_first { 401 } else { 200 });
        assert_eq!(call.send(cloud.upload()).unwrap().status, 200);
        assert_eq!(call.get(cloud.api.url("/x")).unwrap().status, 200);
    }
    assert_eq!((cloud.received().join(""), cloud.identity.requests().len()), ("122222".to_owned(), 2));
}

#[test]
fn a_kept_token_is_a_secret_before_the_call_uses_its_login() {
    let cloud = Cloud::new(&["token-number-1"]);
    assert_eq!(cloud.call().vault.leak_in(b"token-number-1").unwrap(), None);
    cloud.call().session("main").unwrap();
    let later = cloud.call();
    assert_eq!(later.vault.leak_in(b"x token-number-1").unwrap().as_deref(), Some("token of login main"));
    assert_eq!(cloud.identity.requests().len(), 1);
}

#[test]
fn later_calls_do_not_use_a_token_that_was_refused_in_an_upload() {
    let cloud = Cloud::new(&["token-number-2"]);
    cloud.call().session("main").unwrap();
    assert_eq!(cloud.call().send(cloud.upload()).unwrap().status, 401);
    for _ in 0..2 {
        assert_eq!(cloud.call().send(cloud.upload()).unwrap().status, 200);
    }
    assert_eq!((cloud.received().join(""), cloud.identity.requests().len()), ("122".to_owned(), 2));
}

#[test]
fn a_call_that_runs_does_not_use_a_token_that_was_refused_in_an_upload_of_another_call() {
    let cloud = Cloud::new(&["token-number-2"]);
    let (first, second) = (cloud.call(), cloud.call());
    for call in [&first, &second] {
        call.session("main").unwrap();
    }
    for call in [&first, &second] {
        assert_eq!(call.send(cloud.upload()).unwrap().status, 401);
    }
    for call in [&first, &second] {
        assert_eq!(call.send(cloud.upload()).unwrap().status, 200);
    }
    assert_eq!((cloud.received().join(""), cloud.identity.requests().len()), ("1122".to_owned(), 2));
}

#[test]
fn uploads_make_one_new_login_per_minute_and_the_guest_reads_why() {
    let cloud = Cloud::new(&[]);
    let call = cloud.call();
    for _ in 0..2 {
        assert_eq!(call.send(cloud.upload()).unwrap().status, 401);
    }
    for call in [call, cloud.call()] {
        // A later call has to try the token, because it does not know that a server refused it.
        if let Ok(response) = call.send(cloud.upload()) {
            assert_eq!(response.status, 401);
        }
        let error = call.send(cloud.upload()).unwrap_err();
        assert_eq!((error.kind, error.sent), (HttpErrorKind::Denied(DenialReason::Credential), false));
        let expected = "iaas: a server refuses the tokens of login `main`, and there was a new login less than a \
                        minute ago; look at the server's log, and at the rights of the login's user";
        assert_eq!(error.message, expected);
    }
    assert_eq!((cloud.received().join(""), cloud.identity.requests().len()), ("122".to_owned(), 2));
}
