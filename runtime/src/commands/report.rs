//! What a subcommand prints, and whether it succeeded.

/// The output of a command.
pub struct Report {
    pub text: String,
    /// Decides whether the command exits 0.
    pub good: bool,
}

impl Report {
    /// Returns the report of a command that succeeded.
    pub fn good(text: impl Into<String>) -> Report {
        Report { text: text.into(), good: true }
    }
}
