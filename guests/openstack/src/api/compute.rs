//! Nova. All requests here use its first microversion, 2.1, whose answers are the
//! same in every cloud.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use wasm_cpi_sdk::http::{self, Request, RequestError, segment};
use wasm_cpi_sdk::log;

use super::{Service, names};

pub(crate) struct Compute(pub(crate) Service);

const FLAVORS: &str = "/flavors/detail";

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Server {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, String>,
    fault: Option<Fault>,
    #[serde(default)]
    image: Value,
    #[serde(default)]
    flavor: Value,
    #[serde(rename = "OS-EXT-AZ:availability_zone")]
    availability_zone: Option<String>,
    #[serde(rename = "OS-EXT-STS:task_state")]
    task: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Fault {
    #[serde(default)]
    message: String,
}

impl Server {
    /// Returns the cloud's reason why the server failed.
    pub(crate) fn fault(&self) -> &str {
        let text = self.fault.as_ref().map_or("", |fault| fault.message.trim());
        if text.is_empty() { "the cloud gave no reason" } else { text }
    }

    /// Returns true if the server does not exist for BOSH. A soft-deleted server
    /// does not, although the cloud could still restore it.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_deleted() || self.is_soft_deleted()
    }

    pub(crate) fn is_deleted(&self) -> bool {
        self.status == "DELETED"
    }

    /// Returns true if the cloud keeps the deleted server for a while. Its ports,
    /// disks and quota stay in use until the cloud reclaims it.
    pub(crate) fn is_soft_deleted(&self) -> bool {
        self.status == "SOFT_DELETED"
    }

    /// Returns true if an earlier delete may have started: then Nova may have
    /// detached ports from the server although it still exists.
    pub(crate) fn may_be_partly_deleted(&self) -> bool {
        self.is_gone() || self.status == "ERROR" || self.task.is_some()
    }

    /// Returns true if the server boots from a volume. Nova shows no image then.
    pub(crate) fn boots_from_volume(&self) -> bool {
        self.image.get("id").is_none()
    }

    pub(crate) fn flavor_id(&self) -> Option<&str> {
        self.flavor.get("id")?.as_str()
    }

    pub(crate) fn zone(&self) -> Option<&str> {
        self.availability_zone.as_deref().filter(|zone| !zone.is_empty())
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Flavor {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) vcpus: u64,
    /// The memory in MiB.
    pub(crate) ram: u64,
    /// The root disk in GiB.
    #[serde(default)]
    pub(crate) disk: u64,
    /// The ephemeral disk in GiB.
    #[serde(default, rename = "OS-FLV-EXT-DATA:ephemeral")]
    pub(crate) ephemeral: u64,
    #[serde(default, rename = "OS-FLV-DISABLED:disabled")]
    pub(crate) disabled: bool,
    /// The swap in MiB; an empty string if there is none.
    #[serde(default)]
    swap: Value,
}

impl Flavor {
    pub(crate) fn has_swap(&self) -> bool {
        self.swap.as_u64().is_some_and(|size| size > 0)
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Attachment {
    #[serde(rename = "volumeId")]
    pub(crate) volume: String,
    #[serde(default)]
    pub(crate) device: Option<String>,
}

#[derive(Deserialize)]
struct One {
    server: Server,
}

#[derive(Deserialize)]
struct Many {
    servers: Vec<Server>,
}

#[derive(Deserialize)]
struct Flavors {
    flavors: Vec<Flavor>,
    flavors_links: Option<Value>,
}

#[derive(Deserialize)]
struct OneFlavor {
    flavor: Flavor,
}

#[derive(Deserialize)]
struct Attachments {
    #[serde(rename = "volumeAttachments")]
    attachments: Vec<Attachment>,
}

impl Compute {
    pub(crate) fn server(&self, id: &str) -> Result<Option<Server>, RequestError> {
        Ok(self.0.find::<One>(&server_path(id))?.map(|one| one.server))
    }

    /// Returns the request of [`Self::server`], to read it ahead.
    pub(crate) fn server_request(&self, id: &str) -> Option<Request> {
        self.0.request_of(&server_path(id))
    }

    /// Returns the server with this name, which must be unique and free of the
    /// characters of a pattern.
    pub(crate) fn server_named(&self, name: &str) -> Result<Option<Server>, RequestError> {
        let list = http::get(self.0.url("/servers/detail")).query("name", &format!("^{name}$"));
        let found: Many = self.0.read(list)?;
        Ok(found.servers.into_iter().find(|server| server.name == name))
    }

    /// Creates a server. The answer has little more than the ID.
    pub(crate) fn create_server(&self, body: &Value) -> Result<Server, RequestError> {
        let server = self.0.post::<One>("/servers", body)?.server;
        log::info(format_args!(
            "created server {} ({})",
            server.id,
            body["server"]["name"].as_str().unwrap_or_default()
        ));
        Ok(server)
    }

    pub(crate) fn delete_server(&self, id: &str) -> Result<bool, RequestError> {
        self.0.delete(&format!("/servers/{}", segment(id)), format_args!("server {id}"))
    }

    /// Deletes a server at once, also a soft-deleted one. Nova accepts any value;
    /// the policy grants only this one.
    pub(crate) fn force_delete(&self, id: &str) -> Result<(), RequestError> {
        let change = format_args!("deleted soft-deleted server {id}");
        self.0.post_action(&format!("/servers/{}/action", segment(id)), &json!({"forceDelete": "now"}), change)
    }

    /// `kind` is `SOFT` or `HARD`.
    pub(crate) fn reboot(&self, id: &str, kind: &str) -> Result<(), RequestError> {
        let change = format_args!("rebooted server {id} ({kind})");
        self.0.post_action(&format!("/servers/{}/action", segment(id)), &json!({"reboot": {"type": kind}}), change)
    }

    /// Adds metadata and keeps the existing one. Returns true if the server exists.
    pub(crate) fn add_metadata(&self, id: &str, metadata: &BTreeMap<String, String>) -> Result<bool, RequestError> {
        let change = format_args!("set metadata of server {id}: {}", names(metadata));
        self.0.post_repeatable(&format!("/servers/{}/metadata", segment(id)), &json!({"metadata": metadata}), change)
    }

    pub(crate) fn rename(&self, id: &str, name: &str) -> Result<(), RequestError> {
        let change = format_args!("renamed server {id} to {name}");
        self.0.put(&format!("/servers/{}", segment(id)), &json!({"server": {"name": name}}), change)
    }

    pub(crate) fn attachments(&self, server: &str) -> Result<Vec<Attachment>, RequestError> {
        Ok(self.0.find::<Attachments>(&attachments_path(server))?.map_or_else(Vec::new, |found| found.attachments))
    }

    /// Returns the request of [`Self::attachments`], to read it ahead.
    pub(crate) fn attachments_request(&self, server: &str) -> Option<Request> {
        self.0.request_of(&attachments_path(server))
    }

    pub(crate) fn attach(&self, server: &str, volume: &str, device: &str) -> Result<(), RequestError> {
        let path = attachments_path(server);
        let body = json!({"volumeAttachment": {"volumeId": volume, "device": device}});
        self.0.post_action(&path, &body, format_args!("attached volume {volume} to server {server}"))
    }

    pub(crate) fn detach(&self, server: &str, volume: &str) -> Result<bool, RequestError> {
        let path = format!("/servers/{}/os-volume_attachments/{}", segment(server), segment(volume));
        self.0.delete(&path, format_args!("attachment of volume {volume} to server {server}"))
    }

    /// Returns all flavors, from all pages.
    pub(crate) fn flavors(&self) -> Result<Vec<Flavor>, RequestError> {
        let mut all: Vec<Flavor> = vec![];
        loop {
            let mut list = http::get(self.0.url(FLAVORS));
            if let Some(last) = all.last() {
                list = list.query("marker", &last.id);
            }
            let page: Flavors = self.0.read(list)?;
            let new = page.flavors.last().is_some_and(|last| all.iter().all(|known| known.id != last.id));
            let more = page.flavors_links.is_some() && new;
            all.extend(page.flavors);
            if !more {
                return Ok(all);
            }
        }
    }

    /// Returns the first request of [`Self::flavors`], to read it ahead.
    pub(crate) fn flavors_request(&self) -> Option<Request> {
        self.0.request_of(FLAVORS)
    }

    pub(crate) fn flavor(&self, id: &str) -> Result<Option<Flavor>, RequestError> {
        Ok(self.0.find::<OneFlavor>(&format!("/flavors/{}", segment(id)))?.map(|one| one.flavor))
    }

    pub(crate) fn has_key(&self, name: &str) -> Result<bool, RequestError> {
        Ok(self.0.find::<Value>(&key_path(name))?.is_some())
    }

    /// Returns the request of [`Self::has_key`], to read it ahead.
    pub(crate) fn key_request(&self, name: &str) -> Option<Request> {
        self.0.request_of(&key_path(name))
    }
}

fn server_path(id: &str) -> String {
    format!("/servers/{}", segment(id))
}

fn attachments_path(server: &str) -> String {
    format!("/servers/{}/os-volume_attachments", segment(server))
}

fn key_path(name: &str) -> String {
    format!("/os-keypairs/{}", segment(name))
}
