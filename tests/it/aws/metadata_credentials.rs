//! Keys of the metadata service sign the life of a VM and a disk. The service has a fixed address, so the test runs in
//! a network namespace of its own, whose loopback interface has this address.

use super::moto::Moto;
use super::signed_guest::{Keys, job, requests_for_keys, role_keys, run_lifecycle};
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;
use tests::aws::{Gateway, Service, Simulator};
use tests::gateway::FREE_PORT;
use tests::skip;

const METADATA: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), 80);

/// The environment variable that is set in the namespace.
const INSIDE: &str = "WASM_CPI_TEST_METADATA";

#[test]
fn keys_of_the_machine_sign_a_lifecycle_on_the_simulator_and_on_moto() {
    if std::env::var_os(INSIDE).is_none() {
        return run_in_namespace(
            "aws::metadata_credentials::keys_of_the_machine_sign_a_lifecycle_on_the_simulator_and_on_moto",
        );
    }
    let simulator = Simulator::new();
    let place = |service| if service == Service::Metadata { METADATA } else { FREE_PORT };
    let cloud = Gateway::secure_at(simulator.clone(), place).cloud();
    check_both(&cloud);
    let Some(moto) = Moto::start() else { return };
    // The metadata service of moto returns keys that moto does not accept.
    let [id, secret, token] = role_keys(&moto.cloud);
    simulator.set_machine_keys(&id, &secret, &token);
    check_both(&moto.cloud);
}

/// Runs the lifecycle with the keys of the machine, and with those of a role that they assume.
fn check_both(cloud: &Value) {
    const OF_MACHINE: [&str; 3] = ["PUT 200", "GET 200", "GET 200"];
    for (keys, assumed) in [(Keys::Machine, &[][..]), (Keys::RoleOfMachine, &["POST 200"])] {
        let job = job(cloud, keys);
        run_lifecycle(&job, cloud);
        // All calls use the keys of the first one.
        assert_eq!(requests_for_keys(&job), [&OF_MACHINE, assumed].concat(), "{keys:?}");
    }
}

/// Runs one test of this program again, in a network namespace whose loopback interface has the address of the
/// metadata service.
fn run_in_namespace(test: &str) {
    let mut command = Command::new("unshare");
    command.arg("--net");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    let set_up = format!("ip link set lo up && ip address add {}/32 dev lo && exec \"$@\"", METADATA.ip());
    command.args(["sh", "-c", &set_up, "sh"]);
    let possible = Command::new(command.get_program()).args(command.get_args()).arg("true").output();
    match possible {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return skip("namespaces", &format!("a metadata service needs a network namespace and `ip`: {why}"));
        }
        Err(error) => return skip("namespaces", &format!("`unshare` cannot be started: {error}")),
    }
    let this = std::env::current_exe().unwrap_or_else(|error| panic!("this program's path: {error}"));
    let output = command.arg(this).args(["--exact", test, "--nocapture"]).env(INSIDE, "1").output();
    let output = output.unwrap_or_else(|error| panic!("{error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
}
