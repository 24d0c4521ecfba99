//! What is known about a check: its code, and what operators can read about it.

/// What a check is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Explanation {
    /// The check refuses something of a guest, a caller, a file or a server, with an error that
    /// shows the code of the check.
    Refusal {
        /// What is refused, and why it is dangerous or wrong. One sentence.
        meaning: &'static str,
        /// What the operator, the guest's author or the caller can do. One sentence.
        remedy: &'static str,
    },
    /// The check is a setting, a bound or a step that produces no message, so its code is not
    /// shown. Mutation tests turn it off like any other check.
    Safeguard {
        /// What the check prevents or ensures. One sentence.
        purpose: &'static str,
    },
}

/// One check as its area describes it.
pub(crate) struct Entry {
    /// The name of the check in kebab-case.
    pub(crate) code: &'static str,
    pub(crate) explanation: Explanation,
}

pub(crate) const fn refusal(code: &'static str, meaning: &'static str, remedy: &'static str) -> Entry {
    Entry { code, explanation: Explanation::Refusal { meaning, remedy } }
}

pub(crate) const fn safeguard(code: &'static str, purpose: &'static str) -> Entry {
    Entry { code, explanation: Explanation::Safeguard { purpose } }
}
