//! Failures of networks that the Director manages.

use serde_json::json;
use wasm_cpi_sdk::fake::Answer;
use wasm_cpi_sdk::http::TransportError;
use wasm_cpi_sdk::{Cpi, ErrorKind, Json, NetworkSpec};

use super::super::cloud::Fault;
use super::super::{cpi, properties, start};
use super::matrix;

#[test]
fn delete_network_succeeds_or_returns_a_cloud_error() {
    matrix(
        |fake| fake,
        |cloud| cloud.borrow_mut().put("networks", "n", json!({})),
        || cpi().delete_network("n".into()).map(|()| String::new()),
        |case, outcome, cloud| match outcome {
            Ok(_) => assert!(cloud.borrow().all("networks").is_empty(), "{case}"),
            Err(error) => assert_eq!(error.kind, ErrorKind::Cloud, "{case}: {error}"),
        },
    );
}

#[test]
fn a_lost_answer_to_delete_network_is_not_network_not_found() {
    let (_host, cloud) = start(properties());
    cloud.borrow_mut().put("networks", "n", json!({}));
    let reset = Answer::fail(TransportError::Truncated, "connection reset", true);
    cloud.borrow_mut().fault("DELETE", "networks/*", 0, Fault::After(reset));
    cpi().delete_network("n".into()).unwrap();
    assert!(cloud.borrow().all("networks").is_empty());
    assert_eq!(cpi().delete_network("n".into()).unwrap_err().kind, ErrorKind::NetworkNotFound);
}

/// Only people can find out then whether the object exists.
#[test]
fn the_error_names_an_object_that_may_exist_if_the_search_fails() {
    let network = || {
        let range = Some("10.9.0.0/24".to_owned());
        let spec = NetworkSpec {
            kind: "manual".into(),
            cloud_properties: Json::default(),
            range,
            gateway: None,
            netmask_bits: None,
        };
        cpi().create_network(spec).map(drop)
    };
    type Call = fn() -> Result<(), wasm_cpi_sdk::Error>;
    for (path, list, prefix, call) in [
        (
            "volumes",
            "volumes/detail",
            "disk volume-",
            (|| cpi().create_disk(2048, Json::default(), None).map(drop)) as Call,
        ),
        ("snapshots", "snapshots", "snapshot snapshot-", || cpi().snapshot_disk("d".into(), vec![]).map(drop)),
        ("networks", "networks", "network bosh-", network),
    ] {
        let (_host, cloud) = start(properties());
        super::server_and_disk(&cloud);
        let reset = Answer::fail(TransportError::Truncated, "connection reset", true);
        cloud.borrow_mut().fault("POST", path, 0, Fault::After(reset));
        for _ in 0..50 {
            cloud.borrow_mut().fault("GET", list, 0, Fault::Before(Answer::text(503, "down")));
        }
        let error = call().unwrap_err();
        let said = format!("it is not certain whether {prefix}");
        assert!(error.message.contains(&said) && error.message.contains("503: down"), "{error}");
    }
}
