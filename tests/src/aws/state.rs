//! The state of a simulated AWS: access keys, resources, and changes in progress.

use super::clock;
use super::ec2::{attachments, modifications, termination};
use super::error::Error;
use super::kind::Kind;
use super::load_balancing;
use super::snapshot_blocks::Blocks;
use crate::simulation::{Ids, Item, PendingChanges, Table};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::SystemTime;

pub(super) struct State {
    pub(super) region: String,
    /// The seconds by which the clock of the cloud is ahead of this machine's.
    pub(super) clock_ahead: i64,
    pub(super) allows_unsigned_payload: bool,
    /// The number of lookups for which a new resource does not exist yet.
    pub(super) hidden_lookups: u64,
    /// The number of launches left that fail after they were accepted.
    pub(super) failing_launches: usize,
    /// The seconds for which keys are valid that are issued from now on; absent if nothing is configured.
    pub(super) key_lifetime: Option<u64>,
    pub(super) pending: PendingChanges<Effect>,
    pub(super) keys: Vec<AccessKey>,
    pub(super) resources: Table,
    pub(super) limits: HashMap<&'static str, usize>,
    /// The results of requests with a client token.
    pub(super) tokens: HashMap<(String, &'static str, String), Remembered>,
    /// The content of snapshots that were written block by block.
    pub(super) blocks: HashMap<String, Blocks>,
    /// The session tokens of the metadata service, with the time at which each expires.
    pub(super) metadata_tokens: HashMap<String, SystemTime>,
    pub(super) ids: Ids,
    /// The resources that the current request has read.
    read: Vec<String>,
}

/// An access key, and who uses it.
#[derive(Clone, Debug)]
pub(super) struct AccessKey {
    pub(super) id: String,
    pub(super) secret: String,
    /// The session token of temporary credentials.
    pub(super) token: Option<String>,
    pub(super) expires: Option<SystemTime>,
    pub(super) account: String,
    pub(super) arn: String,
    pub(super) user: String,
}

/// What a client token stands for.
#[derive(Clone, Debug)]
pub(super) struct Remembered {
    pub(super) parameters: Value,
    pub(super) result: Value,
}

/// A change that completes asynchronously.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Started { instance: String },
    LaunchFailed { instance: String },
    Terminated { instance: String },
    VolumeAvailable { volume: String },
    VolumeDeleted { volume: String },
    Attached { volume: String },
    Detached { volume: String },
    Optimizing { volume: String },
    Modified { volume: String },
    SnapshotCompleted { snapshot: String },
    ImageAvailable { image: String },
    TargetHealthy { group: String, target: String },
    TargetDrained { group: String, target: String },
}

/// The default limits of an account.
pub(super) const LIMITS: [(&str, usize); 6] = [
    ("instances", 200),
    ("volumes", 500),
    ("snapshots", 500),
    ("network-interfaces", 500),
    ("tags-per-resource", 50),
    ("targets-per-group", 100),
];

impl State {
    pub(super) fn new(region: &str) -> State {
        State {
            region: region.to_owned(),
            clock_ahead: 0,
            allows_unsigned_payload: false,
            hidden_lookups: 0,
            failing_launches: 0,
            key_lifetime: None,
            pending: PendingChanges::new(),
            keys: Vec::new(),
            resources: Table::default(),
            limits: HashMap::new(),
            tokens: HashMap::new(),
            blocks: HashMap::new(),
            metadata_tokens: HashMap::new(),
            ids: Ids::new(),
            read: Vec::new(),
        }
    }

    pub(super) fn now(&self) -> SystemTime {
        clock::now(self.clock_ahead)
    }

    /// Returns the time as responses of EC2 contain it.
    pub(super) fn time(&self) -> String {
        clock::format(self.now())
    }

    pub(super) fn key(&self, id: &str) -> Option<AccessKey> {
        self.keys.iter().find(|key| key.id == id).cloned()
    }

    pub(super) fn limit(&self, name: &'static str) -> usize {
        let default = LIMITS.iter().find(|(known, _)| *known == name).map_or(usize::MAX, |(_, limit)| *limit);
        self.limits.get(name).copied().unwrap_or(default)
    }

    /// Starts a request: reads of one request count once.
    pub(super) fn begin_request(&mut self) {
        self.read.clear();
    }

