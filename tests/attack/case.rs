//! One case of the corpus: the attack, the hosts that it may contact, and its
//! outcome.

use crate::world::{Served, World, contact_name};
use std::collections::{BTreeSet, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use tests::{codes, skip};

/// Runs the attack. An error says which expectation failed.
pub(crate) type Attempt = Box<dyn Fn(&World) -> Result<(), String> + Send + Sync>;

pub(crate) struct Case {
    /// The kind of attack, which is a line of the table.
    pub(crate) class: &'static str,
    /// Names the attack, or states the expected behaviour.
    pub(crate) name: String,
    /// The mutants of the runtime that the case notices: each is the program with the named check turned
    /// off, or with a limit lifted (`limit-NAME`).
    pub(crate) mutants: Vec<String>,
    /// True if the attempt is refused, so that one of the codes of these checks must be shown.
    pub(crate) refused: bool,
    /// The contacts that are allowed, `dns`, `api:443`. Rows have `None`, as they
    /// check their contacts themselves.
    pub(crate) contacts: Option<&'static [&'static str]>,
    pub(crate) attempt: Attempt,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    Passed,
    /// The case did not run, or ran in part, for these reasons.
    Skipped(String),
}

/// The contacts of a request that the default grant allows.
pub(crate) const API: &[&str] = &["dns", "api:443"];

impl Case {
    /// Returns a case that may contact no host, unless `may_contact` lists some.
    pub(crate) fn new(
        class: &'static str,
        name: &str,
        mutants: &[&str],
        attempt: impl Fn(&World) -> Result<(), String> + Send + Sync + 'static,
    ) -> Case {
        let mutants = mutants.iter().map(|mutant| (*mutant).to_owned()).collect();
        Case { class, name: name.to_owned(), mutants, refused: false, contacts: Some(&[]), attempt: Box::new(attempt) }
    }

    pub(crate) fn may_contact(self, contacts: &'static [&'static str]) -> Case {
        Case { contacts: Some(contacts), ..self }
    }

    /// Returns a case without servers or contacts. It panics if an expectation fails.
    pub(crate) fn offline(
        class: &'static str,
        name: &str,
        mutants: &[&str],
        attempt: impl Fn() + Send + Sync + 'static,
    ) -> Case {
        Case::new(class, name, mutants, move |world| {
            world.reset(HashMap::new(), Served::default())?;
            attempt();
            Ok(())
        })
    }

    pub(crate) fn id(&self) -> String {
        format!("{}: {}", self.class, self.name)
    }

    /// Runs the case and checks the code of the refusal. Mutants are run without this check: a
    /// mutant that another check refuses is not noticed.
    pub(crate) fn run_and_check_code(&self, world: &World) -> Result<Outcome, String> {
        codes::collect();
        let outcome = self.run(world);
        let seen = codes::collected();
        match outcome? {
            Outcome::Passed => self.check_code(&seen).map(|()| Outcome::Passed),
            skipped => Ok(skipped),
        }
    }

    /// Rejects a case about refusals that has seen only the codes of other checks.
    fn check_code(&self, seen: &BTreeSet<String>) -> Result<(), String> {
        let about: Vec<&String> = self.mutants.iter().filter(|name| codes::known().contains(*name)).collect();
        let expected = !about.is_empty() && (self.refused || !seen.is_empty());
        if expected && !about.iter().any(|code| seen.contains(*code)) {
            return Err(format!("the case is about {about:?}, and these codes were shown: {seen:?}"));
        }
        Ok(())
    }

    /// Runs the case. An error says why it failed. A panic of the harness counts as
    /// a failure.
    pub(crate) fn run(&self, world: &World) -> Result<Outcome, String> {
        world.take_case_contacts()?;
        skip::take_reasons();
        catch_unwind(AssertUnwindSafe(|| (self.attempt)(world))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned())
        })?;
        let contacts: Vec<String> = world.take_case_contacts()?.iter().map(contact_name).collect();
        let forbidden = |contact: &&String| self.contacts.is_some_and(|allowed| !allowed.contains(&contact.as_str()));
        if contacts.iter().any(|contact| forbidden(&contact)) {
            return Err(format!(
                "contacted {contacts:?}, but only {:?} are allowed",
                self.contacts.unwrap_or_default()
            ));
        }
        match skip::take_reasons() {
            skipped if skipped.is_empty() => Ok(Outcome::Passed),
            skipped if rustix::process::geteuid().is_root() => Err(format!("root skipped {}", skipped.join(", "))),
            skipped => Ok(Outcome::Skipped(skipped.join(", "))),
        }
    }
}
