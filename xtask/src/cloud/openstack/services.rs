//! The services of OpenStack: starts them, configures them, and checks their health.

use super::Lab;
use super::settings::{Ports, Settings};
use crate::cloud::processes::{BackgroundProcess, answers_http};
use anyhow::{Result, anyhow, bail};
use serde_json::json;
use std::thread;
use std::time::Duration;

/// A program of the Python environment, its config files, and the ports on which it answers HTTP.
struct Service {
    name: &'static str,
    files: &'static [&'static str],
    ports: &'static [&'static str],
}

const fn service(name: &'static str, files: &'static [&'static str], ports: &'static [&'static str]) -> Service {
    Service { name, files, ports }
}

/// The services, in the order in which they are started.
const SERVICES: [Service; 11] = [
    service("keystone", &["keystone.conf"], &["identity"]),
    service("placement", &["placement.conf"], &["placement"]),
    service("neutron-server", &["neutron.conf"], &["network"]),
    service("nova-conductor", NOVA, &[]),
    service("glance-api", &["glance.conf"], &["image"]),
    service("cinder-api", &["cinder.conf"], &["volume"]),
    service("cinder-scheduler", &["cinder.conf"], &[]),
    service("cinder-volume", &["cinder.conf"], &[]),
    service("nova-scheduler", NOVA, &[]),
    service("nova-api", NOVA, &["compute", "metadata"]),
    // Last: it sends a request to Placement at once, and repeats it only after a minute.
    service("nova-compute", &["nova.conf"], &[]),
];

const NOVA: &[&str] = &["nova.conf", "nova-database.conf"];

/// Starts Keystone, which needs no bus, and which all other services use.
pub(super) fn start_keystone(lab: &Lab, settings: &Settings) -> Result<()> {
    let [keystone, ..] = &SERVICES;
    bootstrap(lab, settings)?;
    wait(&mut start(lab, settings, keystone)?, keystone, settings)?;
    create_catalog(lab, settings)
}

/// Starts all services but Keystone, and waits until they answer.
pub(super) fn start_others(lab: &Lab, settings: &Settings) -> Result<()> {
    let [_, placement, others @ .., compute] = &SERVICES;
    let mut first = start(lab, settings, placement)?;
    let started: Result<Vec<BackgroundProcess>> = others.iter().map(|service| start(lab, settings, service)).collect();
    wait(&mut first, placement, settings)?;
    start(lab, settings, compute)?;
    for (started, service) in started?.iter_mut().zip(others) {
        wait(started, service, settings)?;
    }
    Ok(())
}

fn start(lab: &Lab, settings: &Settings, service: &Service) -> Result<BackgroundProcess> {
    let bin = lab.venv.join("bin");
    let etc = lab.state.join("etc");
    // Keystone and Placement have no server of their own, and read their settings from the environment.
    let wsgi_server = |module: &str, threads: &str| {
        let mut command = lab.processes.command(bin.join("python"));
        command.arg(lab.data.join("serve.py")).arg(module);
        let port = settings.ports.of(service.ports.first().copied().unwrap_or_default());
        command.arg(port.to_string()).arg(threads);
        command
    };
    let mut command = match service.name {
        "keystone" => {
            let mut command = wsgi_server("keystone.wsgi.api", "8");
            command.env("OS_KEYSTONE_CONFIG_FILES", etc.join("keystone.conf"));
            command
        }
        "placement" => {
            let mut command = wsgi_server("placement.wsgi.api", "4");
            command.env("OS_PLACEMENT_CONFIG_DIR", &etc);
            command
        }
        program => {
            let mut command = lab.processes.command(bin.join(program));
            for file in service.files {
                command.arg("--config-file").arg(etc.join(file));
            }
            command
        }
    };
    lab.processes.start(service.name, command.env("PYTHONPATH", lab.data.join("plugins")))
}

fn wait(started: &mut BackgroundProcess, service: &Service, settings: &Settings) -> Result<()> {
    started.wait(service.name, 120, || service.ports.iter().all(|port| answers_http(settings.ports.of(port))))
}

/// Creates Keystone's keys, administrator and first endpoint.
fn bootstrap(lab: &Lab, settings: &Settings) -> Result<()> {
    let manage = |arguments: &[&str]| {
        let mut manage = lab.processes.command(lab.venv.join("bin/keystone-manage"));
        manage.arg("--config-file").arg(lab.state.join("etc/keystone.conf")).args(arguments);
        lab.processes.run("keystone-manage", manage.env("OS_BOOTSTRAP_PASSWORD", &settings.secret))
    };
    let owner = ["--keystone-user", "root", "--keystone-group", "root"];
    manage(&[&["fernet_setup"], &owner[..]].concat())?;
    manage(&[&["credential_setup"], &owner[..]].concat())?;
    let url = settings.identity.as_str();
    let urls = ["--bootstrap-admin-url", url, "--bootstrap-internal-url", url, "--bootstrap-public-url", url];
    manage(&[&["bootstrap", "--bootstrap-region-id", "RegionOne"], &urls[..]].concat())
}

/// Creates the users and the endpoints of the services in Keystone.
fn create_catalog(lab: &Lab, settings: &Settings) -> Result<()> {
    let url = |port: &str, path: &str| format!("http://127.0.0.1:{}{path}", settings.ports.of(port));
    let input = json!({
        "identity": settings.identity,
        "secret": settings.secret,
        "services": [
            ["glance", "image", url("image", "")],
            ["placement", "placement", url("placement", "")],
            ["nova", "compute", url("compute", "/v2.1")],
            ["neutron", "network", url("network", "")],
            // The current name, and the one that older clients look for.
            ["cinder", "block-storage", url("volume", "/v3/%(project_id)s")],
            ["cinder", "volumev3", url("volume", "/v3/%(project_id)s")],
        ],
    });
    run_script(lab, "catalog", &input.to_string()).map(drop)
}

/// Creates the resources that an operator creates before the first deployment; returns the text of `cloud.json`.
pub(super) fn create_resources(lab: &Lab, settings: &Settings) -> Result<String> {
    let input = json!({
        "identity": settings.identity,
        "secret": settings.secret,
        "api_key": settings.api_key,
        "metadata_url": format!("http://127.0.0.1:{}", settings.ports.of("metadata")),
        "metadata_secret": settings.metadata_secret,
    });
    // The script also waits for services without a port. If a process has ended, it would wait in vain.
    thread::scope(|scope| {
        let script = scope.spawn(|| run_script(lab, "resources", &input.to_string()));
        while !script.is_finished() {
            if let Some(name) = stopped_process(lab) {
                lab.processes.stop()?;
                bail!("{name} ended unexpectedly; {}", lab.processes.end_of_log(name));
            }
            thread::sleep(Duration::from_millis(200));
        }
        script.join().map_err(|_| anyhow!("a thread panicked"))?
    })
}

fn run_script(lab: &Lab, name: &str, input: &str) -> Result<String> {
    let mut python = lab.processes.command(lab.venv.join("bin/python"));
    // -B: no bytecode is written into the repository.
    python.arg("-B").arg(lab.data.join(format!("{name}.py")));
    lab.processes.run_with_input(name, &mut python, input)
}

/// Returns an error if a process of the cloud has ended or does not answer.
pub(super) fn check(lab: &Lab, ports: Ports) -> Result<()> {
    let logs = lab.home.join("log");
    if let Some(name) = stopped_process(lab) {
        bail!("{name} is not running; its log is in {}", logs.display());
    }
    match SERVICES.iter().find(|service| !service.ports.iter().all(|port| answers_http(ports.of(port)))) {
        Some(service) => bail!("{} does not answer; its log is in {}", service.name, logs.display()),
        None => Ok(()),
    }
}

/// Returns the first process that was started and does not run.
fn stopped_process(lab: &Lab) -> Option<&'static str> {
    let mut names = ["database", "names", "bus"].into_iter().chain(SERVICES.iter().map(|service| service.name));
    names.find(|name| !lab.processes.is_running(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_service_has_config_files_and_known_ports() {
        let etc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/openstack/etc");
        let ports = Settings::new(Ports::default()).unwrap().ports;
        for service in &SERVICES {
            for file in service.files {
                assert!(etc.join(file).exists(), "{}: {file}", service.name);
            }
            for port in service.ports {
                assert_ne!(ports.of(port), 0, "{}: {port}", service.name);
            }
        }
    }
}
