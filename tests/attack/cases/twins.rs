//! Twin runs in code: uploads in blocks, budgets that need hundreds of answers, servers that echo, and
//! random scripts.

mod blocks;
mod budgets;
mod echo;
mod random;

use crate::case::Case;

pub(super) fn cases() -> Vec<Case> {
    [blocks::cases(), budgets::cases(), echo::cases(), random::cases()].into_iter().flatten().collect()
}
