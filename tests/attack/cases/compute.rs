//! What a guest can do with code alone: break the ABI, use memory, stack, time and
//! handles without end, flood its host, and misuse WASI.

mod abi;
mod features;
mod floods;
mod space;
mod time;
mod wasi;

use crate::case::Case;
use serde_json::{Value, json};
use tests::{Job, Response, hostile};

const CLASS: &str = "compute, memory, ABI";

pub(super) fn cases() -> Vec<Case> {
    [abi::cases(), features::cases(), space::cases(), time::cases(), floods::cases(), wasi::cases()]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns a job with the guest of `tests/hostile/NAME.wat`.
fn job(name: &str) -> Job {
    Job::new().guest_bytes(&hostile::guest(name))
}

/// Calls one of the methods that hostile guests list.
fn call(job: &Job, method: &str) -> Response {
    let arguments: Value = match method {
        "create_vm" => json!(["agent-1", "stemcell-1", {}, {}, [], {}]),
        "create_disk" => json!([1, {}, null]),
        "attach_disk" => json!(["vm-1", "disk-1"]),
        _ => json!(["vm-1"]),
    };
    job.call(method, arguments).run()
}
