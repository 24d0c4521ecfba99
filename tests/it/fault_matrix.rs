//! The fault matrix of a CPI: every request of its methods, combined with every kind of fault. This module runs the
//! cells at once and writes the table of their outcomes; the CPI's own modules know its methods and its cloud.
//!
//! A row is a request that differs from the one before it. The guest repeats a read while it waits for the cloud; each
//! repetition that a simulator makes necessary is a row marked `again`.

mod injection;
mod kind;

pub(crate) use injection::{call_with_fault, sort_runs};
pub(crate) use kind::Kind;

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tests::gateway::Step;
use tests::{Response, dist};

/// Marks the repetition of a request.
pub(crate) const AGAIN: &str = " again";

/// The outcome of a cell that panicked.
const FAILED: &str = "PANIC";

/// The indices of rows, and the fault to inject at each of them.
pub(crate) type Cell = (Vec<usize>, Kind);
/// The outcomes by the index of the row and the name of the fault.
pub(crate) type Outcomes = BTreeMap<(usize, &'static str), String>;

/// A cloud in which cells can run, one after the other.
pub(crate) trait Fixture {
    type Scenario: Copy + Debug + Send + Sync;

    /// Runs a scenario with a fault at each of these requests and returns its outcome. Panics if something is left.
    fn run_cell(&self, scenario: Self::Scenario, steps: &[&Step], kind: Kind) -> String;

    /// Accepts the current resources as those of the fixture.
    fn settle(&mut self);

    /// Deletes the fixture's resources. Panics if something is left.
    fn tear_down(self);
}

pub(crate) struct Row<S> {
    pub(crate) scenario: S,
    pub(crate) step: Step,
}

impl<S> Row<S> {
    pub(crate) fn request(&self) -> String {
        self.step.request.clone() + if self.step.poll > 1 { AGAIN } else { "" }
    }
}

/// The cells that are left to run, and the outcomes of the others.
pub(crate) struct Matrix<S> {
    rows: Vec<Row<S>>,
    cells: Mutex<Vec<Cell>>,
    outcomes: Mutex<Outcomes>,
}

impl<S: Copy + Debug + Send + Sync> Matrix<S> {
    /// Returns a matrix with these cells, which run from the last one to the first.
    pub(crate) fn new(rows: Vec<Row<S>>, cells: Vec<Cell>) -> Matrix<S> {
        Matrix { rows, cells: Mutex::new(cells), outcomes: Mutex::default() }
    }

    /// Returns a matrix with a cell for each row and kind. Those that take longest run first.
    pub(crate) fn full(rows: Vec<Row<S>>, kinds: &[Kind]) -> Matrix<S> {
        let mut cells: Vec<Cell> =
            (0..rows.len()).flat_map(|row| kinds.iter().map(move |kind| (vec![row], *kind))).collect();
        cells.sort_by_key(|(_, kind)| kind.duration());
        Matrix::new(rows, cells)
    }

    /// Runs cells until none is left.
    pub(crate) fn run(&self, mut fixture: impl Fixture<Scenario = S>) {
        let mut tidy = true;
        loop {
            let next = lock(&self.cells).pop();
            let Some((at, kind)) = next else { break };
            let steps: Vec<&Step> = at.iter().map(|at| &self.rows[*at].step).collect();
            // The table shows all differences, not only the first one.
            let outcome = catch_unwind(AssertUnwindSafe(|| fixture.run_cell(self.rows[at[0]].scenario, &steps, kind)));
            let outcome = outcome.unwrap_or_else(|_| {
                tidy = false;
                fixture.settle();
                FAILED.to_owned()
            });
            lock(&self.outcomes).extend(at.iter().map(|at| ((*at, kind.name()), outcome.clone())));
        }
        if tidy {
            fixture.tear_down();
        }
    }

    pub(crate) fn rows(&self) -> &[Row<S>] {
        &self.rows
    }

    pub(crate) fn outcomes(&self) -> Outcomes {
        lock(&self.outcomes).clone()
    }

    /// Compares the outcomes with a file in `tests/cases`, or renews it.
    pub(crate) fn compare(&self, kinds: &[Kind], file: &str, expected: &str) {
        let outcomes = self.outcomes();
        let mut table =
            "# The outcome of a call with a fault at one of its requests. `+`: the Director may try again.\n"
                .to_owned();
        table += &format_row("# call", "request", kinds.iter().map(|kind| kind.name()));
        for (at, row) in self.rows.iter().enumerate() {
            let cells = kinds.iter().map(|kind| outcomes.get(&(at, kind.name())).map_or("?", String::as_str));
            table += &format_row(&format!("{:?}", row.scenario), &row.request(), cells);
        }
        // What was left in the cloud must not become an expected outcome.
        assert!(!outcomes.values().any(|outcome| outcome == FAILED), "a cell failed; its assertion is above:\n{table}");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            return tests::job::write(&dist::root().join("tests/cases").join(file), table.as_bytes());
        }
        assert!(
            table == expected,
            "the outcomes differ from tests/cases/{file}, which UPDATE_EXPECT=1 rewrites:\n{table}"
        );
    }
}

/// Returns `ok` or the type of the error, with a `+` if the Director may try again.
pub(crate) fn outcome(response: &Response) -> String {
    if response.json["error"].is_null() {
        return "ok".to_owned();
    }
    let retry = if response.json["error"]["ok_to_retry"] == true { "+" } else { "" };
    format!("{}{retry}", response.error_type().trim_start_matches("Bosh::Clouds::"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn format_row<'a>(scenario: &str, request: &str, cells: impl Iterator<Item = &'a str>) -> String {
    let mut text = format!("{scenario:17} {request:42}");
    for cell in cells {
        let _ = write!(text, " {cell:17}");
    }
    text.trim_end().to_owned() + "\n"
}
