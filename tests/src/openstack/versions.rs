//! The version documents of the services, and the microversions of Nova and Cinder.

use super::message::{Request, Response, fault};
use super::seed;
use super::service::Service;
use serde_json::{Value, json};

/// The lowest and highest minor versions of Nova's 2.x and Cinder's 3.x.
const NOVA: (u32, u32) = (1, 100);
const CINDER: (u32, u32) = (0, 71);

/// Returns the document at a service's root, which needs no token.
pub(super) fn answer(service: Service, request: &Request) -> Option<Response> {
    if request.method != "GET" {
        return None;
    }
    let (status, body) = match (service, request.path.as_str()) {
        (Service::Identity, "/") => (300, json!({"versions": {"values": [keystone()]}})),
        (Service::Identity, "/v3" | "/v3/") => (200, json!({"version": keystone()})),
        (Service::Image, "/" | "/versions") => (300, json!({"versions": glance()})),
        (Service::Compute, "/") => (200, json!({"versions": [old_nova(), nova(&[])]})),
        (Service::Compute, "/v2.1" | "/v2.1/") => {
            let described = json!({"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"});
            let mut version = nova(&[described]);
            let kind = "application/vnd.openstack.compute+json;version=2.1";
            version["media-types"] = json!([{"base": "application/json", "type": kind}]);
            (200, json!({"version": version}))
        }
        (Service::Network, "/") => (200, json!({"versions": [neutron()]})),
        (Service::Volume, "/") => (300, json!({"versions": [cinder()]})),
        (Service::Metadata, "/" | "/openstack" | "/openstack/") => {
            let body = b"2012-08-10\n2025-04-04\nlatest".to_vec();
            return Some(Response { body, ..Response::new(200) }.with("Content-Type", "text/plain; charset=UTF-8"));
        }
        _ => return None,
    };
    Some(Response::json(status, &body))
}

fn keystone() -> Value {
    json!({
        "id": "v3.14", "status": "stable", "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": format!("{}/v3/", seed::IDENTITY)}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    })
}

fn glance() -> Value {
    let version = |id: &str, status: &str| json!({"id": id, "status": status, "links": [{"rel": "self", "href": format!("{}/v2/", seed::IMAGE)}]});
    json!([version("v2.15", "SUPPORTED"), version("v2.17", "CURRENT"), version("v2.0", "SUPPORTED")])
}

fn old_nova() -> Value {
    json!({
        "id": "v2.0", "status": "SUPPORTED", "version": "", "min_version": "", "updated": "2011-01-21T11:33:21Z",
        "links": [{"rel": "self", "href": format!("{}/v2/", seed::COMPUTE)}],
    })
}

fn nova(more: &[Value]) -> Value {
    let own = json!({"rel": "self", "href": format!("{}/v2.1/", seed::COMPUTE)});
    let links = [&[own], more].concat();
    json!({
        "id": "v2.1", "status": "CURRENT", "version": format!("2.{}", NOVA.1), "min_version": format!("2.{}", NOVA.0),
        "updated": "2013-07-23T11:33:21Z", "links": links,
    })
}

fn neutron() -> Value {
    json!({"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": format!("{}/v2.0/", seed::NETWORK)}]})
}

fn cinder() -> Value {
    json!({
        "id": "v3.0", "status": "CURRENT", "version": format!("3.{}", CINDER.1), "min_version": "3.0",
        "updated": "2023-08-31T00:00:00Z", "links": [
            {"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/"},
            {"rel": "self", "href": format!("{}/v3/", seed::VOLUME)},
        ],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}],
    })
}

/// Returns the minor version that a request to Nova asks for.
pub(super) fn requested_compute_version(request: &Request) -> Result<u32, Response> {
    let old = request.header("x-openstack-nova-api-version");
    requested_version(request, "compute", 2, NOVA, old)
}

/// Returns the minor version that a request to Cinder asks for.
pub(super) fn requested_volume_version(request: &Request) -> Result<u32, Response> {
    requested_version(request, "volume", 3, CINDER, None)
}

fn requested_version(
    request: &Request,
    name: &str,
    major: u32,
    range: (u32, u32),
    old: Option<&str>,
) -> Result<u32, Response> {
    let listed = request.header("openstack-api-version").unwrap_or_default();
    let mut pairs = listed.split(',').filter_map(|pair| pair.trim().split_once(' '));
    let wanted = pairs.find(|(service, _)| *service == name).map(|(_, version)| version.trim()).or(old);
    let Some(wanted) = wanted else { return Ok(range.0) };
    if wanted == "latest" {
        return Ok(range.1);
    }
    let numbers = wanted.split_once('.').and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
    let Some((first, second)) = numbers else {
        let message = format!("API Version String {wanted} is of invalid format. Must be of format MajorNum.MinorNum.");
        return Err(fault(400, &message));
    };
    if first == major && (range.0..=range.1).contains(&second) {
        return Ok(second);
    }
    let message = format!(
        "Version {wanted} is not supported by the API. Minimum is {major}.{} and maximum is {major}.{}.",
        range.0, range.1
    );
    let refused = fault(406, &message).with("OpenStack-API-Version", &format!("{name} {wanted}"));
    Err(refused.with("Vary", "OpenStack-API-Version"))
}
