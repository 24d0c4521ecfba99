//! All that a simulated cloud holds, and how it changes by itself.
//!
//! Nothing here waits: what takes time in a real cloud takes a number of reads
//! of a thing that it is about. So a client that polls sees every state, a
//! test takes no longer than it must, and what nobody looks at stays as it is.

use super::table::Table;
use super::{blockdevices, building, clock, servers, volume_actions};
use std::collections::HashMap;
use std::time::{Duration, SystemTime};

pub(super) struct State {
    /// Reads that see a change under way before one sees it done.
    pub(super) reads: usize,
    pub(super) token_lifetime: Duration,
    /// Deleted servers are kept, in case of second thoughts.
    pub(super) keeps_servers: bool,
    pub(super) users: Vec<User>,
    pub(super) projects: Vec<Project>,
    pub(super) credentials: Vec<Credential>,
    pub(super) tokens: HashMap<String, Session>,
    pub(super) images: Table,
    pub(super) flavors: Table,
    pub(super) servers: Table,
    pub(super) keypairs: Table,
    pub(super) groups: Table,
    pub(super) networks: Table,
    pub(super) subnets: Table,
    pub(super) pools: Table,
    pub(super) ports: Table,
    pub(super) floating: Table,
    pub(super) security: Table,
    pub(super) volumes: Table,
    pub(super) snapshots: Table,
    pub(super) types: Table,
    /// Load balancers, pools and members.
    pub(super) balancing: Table,
    /// By project and name of the resource; -1 is no limit.
    pub(super) quotas: HashMap<(String, &'static str), i64>,
    pending: Vec<Pending>,
    ids: u64,
    seed: String,
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

/// Who a token stands for.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) user: String,
    pub(super) project: String,
    pub(super) admin: bool,
    pub(super) expires: SystemTime,
}

struct Pending {
    /// A read of any of these counts.
    subjects: Vec<String>,
    left: usize,
    effect: Effect,
}

/// What happens by itself in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Built {
        server: String,
    },
    /// A reboot, start or stop is through.
    Turned {
        server: String,
        status: &'static str,
    },
    ServerGone {
        server: String,
    },
    /// Nothing tells of it any more.
    ServerForgotten {
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
    VolumeGone {
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
    MemberGone {
        member: String,
    },
    SnapshotGone {
        snapshot: String,
    },
}

/// Name, and limit of a project that nobody set one for.
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
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        State {
            reads: 1,
            token_lifetime: Duration::from_secs(86_400),
            keeps_servers: false,
            users: Vec::new(),
            projects: Vec::new(),
            credentials: Vec::new(),
            tokens: HashMap::new(),
            images: Table::default(),
            flavors: Table::default(),
            servers: Table::default(),
            keypairs: Table::default(),
            groups: Table::default(),
            networks: Table::default(),
            subnets: Table::default(),
            pools: Table::default(),
            ports: Table::default(),
            floating: Table::default(),
            security: Table::default(),
            volumes: Table::default(),
            snapshots: Table::default(),
            types: Table::default(),
            balancing: Table::default(),
            quotas: HashMap::new(),
            pending: Vec::new(),
            ids: 0,
            // Two clouds in one process share no ids.
            seed: format!("{}.{}", std::process::id(), since.as_nanos()),
        }
    }

    /// 32 hexadecimal digits that were nobody's before.
    pub(super) fn hex(&mut self) -> String {
        self.ids += 1;
        blake3::hash(format!("{}.{}", self.seed, self.ids).as_bytes()).to_hex()[..32].to_owned()
    }

    /// The same as a UUID of version 4.
    pub(super) fn uuid(&mut self) -> String {
        let hex = self.hex();
        format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }

    /// The limit; None where there is none.
    pub(super) fn quota(&self, project: &str, name: &'static str) -> Option<u64> {
        let known = self.quotas.get(&(project.to_owned(), name)).copied();
        let limit = known.or_else(|| QUOTAS.iter().find(|(known, _)| *known == name).map(|(_, limit)| *limit));
        limit.and_then(|limit| u64::try_from(limit).ok())
    }

    /// Lets something happen once these were read often enough.
    pub(super) fn later(&mut self, subjects: &[&str], effect: Effect) {
        let subjects = subjects.iter().map(|id| (*id).to_owned()).collect();
        self.pending.push(Pending { subjects, left: self.reads, effect });
    }

    /// Lets something happen at the next read.
    pub(super) fn next(&mut self, subject: &str, effect: Effect) {
        self.pending.push(Pending { subjects: vec![subject.to_owned()], left: 0, effect });
    }

    /// What was to happen to this no longer will.
    pub(super) fn forget(&mut self, id: &str) {
        self.pending.retain(|pending| !pending.subjects.iter().any(|subject| subject == id));
    }

    /// Somebody looks at these: what is due happens first.
    pub(super) fn read<'a>(&mut self, ids: impl IntoIterator<Item = &'a str>) {
        let ids: Vec<&str> = ids.into_iter().collect();
        let mut due = Vec::new();
        self.pending.retain_mut(|pending| {
            let meant = pending.subjects.iter().any(|subject| ids.contains(&subject.as_str()));
            if meant && pending.left == 0 {
                due.push(pending.effect.clone());
                return false;
            }
            pending.left -= usize::from(meant);
            true
        });
        for effect in due {
            self.apply(effect);
        }
    }

    fn apply(&mut self, effect: Effect) {
        match effect {
            Effect::Built { server } => building::finish(self, &server),
            Effect::Turned { server, status } => servers::turn(self, &server, status),
            Effect::ServerGone { server } => building::tear_down(self, &server),
            Effect::ServerForgotten { server } => drop(self.servers.remove(&server)),
            Effect::Attached { server, volume } => blockdevices::attached(self, &server, &volume),
            Effect::Detached { server, volume } => blockdevices::detached(self, &server, &volume),
            Effect::VolumeReady { volume } => volume_actions::settle(self, &volume),
            Effect::VolumeGone { volume } => drop(self.volumes.remove(&volume)),
            Effect::Extended { volume, size } => volume_actions::extended(self, &volume, size),
            Effect::Retyped { volume, kind } => volume_actions::retyped(self, &volume, &kind),
            Effect::SnapshotReady { snapshot } => {
                self.snapshots.set(&snapshot, "status", "available".into());
                self.snapshots.set(&snapshot, "updated_at", (clock::now() + ".000000").into());
                self.snapshots.set(&snapshot, "os-extended-snapshot-attributes:progress", "100%".into());
            }
            Effect::MemberReady { member } => self.balancing.set(&member, "provisioning_status", "ACTIVE".into()),
            Effect::MemberGone { member } => drop(self.balancing.remove(&member)),
            Effect::SnapshotGone { snapshot } => drop(self.snapshots.remove(&snapshot)),
        }
    }
}

impl Session {
    /// Whether a thing of that project is this one's business.
    pub(super) fn sees(&self, project: &str) -> bool {
        self.admin || self.project == project
    }
}
