//! The kinds of faults.

use serde_json::{Value, json};
use tests::gateway::Fault;

/// The wall clock limit, in seconds, of a call that has to reach it while it waits for a
/// response. The requests before that fit into it on a busy machine.
const WALL: u32 = 20;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The gateway answers in place of the service, by the answer's name in the table.
    Answer(&'static str),
    ResetBefore,
    ResetAfter,
    Body,
    /// The service executes the request, and the response never arrives.
    Timeout,
    /// The same, and the call reaches its wall clock limit meanwhile.
    Wall,
    /// The same, and the call gets SIGTERM meanwhile.
    Term,
}

impl Kind {
    /// Returns all kinds, with these answers.
    pub(crate) const fn all([one, two, three, four]: [&'static str; 4]) -> [Kind; 10] {
        [
            Kind::Answer(one),
            Kind::Answer(two),
            Kind::Answer(three),
            Kind::Answer(four),
            Kind::ResetBefore,
            Kind::ResetAfter,
            Kind::Body,
            Kind::Timeout,
            Kind::Wall,
            Kind::Term,
        ]
    }

    /// Returns the name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Answer(name) => name,
            Kind::ResetBefore => "reset",
            Kind::ResetAfter => "lost",
            Kind::Body => "body",
            Kind::Timeout => "timeout",
            Kind::Wall => "wall",
            Kind::Term => "term",
        }
    }

    /// Returns the fault. `answer` returns the one that answers in place of the service.
    pub(crate) fn fault(self, answer: impl FnOnce(&str) -> Fault) -> Fault {
        match self {
            Kind::Answer(name) => answer(name),
            Kind::ResetBefore => Fault::ResetBefore,
            Kind::ResetAfter => Fault::ResetAfter,
            Kind::Body => Fault::Body(b"<html>".to_vec()),
            Kind::Timeout | Kind::Wall | Kind::Term => Fault::StallAfter,
        }
    }

    /// Returns the limits of the call. A request times out after these seconds, which must be longer than any other
    /// request takes on a busy machine.
    pub(crate) fn limits(self, response_timeout: u32) -> Value {
        match self {
            // A request may take the sum of both.
            Kind::Timeout | Kind::Term => {
                json!({"connect_seconds": response_timeout, "first_byte_seconds": response_timeout})
            }
            Kind::Wall => json!({"wall_seconds": WALL, "create_stemcell_wall_seconds": WALL}),
            _ => json!({}),
        }
    }

    /// Returns a number by which the kinds are in the order of the time that their cells take.
    pub(super) fn duration(self) -> u32 {
        match self {
            Kind::Wall => 2,
            Kind::Timeout => 1,
            _ => 0,
        }
    }
}