    /// Returns a new id of this kind.
    pub(super) fn new_id(&mut self, kind: Kind) -> String {
        format!("{}0{}", kind.prefix(), &self.ids.hex()[..16])
    }

    /// Adds a resource that the next lookups may not find yet.
    pub(super) fn add(&mut self, id: &str, account: &str, view: Value, hidden: Value) {
        let mut item = Item { hidden, ..Item::new(id, account, view) };
        item.hidden["hidden_lookups"] = json!(self.hidden_lookups);
        self.resources.add(item);
    }

    /// Returns a resource that this account can use, and counts a read of it.
    pub(super) fn find(&mut self, kind: Kind, account: &str, id: &str) -> Result<Item, Error> {
        let exists = |item: &&Item| is_visible(item, account);
        if self.resources.get(id).filter(exists).is_none() {
            kind.check_form(id)?;
            return Err(kind.not_found(id));
        }
        let hidden = self.is_hidden(id);
        self.count_read(&[id]);
        let found = self.resources.get(id).filter(exists).filter(|_| !hidden && id.starts_with(&kind.prefix()));
        found.cloned().ok_or_else(|| kind.not_found(id))
    }

    /// Returns the resources of a kind that this account can see.
    pub(super) fn list(&self, kind: Kind, account: &str) -> Vec<Item> {
        let prefix = kind.prefix();
        self.resources
            .iter()
            .filter(|item| item.id.starts_with(&prefix) && is_visible(item, account))
            .cloned()
            .collect()
    }

    /// Returns the resources of a kind that belong to this account.
    pub(super) fn own(&self, kind: Kind, account: &str) -> Vec<Item> {
        self.list(kind, account).into_iter().filter(|item| item.project == account).collect()
    }

    /// Returns true if lookups do not find this new resource yet.
    pub(super) fn is_hidden(&self, id: &str) -> bool {
        self.resources.get(id).is_some_and(|item| item.hidden["hidden_lookups"].as_u64().unwrap_or_default() > 0)
    }

    /// Counts a read of these resources and first completes the changes that are due.
    pub(super) fn count_read(&mut self, ids: &[&str]) {
        let new: Vec<&str> = ids.iter().copied().filter(|id| !self.read.iter().any(|known| known == id)).collect();
        self.read.extend(new.iter().map(|id| (*id).to_owned()));
        let (hidden, visible): (Vec<&str>, Vec<&str>) = new.into_iter().partition(|id| self.is_hidden(id));
        for id in hidden {
            if let Some(item) = self.resources.get_mut(id) {
                let left = item.hidden["hidden_lookups"].as_u64().unwrap_or_default();
                item.hidden["hidden_lookups"] = json!(left.saturating_sub(1));
            }
        }
        for effect in self.pending.count_read(&visible) {
            self.apply(effect);
        }
    }

    /// Schedules a change that completes after enough reads of these resources.
    pub(super) fn schedule(&mut self, subjects: &[&str], effect: Effect) {
        self.pending.schedule(subjects, effect);
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Started { instance } => {
                self.resources.set(&instance, "instanceState", json!({"code": 16, "name": "running"}));
            }
            Effect::LaunchFailed { instance } => termination::fail_launch(self, &instance),
            Effect::Terminated { instance } => termination::finish(self, &instance),
            Effect::VolumeAvailable { volume } => self.resources.set(&volume, "status", json!("available")),
            Effect::VolumeDeleted { volume } => drop(self.resources.remove(&volume)),
            Effect::Attached { volume } => attachments::finish_attach(self, &volume),
            Effect::Detached { volume } => attachments::finish_detach(self, &volume),
            Effect::Optimizing { volume } => modifications::start_optimizing(self, &volume),
            Effect::Modified { volume } => modifications::finish(self, &volume),
            Effect::SnapshotCompleted { snapshot } => {
                self.resources.set(&snapshot, "status", json!("completed"));
                self.resources.set(&snapshot, "progress", json!("100%"));
            }
            Effect::ImageAvailable { image } => self.resources.set(&image, "imageState", json!("available")),
            Effect::TargetHealthy { group, target } => load_balancing::set_health(self, &group, &target, "healthy"),
            Effect::TargetDrained { group, target } => load_balancing::remove_target(self, &group, &target),
        }
    }
}

/// Accounts see their own resources, and public images with their snapshots.
fn is_visible(item: &Item, account: &str) -> bool {
    item.project == account || item.view["isPublic"] == true || item.hidden["public"] == true
}
