//! Hardening: what lock-down refuses to native code in the process of a call, what
//! operators learn about the level reached, and the kernel's view of a running call.

mod levels;
mod native_code;
mod process_state;

use serde_json::json;
use tests::Job;

const LEVELS: [&str; 3] = ["required", "best-effort", "off"];

fn at_level(job: Job, level: &str) -> Job {
    job.configure(|config| config["hardening"] = json!(level))
}
