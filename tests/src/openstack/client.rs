//! An API client for a simulated or real cloud, as its tenant or its admin. Tests use
//! it to check that nothing is left behind, and to set quotas.

use super::message::{Request, Response};
use super::service::Service;
use crate::gateway;
use ring::hmac;
use serde_json::{Value, json};
use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The timeout of one response, and of deletions in progress.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A client with a session.
pub struct Api {
    cloud: Value,
    login: Value,
    session: Mutex<(String, String)>,
}

/// The resources of a tenant, sorted, one line each: kind, id, and details.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents(pub Vec<String>);

impl Contents {
    /// Returns the lines that `before` does not contain.
    pub fn added_since(&self, before: &Contents) -> Vec<String> {
        self.0.iter().filter(|line| !before.0.contains(line)).cloned().collect()
    }

    /// Returns the number of resources of a kind (`server`, `port`, …).
    pub fn count(&self, kind: &str) -> usize {
        self.0.iter().filter(|line| line.split(' ').next() == Some(kind)).count()
    }
}

impl Api {
    /// Logs in as the tenant of a `cloud.json` or `Gateway::cloud`.
    #[track_caller]
    pub fn tenant(cloud: &Value) -> Api {
        Api::new(cloud, cloud)
    }

    /// Logs in as the admin of the cloud.
    #[track_caller]
    pub fn admin(cloud: &Value) -> Api {
        Api::new(cloud, &cloud["admin"])
    }

    #[track_caller]
    fn new(cloud: &Value, user: &Value) -> Api {
        let domain = json!({"name": "Default"});
        let login = json!({"auth": {
            "identity": {"methods": ["password"], "password": {
                "user": {"name": user["username"], "domain": domain, "password": user["api_key"]},
            }},
            "scope": {"project": {"name": user["project"], "domain": domain}},
        }});
        let api = Api { cloud: cloud.clone(), login, session: Mutex::default() };
        api.log_in();
        api
    }

    #[track_caller]
    fn log_in(&self) {
        let answer = self.exchange(Service::Identity, "POST", "/auth/tokens", &[], Some(&self.login));
        let answer = answer.unwrap_or_else(|error| panic!("the login failed: {error}"));
        let text = String::from_utf8_lossy(&answer.body);
        let token = answer
            .header("x-subject-token")
            .unwrap_or_else(|| panic!("the login returned no token: {} {text}", answer.status));
        let project = answer.value()["token"]["project"]["id"].as_str().unwrap_or_default().to_owned();
        *self.session() = (token.to_owned(), project);
    }

    /// Returns the token and the project of the last login.
    fn session(&self) -> MutexGuard<'_, (String, String)> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of the session's project.
    pub fn project(&self) -> String {
        self.session().1.clone()
    }

    /// Sends a request; the path is relative to the service's prefix (`/servers`).
    #[track_caller]
    pub fn request(&self, service: Service, method: &str, path: &str, body: Option<&Value>) -> Response {
        self.request_with(service, method, path, &[], body)
    }

