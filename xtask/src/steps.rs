//! Named steps with their times: a line when a step starts, a line when it ends, and a
//! table at the end.
//!
//! If a step fails that later steps depend on (`need`), the run stops. After any other
//! failure (`check`) it continues, so that one run shows every problem.

use crate::skips::{self, Skip};
use anyhow::{Result, anyhow, bail};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// The result of a step that did not fail.
pub(crate) enum Done {
    Ran,
    /// The reason why the step cannot run on this machine.
    Skipped(String),
}

enum Outcome {
    Passed,
    Skipped,
    Failed(String),
}

struct Step {
    name: String,
    took: Duration,
    outcome: Outcome,
}

pub(crate) struct Steps {
    start: Instant,
    steps: Vec<Step>,
    skips: Vec<Skip>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Steps { start: Instant::now(), steps: Vec::new(), skips: Vec::new() }
    }

    /// Runs a step that later steps depend on.
    pub(crate) fn need<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = print_start(name);
        let result = work();
        let outcome = match &result {
            Ok(_) => Outcome::Passed,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        self.end(name, start, outcome);
        result
    }

    /// Runs a step whose failure [`Steps::finish`] reports.
    pub(crate) fn check(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        self.check_if_possible(name, || work().map(|()| Done::Ran));
    }

    /// Runs a step that may be impossible on this machine.
    pub(crate) fn check_if_possible(&mut self, name: &str, work: impl FnOnce() -> Result<Done>) {
        let start = print_start(name);
        let outcome = match work() {
            Ok(Done::Ran) => Outcome::Passed,
            Ok(Done::Skipped(reason)) => {
                self.skips.push(Skip { name: name.to_owned(), reason });
                Outcome::Skipped
            }
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        self.end(name, start, outcome);
    }

    /// Adds the tests that the programs of a step skipped.
    pub(crate) fn add_skips(&mut self, skips: Vec<Skip>) {
        self.skips.extend(skips);
    }

    /// Returns the skips so far, those of steps and those of their programs.
    pub(crate) fn skips(&self) -> &[Skip] {
        &self.skips
    }

    fn end(&mut self, name: &str, start: Instant, outcome: Outcome) {
        let step = Step { name: name.to_owned(), took: start.elapsed(), outcome };
        match &step.outcome {
            Outcome::Failed(why) => eprintln!("{}: {why}", line(&step)),
            _ => eprintln!("{}", line(&step)),
        }
        self.steps.push(step);
    }

    /// Prints the table; returns an error if a step failed.
    pub(crate) fn finish(self) -> Result<()> {
        eprintln!("\n==> summary");
        for step in &self.steps {
            eprintln!("{}", line(step));
        }
        for skip in skips::lines(&self.skips) {
            eprintln!("     skipped  {skip}");
        }
        eprintln!("    {:>8}  total", seconds(self.start.elapsed()));
        let failed = self.steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_))).count();
        if failed > 0 {
            bail!("{failed} of {} steps failed", self.steps.len());
        }
        Ok(())
    }
}

/// Waits for a thread that runs beside the steps, and returns its result.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow!("the thread of this step panicked")))
}

fn print_start(name: &str) -> Instant {
    eprintln!("\n==> {name}");
    Instant::now()
}

fn line(step: &Step) -> String {
    let took = seconds(step.took);
    match &step.outcome {
        Outcome::Passed => format!("    {took:>8}  {}: ok", step.name),
        Outcome::Skipped => format!("    {took:>8}  {}: SKIPPED", step.name),
        Outcome::Failed(_) => format!("    {took:>8}  {}: FAILED", step.name),
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failed_check_the_rest_runs_and_the_run_fails() {
        let mut steps = Steps::new();
        let mut ran = false;
        steps.check("bad", || bail!("no"));
        steps.check("good", || {
            ran = true;
            Ok(())
        });
        assert!(ran);
        assert_eq!(steps.finish().unwrap_err().to_string(), "1 of 2 steps failed");
    }

    #[test]
    fn a_skipped_step_is_shown_with_its_reason_and_does_not_fail_the_run() {
        let mut steps = Steps::new();
        steps.check_if_possible("advisories", || Ok(Done::Skipped("offline".to_owned())));
        assert!(line(&steps.steps[0]).contains("advisories: SKIPPED"));
        assert_eq!(skips::lines(steps.skips()), ["advisories: offline"]);
        steps.finish().unwrap();
    }

    #[test]
    fn the_error_of_a_needed_step_is_returned() {
        let mut steps = Steps::new();
        assert!(steps.need("setup", || -> Result<()> { bail!("missing") }).is_err());
        assert!(steps.finish().is_err());
    }
}
