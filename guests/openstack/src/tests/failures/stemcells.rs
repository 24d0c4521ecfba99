//! Failures of stemcells.

use serde_json::json;
use wasm_cpi_sdk::fake::Answer;
use wasm_cpi_sdk::http::TransportError;
use wasm_cpi_sdk::{Cpi, ErrorKind, Json};

use super::super::cloud::Fault;
use super::super::{cpi, properties, start, start_with};
use super::matrix;

#[test]
fn an_interrupted_upload_is_repeated() {
    let (_host, cloud) = start_with(properties(), |fake| fake.image_member("root.img", "data"));
    let reset = || Fault::Before(Answer::fail(TransportError::Protocol, "connection reset", true));
    for _ in 0..2 {
        cloud.borrow_mut().fault("PUT", "images/*/file", 0, reset());
    }
    let id = cpi().create_stemcell(Json::default(), vec![]).unwrap();
    assert_eq!(cloud.borrow().get("images", &id)["status"], "active");
    assert_eq!(cloud.borrow().count_requests("PUT images"), 3);
}

#[test]
fn a_lost_answer_to_delete_stemcell_is_not_stemcell_not_found() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().put("images", "i", json!({"id": "i", "status": "active"}));
    let reset = Answer::fail(TransportError::Truncated, "connection reset", true);
    cloud.borrow_mut().fault("DELETE", "images/*", 0, Fault::After(reset));
    cpi().delete_stemcell("i".into()).unwrap();
    assert!(!cloud.borrow().all("images").iter().any(|image| image["id"] == "i"));
    assert!(cpi().delete_stemcell("i".into()).is_err());
}

#[test]
fn an_upload_that_is_answered_with_401_is_repeated() {
    let (_host, cloud) = start_with(properties(), |fake| fake.image_member("root.img", "data"));
    cloud.borrow_mut().fault("PUT", "images/*/file", 0, Fault::Before(Answer::text(401, "")));
    let id = cpi().create_stemcell(Json::from(json!({"disk_format": "raw"})), vec![]).unwrap();
    assert_eq!(cloud.borrow().get("images", &id)["status"], "active");
}

#[test]
fn a_failed_upload_leaves_no_image() {
    matrix(
        |fake| fake.image_member("root.img", "data"),
        |_| {},
        || cpi().create_stemcell(Json::from(json!({"disk_format": "raw"})), vec![]),
        |case, outcome, cloud| match outcome {
            Ok(id) => assert_eq!(cloud.borrow().get("images", &id)["status"], "active", "{case}"),
            Err(error) => {
                assert_eq!(error.kind, ErrorKind::Cloud, "{case}");
                assert!(cloud.borrow().left().is_empty(), "{case}: {error}");
            }
        },
    );
}

#[test]
fn an_image_that_may_exist_is_deleted_by_the_chosen_id() {
    let (_host, cloud) = start_with(properties(), |fake| fake.image_member("root.img", "data"));
    let reset = Answer::fail(TransportError::Protocol, "connection reset", true);
    cloud.borrow_mut().fault("POST", "images", 0, Fault::After(reset));
    for _ in 0..5 {
        cloud.borrow_mut().fault("GET", "images/*", 0, Fault::Before(Answer::text(503, "down")));
    }
    let error = cpi().create_stemcell(Json::from(json!({"disk_format": "raw"})), vec![]).unwrap_err();
    assert!(error.message.contains("it is not certain whether image "), "{error}");
    assert_eq!(cloud.borrow().left(), Vec::<String>::new());
}

#[test]
fn the_upload_waits_for_an_image_that_is_being_saved() {
    let (_host, cloud) = start_with(properties(), |fake| fake.image_member("root.img", "data"));
    cloud.borrow_mut().slow_images = true;
    let lost = Answer::fail(TransportError::Timeout, "no answer", true);
    cloud.borrow_mut().fault("PUT", "images/*/file", 0, Fault::After(lost));
    let id = cpi().create_stemcell(Json::from(json!({"disk_format": "raw"})), vec![]).unwrap();
    assert_eq!(cloud.borrow().get("images", &id)["status"], "active");
    assert_eq!(cloud.borrow().count_requests("PUT images"), 1);
}

#[test]
fn an_upload_waits_as_long_as_retry_after_says() {
    let (host, cloud) = start_with(properties(), |fake| fake.image_member("root.img", "data"));
    let busy = Answer::text(429, "").header("retry-after", "11");
    cloud.borrow_mut().fault("PUT", "images/*/file", 0, Fault::Before(busy));
    cpi().create_stemcell(Json::from(json!({"disk_format": "raw"})), vec![]).unwrap();
    assert_eq!(host.sleeps()[0], 11_000);
}
