//! One case of the corpus: what is tried, and whether it held.

use crate::world::{Served, World};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) type Try = Box<dyn Fn(&World) -> Result<(), String> + Send + Sync>;

pub(crate) struct Case {
    /// What kind of attack: a line of the table.
    pub(crate) class: &'static str,
    /// A sentence, or a part of one.
    pub(crate) name: String,
    /// The named checks of the runtime each of which, turned off, makes it fail.
    pub(crate) holes: Vec<String>,
    pub(crate) attempt: Try,
}

impl Case {
    pub(crate) fn new(
        class: &'static str,
        name: &str,
        holes: &[&str],
        attempt: impl Fn(&World) -> Result<(), String> + Send + Sync + 'static,
    ) -> Case {
        let holes = holes.iter().map(|hole| (*hole).to_owned()).collect();
        Case { class, name: name.to_owned(), holes, attempt: Box::new(attempt) }
    }

    /// A case that nobody outside may hear of: whatever it asserts, no packet may
    /// leave and no server may be asked meanwhile.
    pub(crate) fn silent(
        class: &'static str,
        name: &str,
        holes: &[&str],
        attempt: impl Fn() + Send + Sync + 'static,
    ) -> Case {
        Case::new(class, name, holes, move |world| {
            world.set(HashMap::new(), Served::default())?;
            attempt();
            let contacts = world.contacts()?;
            if contacts.is_empty() { Ok(()) } else { Err(format!("spoke to {contacts:?}")) }
        })
    }

    pub(crate) fn id(&self) -> String {
        format!("{}: {}", self.class, self.name)
    }

    /// Why it did not hold. The harness panics where a client of ours would choke.
    pub(crate) fn run(&self, world: &World) -> Result<(), String> {
        catch_unwind(AssertUnwindSafe(|| (self.attempt)(world))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            Err(text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned())
        })
    }
}
