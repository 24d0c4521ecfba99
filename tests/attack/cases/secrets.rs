//! Secrets: planted in every field, used in every way, looked for everywhere.

mod endings;
mod garden;
mod learned;
mod scene;

use crate::case::Case;

pub(super) fn cases() -> Vec<Case> {
    endings::cases().into_iter().chain(learned::cases()).collect()
}
