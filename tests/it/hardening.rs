//! The walls around a call: what native code in a locked-down process gets, what
//! an operator hears of them, and what a running call looks like from outside.

mod attempts;
mod demands;
mod living;

use serde_json::json;
use tests::Job;

const LEVELS: [&str; 3] = ["required", "best-effort", "off"];

fn at_level(job: Job, level: &str) -> Job {
    job.configure(|config| config["hardening"] = json!(level))
}
