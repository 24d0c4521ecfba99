//! The state of a simulated cloud, and its asynchronous changes.

use super::table::Table;
use super::{block_devices, clock, server_build, servers, volume_actions};
use crate::simulation::{Ids, PendingChanges};
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

pub(super) struct State {
    pub(super) token_lifetime: Duration,
    /// Keeps deleted servers as soft-deleted.
    pub(super) soft_delete: bool,
    pub(super) users: Vec<User>,
    pub(super) projects: Vec<Project>,
    pub(super) credentials: Vec<Credential>,
    pub(super) tokens: HashMap<String, Session>,
    pub(super) images: Table,
    pub(super) flavors: Table,
    pub(super) servers: Table,
    pub(super) keypairs: Table,
    pub(super) server_groups: Table,
    pub(super) networks: Table,
    pub(super) subnets: Table,
    pub(super) subnet_pools: Table,
    pub(super) ports: Table,
    pub(super) floating_ips: Table,
    pub(super) security_groups: Table,
    pub(super) volumes: Table,
    pub(super) snapshots: Table,
    pub(super) volume_types: Table,
    /// Load balancers, pools and members.
    pub(super) load_balancing: Table,
    /// Limits by project and name of the resource; -1 means no limit.
    pub(super) quotas: HashMap<(String, &'static str), i64>,
    pub(super) pending: PendingChanges<Effect>,
    ids: Ids,
}

pub(super) struct User {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) password: String,
    pub(super) project: String,
    pub(super) admin: bool,
}

pub(super) struct Project {
    pub(super) id: String,
    pub(super) name: String,
}

/// An application credential.
pub(super) struct Credential {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) secret: String,
    pub(super) user: String,
}

/// The user and project of a token.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) user: String,
    pub(super) project: String,
    pub(super) admin: bool,
    pub(super) expires: SystemTime,
}

/// A change that completes asynchronously.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    ServerBuilt {
        server: String,
    },
    /// A reboot, start or stop is complete.
    StatusChanged {
        server: String,
        status: &'static str,
    },
    ServerDeleted {
        server: String,
    },
    /// The server is no longer listed.
    ServerRecordRemoved {
        server: String,
    },
    Attached {
        server: String,
        volume: String,
    },
    Detached {
        server: String,
        volume: String,
    },
    VolumeReady {
        volume: String,
    },
    VolumeDeleted {
        volume: String,
    },
    Extended {
        volume: String,
        size: u64,
    },
    Retyped {
        volume: String,
        kind: String,
    },
    SnapshotReady {
        snapshot: String,
    },
    MemberReady {
        member: String,
    },
    MemberDeleted {
        member: String,
    },
    SnapshotDeleted {
        snapshot: String,
    },
}

/// The default limits of a project.
pub(super) const QUOTAS: [(&str, i64); 16] = [
    ("instances", 200),
    ("cores", 400),
    ("ram", 800_000),
    ("key_pairs", 100),
    ("server_groups", 200),
    ("server_group_members", 100),
    ("metadata_items", 128),
    ("network", 100),
    ("subnet", 100),
    ("port", 1000),
    ("floatingip", 100),
    ("security_group", 100),
    ("volumes", 500),
    ("snapshots", 500),
    ("gigabytes", 8000),
    ("per_volume_gigabytes", 2000),
];

impl State {
    pub(super) fn new() -> State {
        State {
            token_lifetime: Duration::from_secs(86_400),
            soft_delete: false,
            users: Vec::new(),
            projects: Vec::new(),
            credentials: Vec::new(),
            tokens: HashMap::new(),
            images: Table::default(),
            flavors: Table::default(),
            servers: Table::default(),
            keypairs: Table::default(),
            server_groups: Table::default(),
            networks: Table::default(),
            subnets: Table::default(),
            subnet_pools: Table::default(),
            ports: Table::default(),
            floating_ips: Table::default(),
            security_groups: Table::default(),
            volumes: Table::default(),
            snapshots: Table::default(),
            volume_types: Table::default(),
            load_balancing: Table::default(),
            quotas: HashMap::new(),
            pending: PendingChanges::new(),
            ids: Ids::new(),
        }
    }

    /// Returns 32 hexadecimal digits that were not used before.
    pub(super) fn hex(&mut self) -> String {
        self.ids.hex()
    }

    /// Returns a new UUID of version 4.
    pub(super) fn uuid(&mut self) -> String {
        self.ids.uuid()
    }

    /// Returns the limit; `None` if the resource is unlimited.
    pub(super) fn quota(&self, project: &str, name: &'static str) -> Option<u64> {
        let known = self.quotas.get(&(project.to_owned(), name)).copied();
        let limit = known.or_else(|| QUOTAS.iter().find(|(known, _)| *known == name).map(|(_, limit)| *limit));
        limit.and_then(|limit| u64::try_from(limit).ok())
    }

    /// Schedules a change that completes after enough reads of these resources.
    pub(super) fn schedule(&mut self, subjects: &[&str], effect: Effect) {
        self.pending.schedule(subjects, effect);
    }

    /// Schedules a change that completes at the next read of this resource.
    pub(super) fn schedule_at_next_read(&mut self, subject: &str, effect: Effect) {
        self.pending.schedule_at_next_read(subject, effect);
    }

    /// Cancels the scheduled changes of this resource.
    pub(super) fn cancel_pending(&mut self, id: &str) {
        self.pending.cancel(id);
    }

    /// Counts a read of these resources and first completes the changes that are due.
    pub(super) fn count_read<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) {
        let ids: Vec<&str> = ids.into_iter().collect();
        for effect in self.pending.count_read(&ids) {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::ServerBuilt { server } => server_build::finish(self, &server),
            Effect::StatusChanged { server, status } => servers::set_status(self, &server, status),
            Effect::ServerDeleted { server } => server_build::tear_down(self, &server),
            Effect::ServerRecordRemoved { server } => drop(self.servers.remove(&server)),
            Effect::Attached { server, volume } => block_devices::finish_attach(self, &server, &volume),
            Effect::Detached { server, volume } => block_devices::finish_detach(self, &server, &volume),
            Effect::VolumeReady { volume } => volume_actions::finish_change(self, &volume),
            Effect::VolumeDeleted { volume } => drop(self.volumes.remove(&volume)),
            Effect::Extended { volume, size } => volume_actions::finish_extend(self, &volume, size),
            Effect::Retyped { volume, kind } => volume_actions::finish_retype(self, &volume, &kind),
            Effect::SnapshotReady { snapshot } => {
                self.snapshots.set(&snapshot, "status", "available".into());
                self.snapshots.set(&snapshot, "updated_at", (clock::now() + ".000000").into());
                self.snapshots.set(&snapshot, "os-extended-snapshot-attributes:progress", "100%".into());
            }
            Effect::MemberReady { member } => self.load_balancing.set(&member, "provisioning_status", "ACTIVE".into()),
            Effect::MemberDeleted { member } => drop(self.load_balancing.remove(&member)),
            Effect::SnapshotDeleted { snapshot } => drop(self.snapshots.remove(&snapshot)),
        }
    }
}

impl Session {
    /// Returns true if the session can access resources of this project.
    pub(super) fn sees(&self, project: &str) -> bool {
        self.admin || self.project == project
    }
}
