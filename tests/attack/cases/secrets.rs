use crate::case::Case;

pub(super) fn cases() -> Vec<Case> {
    Vec::new()
}
