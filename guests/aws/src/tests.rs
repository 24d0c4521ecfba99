//! Native tests of the CPI's methods. They use the SDK's fake host, with answers for operations (`answers`).

mod answers;
mod session;

use serde_json::{Value, json};
use wasm_cpi_sdk::Cpi;
use wasm_cpi_sdk::fake::{Fake, Installed};

use crate::Aws;

/// The properties of most tests.
fn properties() -> Value {
    json!({
        "region": "us-east-1", "access_key_id": "<seal>", "secret_access_key": "<seal>", "default_key_name": "bosh",
        "default_security_groups": ["sg-0a1b2c3d"],
    })
}

/// Starts a call with answers by operation. Several answers to an operation are used in their order; the last one is
/// used for all further requests.
fn start(answers: &[(&str, String)]) -> Installed {
    start_with(properties(), answers)
}

fn start_with(properties: Value, answers: &[(&str, String)]) -> Installed {
    let fake = Fake::new().properties(properties);
    answers.iter().fold(fake, |fake, (operation, body)| fake.on_operation(operation, answers::answer(body))).install()
}

fn cpi() -> Aws {
    Aws::open().unwrap()
}

/// Returns the operations of all requests, in their order.
fn operations(host: &Installed) -> Vec<String> {
    (0..host.requests().len()).map(|index| host.request_form(index).unwrap()["Action"].clone()).collect()
}
