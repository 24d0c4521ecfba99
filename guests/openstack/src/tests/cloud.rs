//! A cloud in memory: the parts of Nova, Glance, Neutron, Cinder and Octavia that the
//! CPI uses. The status of an object changes when it is read, as for a client that
//! polls. A fault replaces the answer to the nth request that matches it, before or
//! after the request is processed.

mod services;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};
use wasm_cpi_sdk::bindings::bosh::cpi::http;
use wasm_cpi_sdk::fake::Answer;

pub(super) const IMAGE: &str = "image-1";
pub(super) const NETWORK: &str = "net-1";
pub(super) const FLOATING_IP: &str = "172.24.4.9";

pub(super) type Shared = Rc<RefCell<Cloud>>;

/// Objects by kind (`servers`, `ports`, `volumes` and so on) and ID.
type Things = BTreeMap<String, BTreeMap<String, Value>>;

#[derive(Clone)]
pub(super) enum Fault {
    /// The request is not processed.
    Before(Answer),
    /// The request is processed.
    After(Answer),
}

pub(super) struct Cloud {
    things: Things,
    /// The method, the path without its query, how many requests to process before, and the fault.
    faults: Vec<(String, String, usize, Fault)>,
    /// If it is set, new servers and volumes fail, and servers have this fault.
    pub(super) broken: Option<String>,
    /// Nova does not delete the boot volumes of servers.
    pub(super) keeps_boot_volumes: bool,
    /// Deleted servers are soft-deleted until they are force-deleted.
    pub(super) soft_deletes: bool,
    /// Images have the status `saving` for a while after their upload.
    pub(super) slow_images: bool,
    /// The load balancer answers 409 to the next change.
    pub(super) busy: bool,
    /// Every page of a list is the first page.
    pub(super) same_page: bool,
    /// The groups that appear together with the first group that the call creates.
    pub(super) parallel_groups: Vec<(String, Value)>,
    /// The members of that group.
    pub(super) own_members: Vec<Value>,
    /// A group that appears after the first list of groups.
    pub(super) late_group: Option<(String, Value)>,
    /// The newest version of Nova's API.
    pub(super) newest: &'static str,
    /// How often an object has to be read before its status changes.
    pub(super) slow: u64,
    next: usize,
    /// Every request as `METHOD path`.
    pub(super) seen: Vec<String>,
}

/// Returns the part of the login's response that the guest sees.
pub(super) fn login_response() -> Value {
    let entry = |kind: &str, url: &str| {
        let endpoint = |interface: &str| json!({"interface": interface, "region": "R", "region_id": "R", "url": url});
        json!({"type": kind, "endpoints": [endpoint("public"), endpoint("internal")]})
    };
    json!({
        "project_id": "project-1",
        "catalog": [
            entry("compute", "https://nova.test/v2.1"), entry("image", "https://glance.test/v2/"),
            entry("load-balancer", "https://octavia.test/v2.0"), entry("network", "https://neutron.test"), entry("volumev3", "https://cinder.test/v3/project-1"),
        ],
    })
}

impl Cloud {
    pub(super) fn shared() -> Shared {
        let mut cloud = Self {
            things: Things::new(),
            faults: vec![],
            broken: None,
            keeps_boot_volumes: false,
            soft_deletes: false,
            busy: false,
            same_page: false,
            slow_images: false,
            parallel_groups: vec![],
            own_members: vec![],
            late_group: None,
            newest: "2.96",
            slow: 0,
            next: 0,
            seen: vec![],
        };
        cloud.put("images", IMAGE, json!({"status": "active"}));
        cloud.put("floatingips", "fip-1", json!({"floating_ip_address": FLOATING_IP, "port_id": null}));
        for (name, project) in [("bosh", "other"), ("bosh", "project-1"), ("web", "project-1"), ("db", "project-1")] {
            let id = format!("sg-{name}-{project}");
            cloud.put("security-groups", &id, json!({"name": name, "project_id": project}));
        }
        for (name, vcpus, ram, disk, ephemeral) in [
            ("m1.tiny", 1, 512, 1, 0),
            ("m1.small", 1, 2048, 10, 10),
            ("m1.medium", 2, 4096, 20, 20),
            ("bad", 1, 8192, 9, 9),
        ] {
            let flavor = json!({
                "name": name, "vcpus": vcpus, "ram": ram, "disk": disk, "OS-FLV-EXT-DATA:ephemeral": ephemeral,
                "swap": "", "OS-FLV-DISABLED:disabled": false,
            });
            cloud.put("flavors", &format!("flavor-{name}"), flavor);
        }
        Rc::new(RefCell::new(cloud))
    }

