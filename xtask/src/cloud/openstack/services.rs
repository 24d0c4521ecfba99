//! OpenStack's own services: how each is started, and whether all are well.

use super::Lab;
use super::settings::{Ports, Settings};
use crate::cloud::processes::{Started, answers};
use anyhow::{Result, anyhow, bail};
use serde_json::json;
use std::thread;
use std::time::Duration;

/// A program of the environment, its files of settings, and the ports on which it answers HTTP.
struct Service {
    name: &'static str,
    files: &'static [&'static str],
    ports: &'static [&'static str],
}

const fn service(name: &'static str, files: &'static [&'static str], ports: &'static [&'static str]) -> Service {
    Service { name, files, ports }
}

/// In the order in which they are started.
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
    // Last: it asks Placement at once, and would ask again only after a minute.
    service("nova-compute", &["nova.conf"], &[]),
];

const NOVA: &[&str] = &["nova.conf", "nova-database.conf"];

/// Keystone first: it needs no bus, and the others ask it.
pub(super) fn start_keystone(lab: &Lab, settings: &Settings) -> Result<()> {
    let [keystone, ..] = &SERVICES;
    bootstrap(lab, settings)?;
    wait(&mut begin(lab, settings, keystone)?, keystone, settings)?;
    catalog(lab, settings)
}

pub(super) fn start_others(lab: &Lab, settings: &Settings) -> Result<()> {
    let [_, placement, others @ .., compute] = &SERVICES;
    let mut first = begin(lab, settings, placement)?;
    let started: Result<Vec<Started>> = others.iter().map(|service| begin(lab, settings, service)).collect();
    wait(&mut first, placement, settings)?;
    begin(lab, settings, compute)?;
    for (started, service) in started?.iter_mut().zip(others) {
        wait(started, service, settings)?;
    }
    Ok(())
}

fn begin(lab: &Lab, settings: &Settings, service: &Service) -> Result<Started> {
    let bin = lab.venv.join("bin");
    let etc = lab.state.join("etc");
    // Two have no server of their own, and take their settings from the environment.
    let served = |module: &str, threads: &str| {
        let mut command = lab.processes.command(bin.join("python"));
        command.arg(lab.data.join("serve.py")).arg(module);
        let port = settings.ports.of(service.ports.first().copied().unwrap_or_default());
        command.arg(port.to_string()).arg(threads);
        command
    };
    let mut command = match service.name {
        "keystone" => {
            let mut command = served("keystone.wsgi.api", "8");
            command.env("OS_KEYSTONE_CONFIG_FILES", etc.join("keystone.conf"));
            command
        }
        "placement" => {
            let mut command = served("placement.wsgi.api", "4");
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

fn wait(started: &mut Started, service: &Service, settings: &Settings) -> Result<()> {
    started.wait(service.name, 120, || service.ports.iter().all(|port| answers(settings.ports.of(port))))
}

fn bootstrap(lab: &Lab, settings: &Settings) -> Result<()> {
    let manage = |words: &[&str]| {
        let mut manage = lab.processes.command(lab.venv.join("bin/keystone-manage"));
        manage.arg("--config-file").arg(lab.state.join("etc/keystone.conf")).args(words);
        lab.processes.run("keystone-manage", manage.env("OS_BOOTSTRAP_PASSWORD", &settings.secret))
    };
    let owner = ["--keystone-user", "root", "--keystone-group", "root"];
    manage(&[&["fernet_setup"], &owner[..]].concat())?;
    manage(&[&["credential_setup"], &owner[..]].concat())?;
    let url = settings.identity.as_str();
    let urls = ["--bootstrap-admin-url", url, "--bootstrap-internal-url", url, "--bootstrap-public-url", url];
    manage(&[&["bootstrap", "--bootstrap-region-id", "RegionOne"], &urls[..]].concat())
}

fn catalog(lab: &Lab, settings: &Settings) -> Result<()> {
    let url = |port: &str, path: &str| format!("http://127.0.0.1:{}{path}", settings.ports.of(port));
    let given = json!({
        "identity": settings.identity,
        "secret": settings.secret,
        "services": [
            ["glance", "image", url("image", "")],
            ["placement", "placement", url("placement", "")],
            ["nova", "compute", url("compute", "/v2.1")],
            ["neutron", "network", url("network", "")],
            // Today's name, and the one that older clients look for.
            ["cinder", "block-storage", url("volume", "/v3/%(project_id)s")],
            ["cinder", "volumev3", url("volume", "/v3/%(project_id)s")],
        ],
    });
    script(lab, "catalog", &given.to_string()).map(drop)
}

/// Makes what an operator has before the first deployment; returns the text of `cloud.json`.
pub(super) fn resources(lab: &Lab, settings: &Settings) -> Result<String> {
    let given = json!({
        "identity": settings.identity,
        "secret": settings.secret,
        "api_key": settings.api_key,
        "metadata_url": format!("http://127.0.0.1:{}", settings.ports.of("metadata")),
        "metadata_secret": settings.metadata_secret,
    });
    // It waits for services that do not answer by themselves: there is no point in that once one has died.
    thread::scope(|scope| {
        let made = scope.spawn(|| script(lab, "resources", &given.to_string()));
        while !made.is_finished() {
            if let Some(name) = dead(lab) {
                lab.processes.stop()?;
                bail!("{name} ended; {}", lab.processes.end_of_log(name));
            }
            thread::sleep(Duration::from_millis(200));
        }
        made.join().map_err(|_| anyhow!("a thread panicked"))?
    })
}

fn script(lab: &Lab, name: &str, given: &str) -> Result<String> {
    let mut python = lab.processes.command(lab.venv.join("bin/python"));
    // Without bytecode beside the sources.
    python.arg("-B").arg(lab.data.join(format!("{name}.py")));
    lab.processes.ask(name, &mut python, given)
}

/// Whether a cloud that is up is well.
pub(super) fn check(lab: &Lab, ports: Ports) -> Result<()> {
    if let Some(name) = dead(lab) {
        bail!("{name} does not run any more");
    }
    match SERVICES.iter().find(|service| !service.ports.iter().all(|port| answers(ports.of(port)))) {
        Some(service) => bail!("{} does not answer", service.name),
        None => Ok(()),
    }
}

/// One that was started and does not run, if there is one.
fn dead(lab: &Lab) -> Option<&'static str> {
    let mut names = ["database", "names", "bus"].into_iter().chain(SERVICES.iter().map(|service| service.name));
    names.find(|name| !lab.processes.is_running(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_service_has_its_settings_and_known_ports() {
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
