//! The message bus between the services: RabbitMQ, unpacked from Debian's package.

use super::Lab;
use super::settings::Settings;
use crate::cloud::processes::{BackgroundProcess, listens};
use crate::files;
use anyhow::Result;

/// Starts the bus without waiting for it, because it takes longer than the database.
pub(super) fn start(lab: &Lab, settings: &Settings) -> Result<BackgroundProcess> {
    let port = |name: &str| settings.ports.of(name).to_string();
    let home = lab.state.join("bus");
    files::directory(&home, 0o700)?;
    files::write(&home.join(".erlang.cookie"), &settings.secret, 0o400)?;
    files::write(&home.join("enabled_plugins"), "[].", 0o600)?;
    // Erlang's name server. RabbitMQ would start one that listens on all interfaces.
    let mut names = lab.processes.command("epmd");
    names.args(["-address", "127.0.0.1", "-port", &port("names")]);
    let mut names = lab.processes.start("names", &mut names)?;
    names.wait("names", 30, || listens(settings.ports.of("names")))?;

    let mut server = lab.processes.command(lab.home.join("rabbitmq/usr/lib/rabbitmq/bin/rabbitmq-server"));
    server.env("HOME", &home).env("ERL_EPMD_PORT", port("names")).env("ERL_EPMD_ADDRESS", "127.0.0.1");
    server.env("RABBITMQ_NODENAME", "cloud@localhost").env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1");
    server.env("RABBITMQ_NODE_PORT", port("bus")).env("RABBITMQ_DIST_PORT", port("distribution"));
    server.env("RABBITMQ_MNESIA_BASE", home.join("mnesia")).env("RABBITMQ_LOG_BASE", home.join("log"));
    server.env("RABBITMQ_CONFIG_FILE", lab.state.join("etc/rabbitmq")).env("RABBITMQ_CONF_ENV_FILE", "/dev/null");
    server.env("RABBITMQ_ENABLED_PLUGINS_FILE", home.join("enabled_plugins"));
    server.env("RABBITMQ_PID_FILE", home.join("pid"));
    let loopback = "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2 +sbwt none";
    server.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", loopback);
    lab.processes.start("bus", &mut server)
}

/// Waits until the bus accepts connections.
pub(super) fn wait(bus: &mut BackgroundProcess, settings: &Settings) -> Result<()> {
    bus.wait("bus", 90, || listens(settings.ports.of("bus")))
}
