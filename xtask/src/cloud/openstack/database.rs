//! The database server, and the services' schemas in it.
//!
//! Making the schemas takes longer than all the rest. They depend on the versions
//! alone, so an image of the database is kept beside the environment, without a
//! secret in it, and each cloud begins with a copy.

use super::Lab;
use super::settings::Settings;
use crate::cloud::processes::{Started, listens};
use crate::cloud::step::step;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

const DATABASES: [&str; 8] = ["keystone", "glance", "placement", "nova", "nova_api", "nova_cell0", "neutron", "cinder"];

/// Nova keeps the addresses of its parts in a table: as patterns, filled in from its settings.
const CELL0: &str = "{scheme}://{username}:{password}@{hostname}:{port}/nova_cell0?{query}";
const CELL1: &str = "{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}";
const CELL1_BUS: &str = "{scheme}://{username}:{password}@{hostname}:{port}/{path}";

pub(super) fn start(lab: &Lab, settings: &Settings) -> Result<()> {
    let image = lab.home.join("schemas");
    if !lab.is_current(&image)? {
        step("database with empty schemas, once for these versions", || make(lab, settings, &image))?;
    }
    step("database", || {
        lab.processes.run("database", Command::new("cp").args(["--archive"]).arg(image.join("data")).arg(data(lab)))?;
        serve(lab, settings).map(drop)
    })
}

fn make(lab: &Lab, settings: &Settings, image: &PathBuf) -> Result<()> {
    let mut install = lab.processes.command("mariadb-install-db");
    install.args(["--no-defaults", "--user=root", "--skip-test-db", "--auth-root-authentication-method=socket"]);
    install.arg("--auth-root-socket-user=root").arg(format!("--datadir={}", data(lab).display()));
    lab.processes.run("database", &mut install)?;
    let mut server = serve(lab, settings)?;
    let create: String = DATABASES.iter().map(|name| format!("create database {name};")).collect();
    sql(lab, &create)?;
    synchronize(lab)?;
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

/// Starts the server on the data that is there, and lets the services in.
fn serve(lab: &Lab, settings: &Settings) -> Result<Started> {
    let mut server = lab.processes.command("mariadbd");
    server.args(["--no-defaults", "--user=root", "--bind-address=127.0.0.1", "--skip-name-resolve", "--skip-log-bin"]);
    server.args(["--character-set-server=utf8mb3", "--collation-server=utf8mb3_general_ci", "--max-connections=500"]);
    // What is lost when the machine crashes is not missed.
    server.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-flush-method=nosync"]);
    server.args(["--innodb-buffer-pool-size=256M", "--innodb-log-file-size=32M", "--performance-schema=OFF"]);
    server.arg(format!("--port={}", settings.ports.of("database")));
    // The rest lies in the directory of the data. A whole path could be too long for a socket.
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
    lab.processes.ask("database", &mut client, text).map(drop)
}

/// Lets every service make its tables: in two lanes, since most machines have two cores.
fn synchronize(lab: &Lab) -> Result<()> {
    let manage = |words: &[&str]| {
        let (program, rest) = words.split_first().context("no program")?;
        let mut manage = lab.processes.command(lab.venv.join("bin").join(program));
        for word in rest {
            match word.strip_prefix("etc/") {
                Some(_) => manage.arg("--config-file").arg(lab.state.join(word)),
                None => manage.arg(word),
            };
        }
        lab.processes.run(program, &mut manage)
    };
    let nova = |words: &[&str]| {
        let all = [&["nova-manage", "etc/nova.conf", "etc/nova-database.conf"], words].concat();
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
        first.join().map_err(|_| anyhow::anyhow!("a lane panicked"))??;
        second
    })
}
