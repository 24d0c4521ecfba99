//! What the simulated clouds have in common: tables of resources, changes that complete
//! after a number of reads, and ids.

mod ids;
mod pending;
mod table;

pub(crate) use ids::Ids;
pub(crate) use pending::PendingChanges;
pub(crate) use table::{Item, Table};
