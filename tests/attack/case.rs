//! One case of the corpus: what is tried, whom it may speak to, and whether it
//! held.

use crate::world::{Served, World, named};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tests::skip;

pub(crate) type Try = Box<dyn Fn(&World) -> Result<(), String> + Send + Sync>;

pub(crate) struct Case {
    /// What kind of attack: a line of the table.
    pub(crate) class: &'static str,
    /// A sentence, or a part of one.
    pub(crate) name: String,
    /// The named checks of the runtime each of which, turned off, makes it fail.
    pub(crate) holes: Vec<String>,
    /// Everybody who may be spoken to, `dns`, `api:443`. Rows have `None`: they
    /// know better, and look themselves.
    pub(crate) contacts: Option<&'static [&'static str]>,
    pub(crate) attempt: Try,
}

#[derive(Debug)]
pub(crate) enum Held {
    Yes,
    /// In part or not at all tried, and why.
    Skipped(String),
}

/// The name server and the API that a case is granted by default.
pub(crate) const API: &[&str] = &["dns", "api:443"];

impl Case {
    /// Nobody may be spoken to, unless `speaking_to` says so.
    pub(crate) fn new(
        class: &'static str,
        name: &str,
        holes: &[&str],
        attempt: impl Fn(&World) -> Result<(), String> + Send + Sync + 'static,
    ) -> Case {
        let holes = holes.iter().map(|hole| (*hole).to_owned()).collect();
        Case { class, name: name.to_owned(), holes, contacts: Some(&[]), attempt: Box::new(attempt) }
    }

    pub(crate) fn speaking_to(self, contacts: &'static [&'static str]) -> Case {
        Case { contacts: Some(contacts), ..self }
    }

    /// A case that needs nobody outside: it asserts what it finds.
    pub(crate) fn silent(
        class: &'static str,
        name: &str,
        holes: &[&str],
        attempt: impl Fn() + Send + Sync + 'static,
    ) -> Case {
        Case::new(class, name, holes, move |world| {
            world.set(HashMap::new(), Served::default())?;
            attempt();
            Ok(())
        })
    }

    pub(crate) fn id(&self) -> String {
        format!("{}: {}", self.class, self.name)
    }

    /// Why it did not hold. The harness panics where a client of ours would choke.
    pub(crate) fn run(&self, world: &World) -> Result<Held, String> {
        world.spoken_to()?;
        skip::take_reasons();
        catch_unwind(AssertUnwindSafe(|| (self.attempt)(world))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned())
        })?;
        let contacts: Vec<String> = world.spoken_to()?.iter().map(named).collect();
        let forbidden = |contact: &&String| self.contacts.is_some_and(|known| !known.contains(&contact.as_str()));
        if contacts.iter().any(|contact| forbidden(&contact)) {
            return Err(format!("spoke to {contacts:?}, and may to {:?}", self.contacts.unwrap_or_default()));
        }
        match skip::take_reasons() {
            skipped if skipped.is_empty() => Ok(Held::Yes),
            skipped if rustix::process::geteuid().is_root() => Err(format!("root skipped {}", skipped.join(", "))),
            skipped => Ok(Held::Skipped(skipped.join(", "))),
        }
    }
}
