//! What the vault does without a check, for mutation tests: it treats a value that equals a known
//! secret differently, which a guest can observe.

use super::Inner;
use wasm_cpi_checks::Check;
use wasm_cpi_policy::secret::Secret;

/// Returns the seal of a secret with the same value.
pub(super) fn seal_of_equal_value(inner: &Inner, secret: &Secret) -> Option<String> {
    let same = |(_, sealed): &(&String, &std::sync::Arc<super::Sealed>)| sealed.secret == *secret;
    inner.seals.iter().find(same).filter(|_| Check::SealPerPlace.is_off()).map(|(seal, _)| seal.clone())
}

/// Returns 0 if a captured value is known already, and 1 otherwise.
pub(super) fn cost_of_capture(inner: &Inner, secret: &Secret) -> usize {
    let is_free = Check::CaptureCost.is_off() && inner.known.iter().any(|known| known.secret == *secret);
    usize::from(!is_free)
}
