//! The database server, and the schemas of the services in it.
//!
//! Creating the schemas takes longer than the rest of the start. They depend only on the
//! versions of the services, so an image of the database, without secrets, is stored next
//! to the Python environment, and each cloud starts with a copy of it.

use super::Lab;
use super::settings::Settings;
use crate::cloud::processes::{BackgroundProcess, listens};
use crate::cloud::step::step;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

const DATABASES: [&str; 8] = ["keystone", "glance", "placement", "nova", "nova_api", "nova_cell0", "neutron", "cinder"];

/// Nova stores the addresses of its cells in a table: as patterns, which it fills in from its settings.
const CELL0: &str = "{scheme}://{username}:{password}@{hostname}:{port}/nova_cell0?{query}";
const CELL1: &str = "{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}";
const CELL1_BUS: &str = "{scheme}://{username}:{password}@{hostname}:{port}/{path}";

/// Starts the server with empty schemas, which are created first if these versions have none yet.
pub(super) fn start(lab: &Lab, settings: &Settings) -> Result<()> {
    let image = lab.home.join("schemas");
    if !lab.is_current(&image)? {
        step("create the database schemas, once for these versions", || create_schemas(lab, settings, &image))?;
    }
    step("start the database", || {
        lab.processes.run("database", Command::new("cp").args(["--archive"]).arg(image.join("data")).arg(data(lab)))?;
        serve(lab, settings).map(drop)
    })
}

fn create_schemas(lab: &Lab, settings: &Settings, image: &PathBuf) -> Result<()> {
    let mut install = lab.processes.command("mariadb-install-db");
    install.args(["--no-defaults", "--user=root", "--skip-test-db", "--auth-root-authentication-method=socket"]);
    install.arg("--auth-root-socket-user=root").arg(format!("--datadir={}", data(lab).display()));
    lab.processes.run("database", &mut install)?;
    let mut server = serve(lab, settings)?;
    let create: String = DATABASES.iter().map(|name| format!("create database {name};")).collect();
    sql(lab, &create)?;
    create_tables(lab)?;
    sql(lab, "drop user cloud@'127.0.0.1'; shutdown;")?;
    server.wait_for_end("database", 60)?;
    if image.exists() {
        fs::remove_dir_all(image)?;
    }
    fs::create_dir(image)?;
    fs::rename(data(lab), image.join("data"))?;
    lab.stamp(image)
}

fn data(lab: &Lab) -> PathBuf {
    lab.state.join("database")
}

/// Starts the server on the existing data, and creates the user of the services.
fn serve(lab: &Lab, settings: &Settings) -> Result<BackgroundProcess> {
    let mut server = lab.processes.command("mariadbd");
    server.args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--skip-name-resolve", "--skip-log-bin"]);
    server.args(["--character-set-server=utf8mb3", "--collation-server=utf8mb3_general_ci", "--max-connections=500"]);
    // Durability is not needed: the data is deleted with the cloud.
    server.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync"]);
    server.args(["--innodb-buffer-pool-size=256M", "--innodb-log-file-size=32M", "--performance-schema=OFF"]);
    server.arg(format!("--port={}", settings.ports.of("database")));
    // These paths are relative to the data directory: an absolute path could be too long for a socket.
    server.args(["--socket=socket", "--pid-file=pid"]).arg(format!("--datadir={}", data(lab).display()));
    let mut server = lab.processes.start("database", &mut server)?;
    let socket = data(lab).join("socket");
    server.wait("database", 60, || listens(settings.ports.of("database")) && socket.exists())?;
    let secret = &settings.secret;
    sql(
        lab,
        &format!("create user cloud@'127.0.0.1' identified by '{secret}'; grant all on *.* to cloud@'127.0.0.1';"),
    )?;
    Ok(server)
}

fn sql(lab: &Lab, text: &str) -> Result<()> {
    let mut client = lab.processes.command("mariadb");
    client.current_dir(data(lab)).args(["--no-defaults", "--user=root", "--socket=socket"]);
    lab.processes.run_with_input("database", &mut client, text).map(drop)
}

/// Lets every service create its tables: in two threads, since most machines have two cores.
fn create_tables(lab: &Lab) -> Result<()> {
    let manage = |line: &[&str]| {
        let (program, arguments) = line.split_first().context("a command line has no program")?;
        let mut manage = lab.processes.command(lab.venv.join("bin").join(program));
        for argument in arguments {
            match argument.strip_prefix("etc/") {
                Some(_) => manage.arg("--config-file").arg(lab.state.join(argument)),
                None => manage.arg(argument),
            };
        }
        lab.processes.run(program, &mut manage)
    };
    let nova = |arguments: &[&str]| {
        let all = [&["nova-manage", "etc/nova.conf", "etc/nova-database.conf"], arguments].concat();
        manage(&all)
    };
    let first = || {
        manage(&["keystone-manage", "etc/keystone.conf", "db_sync"])?;
        manage(&["neutron-db-manage", "etc/neutron.conf", "upgrade", "heads"])
    };
    let second = || {
        manage(&["glance-manage", "etc/glance.conf", "db_sync"])?;
        manage(&["placement-manage", "etc/placement.conf", "db", "sync"])?;
        nova(&["api_db", "sync"])?;
        nova(&["cell_v2", "map_cell0", "--database_connection", CELL0])?;
        let cell1 = ["cell_v2", "create_cell", "--name", "cell1", "--database_connection", CELL1];
        nova(&[&cell1[..], &["--transport-url", CELL1_BUS]].concat())?;
        nova(&["db", "sync"])?;
        manage(&["cinder-manage", "etc/cinder.conf", "db", "sync"])
    };
    thread::scope(|scope| {
        let first = scope.spawn(first);
        let second = second();
        first.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        second
    })
}
