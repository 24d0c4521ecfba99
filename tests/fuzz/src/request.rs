//! The Director's request: the parsed request has exactly the content of the JSON, and
//! nothing is lost on the way to the guest and back.

use serde_json::{Map, Value, json};
use wasm_cpi::fuzzing::API_VERSION;
use wasm_cpi::fuzzing::Call;
use wasm_cpi::fuzzing::MethodName;
use wasm_cpi::fuzzing::Request;
use wasm_cpi::fuzzing::Who;
use wasm_cpi::fuzzing::{
    WireError, document, metadata_for_guest, networks_for_caller, networks_for_guest, visible_env,
};

pub(crate) fn fuzz(data: &[u8]) {
    let request = match Request::parse(data, API_VERSION) {
        Ok(request) => request,
        Err(failure) => {
            assert_eq!(failure.who, Who::Request);
            return check_response(&WireError::from(&failure));
        }
    };
    let sent: Value = serde_json::from_slice(data).expect("an accepted request is JSON");
    check_envelope(&request, &sent);
    let MethodName::Known(method) = MethodName::parse(&request.method) else {
        return check_response(&WireError::unknown_method(&request.method));
    };
    assert_eq!(method.name(), request.method);
    match Call::parse(method, request.arguments.clone(), request.api_version) {
        Ok(call) => {
            assert_eq!(call.method(), method);
            check_call(&call, &request.arguments, request.api_version);
        }
        Err(failure) => {
            assert_eq!(failure.who, Who::Request);
            check_response(&WireError::from(&failure));
        }
    }
}

fn check_envelope(request: &Request, sent: &Value) {
    assert_eq!(sent["method"], Value::from(request.method.as_str()));
    assert_eq!(sent["arguments"], Value::from(request.arguments.clone()));
    let version = sent.get("api_version").filter(|version| !version.is_null());
    assert_eq!(version.map_or(1.0, |version| version.as_f64().unwrap_or(-1.0)), f64::from(request.api_version));
    assert!((1..=API_VERSION).contains(&request.api_version));
    let mut context = sent["context"].as_object().cloned().unwrap_or_default();
    let mut own = |key: &str| context.shift_remove(key).filter(|value| !value.is_null());
    assert_eq!(own("director_uuid"), request.director_uuid.clone().map(Value::from));
    assert_eq!(own("request_id"), request.request_id.clone().map(Value::from));
    own("vm");
    assert_eq!(context, request.properties);
}

/// Returns the smallest and the largest number of arguments of a method.
fn arity(method: &str, api_version: u32) -> (usize, usize) {
    match method {
        "info" => (0, 0),
        "create_vm" => (4, 6),
        "create_stemcell" if api_version >= 3 => (2, 3),
        "create_disk" => (2, 3),
        "update_disk" => (3, 3),
        "create_stemcell" | "set_vm_metadata" | "set_disk_metadata" | "attach_disk" | "detach_disk" | "resize_disk"
        | "snapshot_disk" => (2, 2),
        _ => (1, 1),
    }
}

fn check_call(call: &Call, arguments: &[Value], api_version: u32) {
    let (least, most) = arity(call.method().name(), api_version);
    assert!((least..=most).contains(&arguments.len()), "{} with {} arguments", call.method().name(), arguments.len());
    for id in call.registry_ids() {
        assert!(!id.is_empty() && arguments.contains(&Value::from(id)));
    }
    match call {
        Call::CreateVm { networks, env, disks, .. } => {
            let back = networks_for_caller(networks_for_guest(networks));
            check_networks(networks, &back.expect("networks of the caller can be sent back"));
            let visible = visible_env(env);
            assert!(visible.as_object().is_some_and(|visible| visible.keys().all(|key| key == "bosh")), "{visible}");
            assert!(
                disks.iter().all(|disk| arguments[4].as_array().is_some_and(|all| all.contains(&disk.as_str().into())))
            );
        }
        Call::CreateDisk { size_mib, .. } | Call::ResizeDisk { size_mib, .. } | Call::UpdateDisk { size_mib, .. } => {
            let given = arguments.iter().find_map(Value::as_f64);
            assert_eq!(given, Some(*size_mib as f64));
        }
        Call::SetVmMetadata { metadata, .. } | Call::SetDiskMetadata { metadata, .. } => {
            assert_eq!(metadata_for_guest(metadata).len(), metadata.len());
        }
        _ => {}
    }
}

fn check_networks(sent: &Map<String, Value>, back: &Value) {
    assert_eq!(Some(sent.len()), back.as_object().map(Map::len));
    for (name, network) in sent {
        for (key, value) in network.as_object().expect("networks are objects") {
            // An empty type is dropped, and `cloud_properties` is always an object.
            let same = match key.as_str() {
                "type" if value == "" => back[name].get(key).is_none(),
                "cloud_properties" if !value.is_object() => back[name][key] == json!({}),
                _ => back[name].get(key) == Some(value),
            };
            assert!(same, "{name}.{key} is lost");
        }
    }
}

fn check_response(error: &WireError) {
    let text = document(Err(error.clone()), "");
    assert!(!text.contains('\n'));
    let document: Value = serde_json::from_str(&text).expect("a response is JSON");
    assert_eq!(document["error"]["message"], Value::from(error.message.as_str()));
    assert_eq!(document.as_object().map(Map::len), Some(3));
}
