//! Cinder, version 3.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use wasm_cpi_sdk::http::{self, Request, RequestError, segment};
use wasm_cpi_sdk::log;

use super::{Service, names};

pub(crate) struct Volumes(pub(crate) Service);

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Volume {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: Option<String>,
    pub(crate) status: String,
    /// In GiB.
    #[serde(default)]
    pub(crate) size: u64,
    pub(crate) volume_type: Option<String>,
    pub(crate) availability_zone: Option<String>,
    /// `"true"` or `"false"`.
    #[serde(default)]
    pub(crate) bootable: String,
    #[serde(default)]
    pub(crate) attachments: Vec<VolumeAttachment>,
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct VolumeAttachment {
    #[serde(default)]
    pub(crate) server_id: Option<String>,
    #[serde(default)]
    pub(crate) device: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Snapshot {
    pub(crate) id: String,
    #[serde(default)]
    name: Option<String>,
    pub(crate) status: String,
}

#[derive(Deserialize)]
struct One {
    volume: Volume,
}

#[derive(Deserialize)]
struct Many {
    volumes: Vec<Volume>,
}

#[derive(Deserialize)]
struct OneSnapshot {
    snapshot: Snapshot,
}

#[derive(Deserialize)]
struct Snapshots {
    snapshots: Vec<Snapshot>,
}

impl Volumes {
    pub(crate) fn volume(&self, id: &str) -> Result<Option<Volume>, RequestError> {
        Ok(self.0.find::<One>(&volume_path(id))?.map(|one| one.volume))
    }

    /// Returns the request of [`Self::volume`], to read it ahead.
    pub(crate) fn volume_request(&self, id: &str) -> Option<Request> {
        self.0.request_of(&volume_path(id))
    }

    pub(crate) fn volume_named(&self, name: &str) -> Result<Option<Volume>, RequestError> {
        let list = http::get(self.0.url("/volumes/detail")).query("name", name);
        Ok(self.0.read::<Many>(list)?.volumes.into_iter().find(|volume| volume.name.as_deref() == Some(name)))
    }

    pub(crate) fn volumes_with(&self, key: &str, value: &str) -> Result<Vec<Volume>, RequestError> {
        Ok(self.0.read::<Many>(self.with_get(key, value))?.volumes)
    }

    /// Returns the request of [`Self::volumes_with`], to read it ahead.
    pub(crate) fn volumes_with_request(&self, key: &str, value: &str) -> Option<Request> {
        Some(self.with_get(key, value))
    }

    fn with_get(&self, key: &str, value: &str) -> Request {
        http::get(self.0.url("/volumes/detail")).query("metadata", &json!({key: value}).to_string())
    }

    pub(crate) fn create(&self, volume: &Value) -> Result<Volume, RequestError> {
        let made = self.0.post::<One>("/volumes", &json!({"volume": volume}))?.volume;
        log::info(format_args!("created volume {} of {} GiB", made.id, volume["size"]));
        Ok(made)
    }

    pub(crate) fn delete(&self, id: &str) -> Result<bool, RequestError> {
        self.0.delete(&volume_path(id), format_args!("volume {id}"))
    }

    pub(crate) fn extend(&self, id: &str, size: u64) -> Result<(), RequestError> {
        let change = format_args!("extended volume {id} to {size} GiB");
        self.0.post_action(
            &format!("/volumes/{}/action", segment(id)),
            &json!({"os-extend": {"new_size": size}}),
            change,
        )
    }

    /// Changes the type of a volume without a migration of its data.
    pub(crate) fn retype(&self, id: &str, to: &str) -> Result<(), RequestError> {
        let body = json!({"os-retype": {"new_type": to, "migration_policy": "never"}});
        let change = format_args!("changed the type of volume {id} to {to}");
        self.0.post_action(&format!("/volumes/{}/action", segment(id)), &body, change)
    }

    /// Adds metadata and keeps the existing one. Returns true if the volume exists.
    pub(crate) fn add_metadata(&self, id: &str, metadata: &BTreeMap<String, String>) -> Result<bool, RequestError> {
        let change = format_args!("set metadata of volume {id}: {}", names(metadata));
        self.0.post_repeatable(&format!("/volumes/{}/metadata", segment(id)), &json!({"metadata": metadata}), change)
    }

    pub(crate) fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, RequestError> {
        Ok(self.0.find::<OneSnapshot>(&format!("/snapshots/{}", segment(id)))?.map(|one| one.snapshot))
    }

    pub(crate) fn snapshot_named(&self, name: &str) -> Result<Option<Snapshot>, RequestError> {
        let list = http::get(self.0.url("/snapshots")).query("name", name);
        let found = self.0.read::<Snapshots>(list)?.snapshots;
        Ok(found.into_iter().find(|snapshot| snapshot.name.as_deref() == Some(name)))
    }

    pub(crate) fn create_snapshot(&self, snapshot: &Value) -> Result<Snapshot, RequestError> {
        let made = self.0.post::<OneSnapshot>("/snapshots", &json!({"snapshot": snapshot}))?.snapshot;
        let of = snapshot["volume_id"].as_str().unwrap_or_default();
        log::info(format_args!("created snapshot {} of volume {of}", made.id));
        Ok(made)
    }

    pub(crate) fn delete_snapshot(&self, id: &str) -> Result<bool, RequestError> {
        self.0.delete(&format!("/snapshots/{}", segment(id)), format_args!("snapshot {id}"))
    }
}

fn volume_path(id: &str) -> String {
    format!("/volumes/{}", segment(id))
}