    /// Sends a request with headers that add to the default ones or replace them, for
    /// example a microversion.
    #[track_caller]
    pub fn request_with(
        &self,
        service: Service,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Response {
        let send = || self.exchange(service, method, path, headers, body);
        let mut answer = send().unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        if answer.status == 401 {
            self.log_in();
            answer = send().unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        }
        answer
    }

    /// Returns the items of a list.
    #[track_caller]
    pub fn list(&self, service: Service, path: &str, key: &str) -> Vec<Value> {
        let answer = self.request(service, "GET", path, None);
        let list = answer.value()[key].as_array().cloned();
        list.unwrap_or_else(|| panic!("{path}: {} {}", answer.status, String::from_utf8_lossy(&answer.body)))
    }

    pub fn servers(&self) -> Vec<Value> {
        self.list(Service::Compute, "/servers/detail", "servers")
    }

    pub fn server_groups(&self) -> Vec<Value> {
        self.list(Service::Compute, "/os-server-groups", "server_groups")
    }

    pub fn ports(&self) -> Vec<Value> {
        self.list(Service::Network, &format!("/ports?project_id={}", self.project()), "ports")
    }

    pub fn networks(&self) -> Vec<Value> {
        self.list(Service::Network, &format!("/networks?project_id={}", self.project()), "networks")
    }

    pub fn floating_ips(&self) -> Vec<Value> {
        self.list(Service::Network, &format!("/floatingips?project_id={}", self.project()), "floatingips")
    }

    pub fn volumes(&self) -> Vec<Value> {
        self.list(Service::Volume, "/volumes/detail", "volumes")
    }

    pub fn snapshots(&self) -> Vec<Value> {
        self.list(Service::Volume, "/snapshots/detail", "snapshots")
    }

    /// Returns the project's own images, without public images of other projects.
    pub fn images(&self) -> Vec<Value> {
        self.list(Service::Image, &format!("/images?owner={}", self.project()), "images")
    }

    /// Waits until no deletion is in progress and returns all resources.
    #[track_caller]
    pub fn contents(&self) -> Contents {
        let until = Instant::now() + TIMEOUT;
        loop {
            let (servers, volumes, snapshots) = (self.servers(), self.volumes(), self.snapshots());
            let deleting = servers
                .iter()
                .any(|server| server["OS-EXT-STS:task_state"] == "deleting" || server["status"] == "DELETED")
                || volumes.iter().chain(&snapshots).any(|thing| thing["status"] == "deleting");
            if !deleting {
                return self.describe(&[("server", servers), ("volume", volumes), ("snapshot", snapshots)]);
            }
            assert!(Instant::now() < until, "deletions did not end: {servers:?} {volumes:?} {snapshots:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Returns the members of all load balancer pools; none if the cloud has no load
    /// balancer service.
    pub fn members(&self) -> Vec<Value> {
        if Service::LoadBalancer.url(&self.cloud).is_none() {
            return Vec::new();
        }
        let pools = self.list(Service::LoadBalancer, "/lbaas/pools", "pools");
        let ids = pools.iter().filter_map(|pool| pool["id"].as_str());
        let path = |id: &str| format!("/lbaas/pools/{id}/members");
        ids.flat_map(|id| self.list(Service::LoadBalancer, &path(id), "members")).collect()
    }

    fn describe(&self, known: &[(&str, Vec<Value>)]) -> Contents {
        let more = [
            ("port", self.ports()),
            ("network", self.networks()),
            ("floating", self.floating_ips()),
            ("group", self.server_groups()),
            ("image", self.images()),
            ("member", self.members()),
        ];
        let mut lines = Vec::new();
        for (kind, things) in known.iter().chain(&more) {
            for thing in things {
                let details = ["name", "status", "device_owner", "device_id", "port_id"].map(|key| match *kind {
                    // A released address may be in any state.
                    "floating" if key == "status" => "",
                    _ => thing[key].as_str().unwrap_or_default(),
                });
                lines.push(
                    format!("{kind} {} {}", thing["id"].as_str().unwrap_or_default(), details.join(" "))
                        .trim_end()
                        .to_owned(),
                );
            }
        }
        lines.sort();
        Contents(lines)
    }

    /// Returns the resources that `before` does not contain.
    #[track_caller]
    pub fn left_behind(&self, before: &Contents) -> Vec<String> {
        self.contents().added_since(before)
    }

    /// Sets a quota of a project, as admin; -1 means no limit. The names are those of the
    /// services (`instances`, `cores`, `ram`; `volumes`, `gigabytes`, `snapshots`; `port`,
    /// `floatingip`).
    #[track_caller]
    pub fn set_quota(&self, service: Service, project: &str, name: &str, limit: i64) {
        let (path, key) = match service {
            Service::Network => (format!("/quotas/{project}"), "quota"),
            _ => (format!("/os-quota-sets/{project}"), "quota_set"),
        };
        let answer = self.request(service, "PUT", &path, Some(&json!({key: {name: limit}})));
        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    }

    /// Returns the user data that the metadata service returns to a server's agent.
    #[track_caller]
    pub fn user_data(&self, server: &str) -> Option<Vec<u8>> {
        let secret = self.cloud["metadata_proxy_shared_secret"].as_str().unwrap_or_default();
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let signed: String =
            hmac::sign(&key, server.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let project = self.project();
        let headers = [
            ("X-Instance-ID", server),
            ("X-Tenant-ID", &project),
            ("X-Instance-ID-Signature", &signed),
            ("X-Forwarded-For", "10.0.0.1"),
        ];
        let answer = self.request_with(Service::Metadata, "GET", "/openstack/latest/user_data", &headers, None);
        (answer.status == 200).then_some(answer.body)
    }

    fn exchange(
        &self,
        service: Service,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Response, Box<dyn Error>> {
        let url = service.url(&self.cloud).ok_or("the cloud does not have this service")?;
        let (scheme, rest) = url.split_once("://").ok_or("the service has no valid URL")?;
        let (host, base) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let prefix = match service {
            Service::Image => "/v2",
            Service::Network | Service::LoadBalancer => "/v2.0",
            _ => "",
        };
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut all = vec![
            ("X-Auth-Token".to_owned(), self.session().0.clone()),
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json".to_owned()),
            ("Content-Length".to_owned(), body.len().to_string()),
        ];
        let given = |name: &str| headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        all.retain(|(name, value)| !value.is_empty() && !given(name));
        all.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let mut base = base.trim_end_matches('/').to_owned();
        // Cinder's paths contain a project, which must be that of the session.
        if let Some((before, _)) =
            base.rsplit_once('/').filter(|_| service == Service::Volume && !self.project().is_empty())
        {
            base = format!("{before}/{}", self.project());
        }
        let target = format!("{base}{prefix}{path}");
        let request = Request::new(method, &target, all);
        let origin = format!("{scheme}://{host}");
        gateway::send(&origin, self.cloud["ca"].as_str(), &request, body.as_bytes(), TIMEOUT)
    }
}
