//! The simulated OpenStack against the real one, the gateway before both, and
//! the guest on either.

pub(crate) mod cpi;
mod gateway;
mod life;
mod program;
mod refusals;
mod simulator;

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::openstack::{Api, Response, Service};

/// Succeeds, with this body.
#[track_caller]
fn done(api: &Api, service: Service, method: &str, path: &str, body: Value) -> Value {
    let answer = api.request(service, method, path, (!body.is_null()).then_some(&body));
    assert!((200..300).contains(&answer.status), "{method} {path}: {}", told(&answer));
    answer.value()
}

fn told(answer: &Response) -> String {
    format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body))
}

/// Reads until a thing is in this state, or gone if that is null; answers the states on the way.
#[track_caller]
fn watch(api: &Api, service: Service, path: &str, pointer: &str, wanted: &Value) -> Vec<Value> {
    let until = Instant::now() + Duration::from_secs(120);
    let mut states = Vec::new();
    while Instant::now() < until {
        let answer = api.request(service, "GET", path, None);
        let state = if answer.status == 404 {
            Value::Null
        } else {
            answer.value().pointer(pointer).cloned().unwrap_or(json!(told(&answer)))
        };
        if states.last() != Some(&state) {
            states.push(state.clone());
        }
        if state == *wanted || state == "ERROR" || state == "error" {
            break;
        }
        std::thread::sleep(Duration::from_millis(if states.len() > 1 { 50 } else { 10 }));
    }
    assert_eq!(states.last(), Some(wanted), "{path} went through {states:?}");
    states
}

/// An image with a few bytes.
#[track_caller]
fn image(api: &Api) -> String {
    let asked = json!({"name": "an image", "disk_format": "raw", "container_format": "bare"});
    let id = done(api, Service::Image, "POST", "/images", asked)["id"].as_str().unwrap_or_default().to_owned();
    let file = format!("/images/{id}/file");
    // JSON is bytes, too.
    let headers = [("Content-Type", "application/octet-stream")];
    let answer = api.request_with(Service::Image, "PUT", &file, &headers, Some(&json!({"any": "bytes"})));
    assert_eq!(answer.status, 204, "{}", told(&answer));
    id
}

/// A server on a network of the cloud.
fn server(cloud: &Value, image: &str) -> Value {
    json!({"server": {
        "name": "a-server", "imageRef": image, "flavorRef": cloud["flavors"]["m1.tiny"],
        "networks": [{"uuid": cloud["network"]}],
    }})
}
