//! Secrets: planted in every field, used in every way, looked for everywhere.

mod broken;
mod endings;
mod floods;
mod garden;
mod learned;
mod others;
mod scene;

use crate::case::Case;

pub(super) fn cases() -> Vec<Case> {
    [endings::cases(), learned::cases(), broken::cases(), others::cases(), floods::cases()]
        .into_iter()
        .flatten()
        .collect()
}
