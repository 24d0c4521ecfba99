//! Twin runs in code: budgets that need hundreds of answers, servers that echo, and
//! random scripts.

mod budgets;
mod echo;
mod random;

use crate::case::Case;

pub(super) fn cases() -> Vec<Case> {
    [budgets::cases(), echo::cases(), random::cases()].into_iter().flatten().collect()
}
