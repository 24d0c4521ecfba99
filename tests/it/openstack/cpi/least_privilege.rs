//! Least privilege: the shipped presets grant exactly the requests that the guest sends,
//! and secrets are sent only in the requests that need them.

use super::lifecycle::run_lifecycle;
use super::{Cpi, Login, small_vm};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tests::openstack::{Fault, Gateway, RecordedRequest, Rule, Service, on_each_cloud};
use tests::response::CANARY;

use Service::{Compute, Identity, Image, Network, Volume};

/// Creates resources whose responses are lost, so that the guest has to find them by their names.
fn create_with_lost_responses(cpi: &Cpi<'_>) {
    let lost = |service, path: &str, run: &dyn Fn() -> Value| {
        let hits = cpi.gateway.inject(Rule::on(service, "POST", path), Fault::ResetAfter);
        let result = run();
        assert_eq!(hits.count(), 1, "{path}");
        result
    };
    let stemcell = lost(Image, "/images", &|| json!(cpi.stemcell()));
    let vm =
        lost(Compute, "/servers", &|| cpi.ok("create_vm", small_vm(cpi, stemcell.as_str().unwrap_or(""), "10.0.0.41")));
    cpi.ok("set_vm_metadata", json!([vm[0], {"name": "web/0"}]));
    let disk = lost(Volume, "/volumes", &|| cpi.ok("create_disk", json!([1024, {}, vm[0]])));
    let snapshot = lost(Volume, "/snapshots", &|| cpi.ok("snapshot_disk", json!([disk, {}])));
    let spec = json!([{"type": "manual", "range": "10.9.0.0/24", "cloud_properties": {}}]);
    let network = lost(Network, "/networks", &|| cpi.ok("create_network", spec.clone()));
    cpi.ok("delete_network", json!([network[0]]));
    let network = lost(Network, "/subnets", &|| cpi.ok("create_network", spec.clone()));
    for (method, cid) in [
        ("delete_network", &network[0]),
        ("delete_snapshot", &snapshot),
        ("delete_disk", &disk),
        ("delete_vm", &vm[0]),
        ("delete_stemcell", &stemcell),
    ] {
        cpi.ok(method, json!([cid]));
    }
}

/// Creates two VMs of one instance group in parallel, so that one call deletes its server group.
fn create_in_parallel(cpi: &Cpi<'_>) {
    let delayed = Rule::on(Compute, "POST", "/os-server-groups").times(2);
    let hits = cpi.gateway.inject(delayed, Fault::Delay(Duration::from_secs(2)));
    let stemcell = cpi.stemcell();
    let addresses = ["10.0.0.42".to_owned(), "10.0.0.43".to_owned()];
    for vm in cpi.create_vms_in_parallel(&stemcell, "parallel", &addresses) {
        cpi.ok("delete_vm", json!([vm]));
    }
    assert_eq!(hits.count(), 2);
    cpi.ok("delete_stemcell", json!([stemcell]));
}

#[test]
fn the_presets_grant_exactly_the_requests_that_the_guest_sends() {
    on_each_cloud(|name, gateway| {
        // The presets differ only in their logins, and real services are slow.
        let logins = if name == "simulator" { &Login::ALL[..] } else { &[Login::ProjectId] };
        for login in logins {
            check_grants(gateway, *login);
        }
    });
}

fn check_grants(gateway: &Gateway, login: Login) {
    let cpi = Cpi::with_login(gateway, login)
        .version(3)
        .set("human_readable_vm_names", json!(true))
        .set("enable_auto_anti_affinity", json!(true));
    let before = cpi.api.contents();
    gateway.clear_records();
    let mut seen: Vec<RecordedRequest> = Vec::new();
    // Only these requests are checked. The presets do not restrict what the test client does later.
    for part in [run_lifecycle, create_with_lost_responses, create_in_parallel] {
        part(&cpi);
        seen.extend(gateway.records());
        gateway.clear_records();
    }
    cpi.delete_new_server_groups(&before);
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{login:?}");
    let guest = seen.iter().filter(|record| is_from_guest(record));
    let asked: BTreeSet<(Service, String, String)> = guest
        .clone()
        .map(|record| (record.service, record.method.clone(), record.target.clone()))
        .map(|(service, method, target)| (service, method, relative_path(service, &target)))
        .collect();
    let granted = granted(login);
    let fits = |(service, method, path): &(Service, String, String), grant: &(Service, String, String)| {
        *service == grant.0 && *method == grant.1 && path_fits(&grant.2, path)
    };
    for request in asked.iter().filter(|(service, ..)| *service != Identity) {
        assert!(granted.iter().any(|grant| fits(request, grant)), "{login:?} does not grant {request:?}");
    }
    for grant in &granted {
        assert!(asked.iter().any(|request| fits(request, grant)), "{login:?}: {grant:?} is not used");
    }
    let logins: BTreeSet<_> = asked.iter().filter(|(service, ..)| *service == Identity).collect();
    assert_eq!(logins, BTreeSet::from([&(Identity, "POST".to_owned(), "/auth/tokens".to_owned())]));
    check_secrets(guest);
}

