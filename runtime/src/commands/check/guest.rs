//! Checks the guest's file: its signatures, its pin, its imports and its needs.

use super::CheckReport;
use crate::component::source::PinnedGuest;
use crate::component::{declarations, source};
use crate::config::Config;
use wasm_cpi_policy::Needs;

impl CheckReport {
    /// Verifies the signatures of the pinned digest, if the config demands signatures.
    pub(super) fn check_signature(&mut self, config: &Config) {
        let PinnedGuest { path, sha256, signature } = &config.guest;
        if let Some(signature) = signature {
            match signature.verify(path, sha256) {
                Ok(signed) => self.good.push(format!("guest {}: {}", path.display(), signature.describe(&signed))),
                Err(failure) => self.add_failure(&failure),
            }
        }
    }

    /// Checks the guest's file, its pin and its imports. Returns its needs.
    pub(super) fn check_guest(&mut self, config: &Config) -> Option<Needs> {
        let source = match source::read_pinned(&config.guest, &config.limits) {
            Ok(source) => source,
            Err(failure) => {
                self.add_failure(&failure);
                return None;
            }
        };
        let file = config.guest.path.display();
        let declarations = match declarations::inspect(&source.bytes) {
            Ok(declarations) => declarations,
            Err(problems) => {
                self.problems
                    .extend(problems.iter().map(|problem| format!("guest {file}: {}", problem.text_with_code())));
                return None;
            }
        };
        self.good.push(format!("guest {file}: matches its pin, and imports only what the runtime offers"));
        if !declarations.has_names {
            self.warnings.push(format!("guest {file} has no name section, so its backtraces do not name functions; build it without stripping names"));
        }
        let Some(text) = declarations.needs else {
            self.warnings.push(format!(
                "guest {file} declares no needs, so it gets nothing unless the policy sets `trust_undeclared`"
            ));
            return None;
        };
        match Needs::parse(text.as_bytes()) {
            Ok(needs) => Some(needs),
            Err(problems) => {
                let needs = problems.iter().map(|problem| format!("guest {file}: needs: {}", problem.text_with_code()));
                self.problems.extend(needs);
                None
            }
        }
    }
}
