//! The simulated OpenStack compared with the real one, the gateway in front of both, and
//! the guest on either.

pub(crate) mod cpi;
mod gateway;
mod lifecycle;
mod refusals;
mod simulator;
mod simulator_program;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::openstack::{Api, Response, Service};

/// Sends a request that must succeed, without a body if that is null, and returns the response.
#[track_caller]
fn succeed(api: &Api, service: Service, method: &str, path: &str, body: Value) -> Value {
    let answer = api.request(service, method, path, (!body.is_null()).then_some(&body));
    assert!((200..300).contains(&answer.status), "{method} {path}: {}", describe(&answer));
    answer.value()
}

fn describe(answer: &Response) -> String {
    format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body))
}

/// Reads a resource until it has this state, or until it is gone if that is null. Returns all
/// states that it had.
#[track_caller]
fn wait_for(api: &Api, service: Service, path: &str, pointer: &str, wanted: &Value) -> Vec<Value> {
    let until = Instant::now() + Duration::from_secs(120);
    let mut states = Vec::new();
    while Instant::now() < until {
        let answer = api.request(service, "GET", path, None);
        let state = if answer.status == 404 {
            Value::Null
        } else {
            answer.value().pointer(pointer).cloned().unwrap_or(json!(describe(&answer)))
        };
        if states.last() != Some(&state) {
            states.push(state.clone());
        }
        if state == *wanted || state == "ERROR" || state == "error" {
            break;
        }
        std::thread::sleep(Duration::from_millis(if states.len() > 1 { 50 } else { 10 }));
    }
    assert_eq!(states.last(), Some(wanted), "{path} had the states {states:?}");
    states
}

/// Uploads an image of a few bytes and returns its ID.
#[track_caller]
fn upload_image(api: &Api) -> String {
    let asked = json!({"name": "an image", "disk_format": "raw", "container_format": "bare"});
    let id = succeed(api, Service::Image, "POST", "/images", asked)["id"].as_str().unwrap_or_default().to_owned();
    let file = format!("/images/{id}/file");
    // The content does not matter, so that JSON is sufficient.
    let headers = [("Content-Type", "application/octet-stream")];
    let answer = api.request_with(Service::Image, "PUT", &file, &headers, Some(&json!({"any": "bytes"})));
    assert_eq!(answer.status, 204, "{}", describe(&answer));
    id
}

/// Returns the request for a server on the network of the cloud.
fn server_request(cloud: &Value, image: &str) -> Value {
    json!({"server": {
        "name": "a-server", "imageRef": image, "flavorRef": cloud["flavors"]["m1.tiny"],
        "networks": [{"uuid": cloud["network"]}],
    }})
}