    pub(super) fn put(&mut self, kind: &str, id: &str, mut thing: Value) {
        thing["id"] = json!(id);
        self.things.entry(kind.to_owned()).or_default().insert(id.to_owned(), thing);
    }

    pub(super) fn get(&self, kind: &str, id: &str) -> Value {
        self.things.get(kind).and_then(|things| things.get(id)).cloned().unwrap_or(Value::Null)
    }

    pub(super) fn all(&self, kind: &str) -> Vec<Value> {
        self.things.get(kind).map(|things| things.values().cloned().collect()).unwrap_or_default()
    }

    /// Returns the only object of its kind.
    pub(super) fn only(&self, kind: &str) -> Value {
        let all = self.all(kind);
        assert_eq!(all.len(), 1, "{kind}: {all:?}");
        all[0].clone()
    }

    pub(super) fn remove(&mut self, kind: &str, id: &str) -> Option<Value> {
        self.things.get_mut(kind)?.remove(id)
    }

    pub(super) fn fault(&mut self, method: &str, path: &str, after: usize, fault: Fault) {
        self.faults.push((method.to_owned(), path.to_owned(), after, fault));
    }

    /// Removes all faults.
    pub(super) fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// Returns all objects that a failed call must not leave.
    pub(super) fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = ["servers", "ports", "volumes", "snapshots", "networks", "subnets", "members"]
            .iter()
            .flat_map(|kind| self.all(kind).into_iter().map(move |thing| format!("{kind}: {thing}")))
            .collect();
        left.extend(
            self.all("images").iter().filter(|image| image["id"] != IMAGE).map(|image| format!("image {image}")),
        );
        left.extend(self.all("floatingips").iter().filter(|ip| !ip["port_id"].is_null()).map(|ip| format!("{ip}")));
        left
    }

    pub(super) fn count_requests(&self, line: &str) -> usize {
        self.seen.iter().filter(|seen| seen.contains(line)).count()
    }

    pub(super) fn answer(&mut self, request: &http::Request) -> Answer {
        let (path, query) = request.url.split_once('?').unwrap_or((&request.url, ""));
        let path = path.strip_prefix("https://").unwrap();
        let (host, path) = path.split_once('/').unwrap();
        let prefix = match host {
            "nova.test" => "v2.1/",
            "glance.test" => "v2/",
            "neutron.test" => "v2.0/",
            "cinder.test" => "v3/project-1/",
            "octavia.test" => "v2.0/lbaas/",
            other => panic!("a request to {other}"),
        };
        let path = path.strip_prefix(prefix).unwrap_or_else(|| panic!("{host} has no {path}"));
        self.seen.push(format!("{} {path}", request.method));
        let body = match &request.body {
            http::Body::Bytes(bytes) => serde_json::from_slice(bytes).unwrap(),
            http::Body::Image(part) => json!({"image": format!("{part:?}")}),
            http::Body::Parts(parts) => json!({"parts": parts.len()}),
            http::Body::None => Value::Null,
        };
        let fault = self.take_fault(&request.method, path);
        if let Some(Fault::Before(answer)) = fault {
            return answer;
        }
        let processed = self.process(&request.method, path, query, &body);
        match fault {
            Some(Fault::After(answer)) => answer,
            _ => processed,
        }
    }

    fn take_fault(&mut self, method: &str, path: &str) -> Option<Fault> {
        let fits = |fault: &(String, String, usize, Fault)| {
            let ids_apart = fault.1.split('*').collect::<Vec<_>>();
            fault.0 == method
                && (ids_apart.len() > 1 || path == fault.1)
                && path.starts_with(ids_apart[0])
                && path.ends_with(ids_apart[ids_apart.len() - 1])
                && path.matches('/').count() == fault.1.matches('/').count()
        };
        let at = self.faults.iter().position(fits)?;
        if self.faults[at].2 > 0 {
            self.faults[at].2 -= 1;
            return None;
        }
        Some(self.faults.remove(at).3)
    }
}