/// Returns true for requests of the guest. The client of the tests does not send this header.
fn is_from_guest(record: &RecordedRequest) -> bool {
    record.header("accept-encoding").is_some()
}

/// Returns the path relative to the URL of the service, without the query.
fn relative_path(service: Service, target: &str) -> String {
    let path = target.split('?').next().unwrap_or_default();
    match service {
        Image | Network => path.to_owned(),
        _ => service.relative(path),
    }
}

/// Returns service, method and path of everything that a preset grants.
fn granted(login: Login) -> Vec<(Service, String, String)> {
    let text = std::fs::read(login.preset()).unwrap_or_default();
    let preset: Value = serde_json::from_slice(&text).unwrap_or_default();
    let mut all = Vec::new();
    for grant in preset["http"].as_array().into_iter().flatten() {
        let service = match grant["to"].as_str() {
            Some("${endpoints.compute}") => Compute,
            Some("${endpoints.image}") => Image,
            Some("${endpoints.network}") => Network,
            Some("${endpoints.volume}") => Volume,
            other => panic!("a grant to {other:?}"),
        };
        for method in grant["methods"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let paths = grant["paths"].as_array().into_iter().flatten().filter_map(Value::as_str);
            all.extend(paths.map(|path| (service, method.to_owned(), path.to_owned())));
        }
    }
    assert!(all.len() > 30, "{login:?}: {all:?}");
    all
}

fn path_fits(pattern: &str, path: &str) -> bool {
    let (wanted, parts): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    wanted.len() == parts.len() && wanted.iter().zip(&parts).all(|(wanted, part)| wanted == part || *wanted == "*")
}

/// Checks that only new servers get settings of the Agent, and that every request except the
/// login has a token.
fn check_secrets<'r>(requests: impl Iterator<Item = &'r RecordedRequest>) {
    let mut servers = 0;
    for request in requests {
        let mut body = request.json();
        assert!(!String::from_utf8_lossy(&request.body).contains(CANARY), "{}", request.line());
        let data = body["server"].as_object_mut().and_then(|server| server.remove("user_data"));
        match (request.method.as_str(), request.path.as_str()) {
            ("POST", "/servers") => {
                servers += 1;
                assert!(data.is_some(), "a server without user data");
            }
            _ => assert_eq!(data, None, "{}", request.line()),
        }
        let is_login = request.service == Identity;
        assert_eq!(request.header("x-auth-token").is_none(), is_login, "{}", request.line());
    }
    assert!(servers > 2, "{servers}");
}

#[test]
fn the_error_for_a_missing_or_wrong_endpoint_says_which_property_to_set() {
    on_each_cloud(|_, gateway| {
        let cloud = gateway.cloud();
        let calls = [
            ("compute", "has_vm", json!(["vm"])),
            ("image", "delete_stemcell", json!(["image"])),
            ("network", "delete_network", json!(["network"])),
            ("volume", "has_disk", json!(["disk"])),
        ];
        for (name, method, arguments) in calls {
            let right = cloud["endpoints"][name].as_str().unwrap_or_default();
            let line = format!("set the property `endpoints.{name}` to `{right}`");
            for wrong in [Value::Null, json!("http://127.0.0.1:1"), json!(format!("{right}/deeper"))] {
                let mut endpoints = cloud["endpoints"].clone();
                if wrong.is_null() {
                    endpoints.as_object_mut().map(|endpoints| endpoints.remove(name));
                } else {
                    endpoints[name] = wrong.clone();
                }
                let cpi = Cpi::new(gateway).set("endpoints", endpoints);
                let response = cpi.run(method, arguments.clone());
                // The host reports a missing property before the guest reads the catalog.
                let line =
                    if wrong.is_null() { format!("takes the property `endpoints.{name}`") } else { line.clone() };
                assert!(response.message().contains(&line), "{name} {wrong}: {}", response.message());
            }
        }
    });
}
