//! The methods by which the runtime makes a check. Each decides in one place whether the check
//! is active: in a program that ships it always is, and the methods compile to the plain
//! condition; in a mutant one check is not.

use crate::{Check, Explanation};

/// An error that holds the check which refused.
pub trait RefusedBy: Sized {
    /// Returns the error with the check that refused. An error that already holds a check keeps
    /// it: the first check is the most precise one.
    #[must_use]
    fn refused_by(self, check: Check) -> Self;
}

impl Check {
    /// Refuses unless the condition holds. The error then holds this check.
    ///
    /// ```
    /// use wasm_cpi_checks::{Check, RefusedBy};
    ///
    /// #[derive(Debug, PartialEq)]
    /// struct Refusal(Option<Check>);
    ///
    /// impl RefusedBy for Refusal {
    ///     fn refused_by(self, check: Check) -> Refusal {
    ///         Refusal(self.0.or(Some(check)))
    ///     }
    /// }
    ///
    /// let refused = Check::GrantPort.ensure(443 == 8443, || Refusal(None));
    /// assert_eq!(refused, Err(Refusal(Some(Check::GrantPort))));
    /// ```
    #[inline(always)]
    pub fn ensure<E: RefusedBy>(self, holds: bool, error: impl FnOnce() -> E) -> Result<(), E> {
        if self.accepts(holds) { Ok(()) } else { Err(self.refusal(error())) }
    }

    /// Refuses, unless a mutant has turned the check off. The error then holds this check.
    #[inline(always)]
    pub fn refuse<E: RefusedBy>(self, error: impl FnOnce() -> E) -> Result<(), E> {
        self.ensure(false, error)
    }

    /// Refuses if something was found that must not be there. The error then holds this check.
    #[inline(always)]
    pub fn reject<T, E: RefusedBy>(self, found: Option<T>, error: impl FnOnce(T) -> E) -> Result<(), E> {
        match found {
            Some(found) if self.is_active() => Err(self.refusal(error(found))),
            _ => Ok(()),
        }
    }

    /// Returns true if what the check refuses was found.
    #[inline(always)]
    #[must_use]
    pub fn refuses(self, found: bool) -> bool {
        self.is_active() && found
    }

    /// Returns true if the condition that the check demands holds.
    #[inline(always)]
    #[must_use]
    pub fn accepts(self, holds: bool) -> bool {
        holds || !self.is_active()
    }

    /// Returns the strict setting or bound; a mutant without this check gets the lax one.
    #[inline(always)]
    #[must_use]
    pub fn choose<T>(self, strict: T, lax: T) -> T {
        if self.is_active() { strict } else { lax }
    }

    /// Performs a step and returns its result; `None` only in a mutant without this check.
    #[inline(always)]
    pub fn perform<T>(self, step: impl FnOnce() -> T) -> Option<T> {
        self.is_active().then(step)
    }

    /// Performs a step and returns its result; a mutant without this check gets the lax one.
    #[inline(always)]
    pub fn perform_or<T>(self, lax: T, step: impl FnOnce() -> T) -> T {
        if self.is_active() { step() } else { lax }
    }

    fn refusal<E: RefusedBy>(self, error: E) -> E {
        debug_assert!(matches!(self.explanation(), Explanation::Refusal { .. }), "{self} is listed as a safeguard");
        error.refused_by(self)
    }

    /// Returns false only for the check that a mutation test turned off.
    #[cfg(feature = "mutation-testing")]
    fn is_active(self) -> bool {
        !self.is_off()
    }

    /// Returns true: a program that ships makes every check.
    #[cfg(not(feature = "mutation-testing"))]
    #[inline(always)]
    fn is_active(self) -> bool {
        true
    }
}
