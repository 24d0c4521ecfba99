//! The fault matrix: every request of the methods that have many, combined with every kind of fault, compared with the
//! table in `tests/cases/aws-faults.txt`. Each cell also checks that nothing is left behind (`faults`).
//!
//! Requests that the guest sends at once are in the order of their names. An outcome with `!` is one after which the log
//! names what still points to a deleted VM.

use super::faults::{Fixture, KINDS};
use super::scenarios::Scenario;
use crate::fault_matrix::{Matrix, Row};
use tests::aws::{Gateway, Simulator};

const TABLE: &str = include_str!("../../../cases/aws-faults.txt");

/// The number of simulators in use. Calls mostly wait, so that many can run at once.
const SIMULATORS: usize = 48;

#[test]
fn every_fault_at_every_request_to_aws_ends_as_the_table_says_and_leaves_nothing_behind() {
    let gateway = Gateway::start(simulator());
    let fixture = Fixture::new(&gateway);
    let rows_of = |scenario: Scenario| fixture.requests(scenario).into_iter().map(move |step| Row { scenario, step });
    let matrix = Matrix::full(Scenario::ALL.into_iter().flat_map(rows_of).collect(), &KINDS);
    std::thread::scope(|threads| {
        for _ in 0..SIMULATORS {
            threads.spawn(|| matrix.run(Fixture::new(&Gateway::start(simulator()))));
        }
    });
    matrix.compare(&KINDS, "aws-faults.txt", TABLE);
}

/// Returns a cloud in which a change completes at the first read: so calls do not wait, and a fault at this read is a
/// fault during the wait.
fn simulator() -> Simulator {
    let simulator = Simulator::new();
    simulator.set_reads_before_change(0);
    simulator
}
