//! Secrets in every field of a job, used in every way that a guest has. No output,
//! file, request or memory of a guest may hold one where it does not belong.

mod bindings;
mod endings;
mod exfiltration;
mod floods;
mod latch;
mod malformed_input;
mod registry;
mod scenario;
mod secret_set;
mod tokens;
mod twins;

use crate::case::Case;

pub(super) fn cases() -> Vec<Case> {
    let all = [
        endings::cases(),
        exfiltration::cases(),
        malformed_input::cases(),
        registry::cases(),
        bindings::cases(),
        floods::cases(),
        twins::cases(),
        latch::cases(),
        tokens::cases(),
    ];
    all.into_iter().flatten().collect()
}
