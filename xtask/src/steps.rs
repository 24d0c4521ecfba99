//! Named steps with their times: a line when one begins, a line when it ends,
//! and a table at the end.
//!
//! A step that others build on stops everything when it fails (`need`); the rest
//! go on, so that one run shows every problem (`check`).

use crate::skips::{self, Skip};
use anyhow::{Result, anyhow, bail};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// How a step ended that did not fail.
pub(crate) enum Done {
    Ran,
    /// It cannot be done on this machine, and why.
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
    begun: Instant,
    steps: Vec<Step>,
    skips: Vec<Skip>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Steps { begun: Instant::now(), steps: Vec::new(), skips: Vec::new() }
    }

    /// A step without which the following ones make no sense.
    pub(crate) fn need<T>(&mut self, name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let begun = begin(name);
        let result = work();
        let outcome = match &result {
            Ok(_) => Outcome::Passed,
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        self.end(name, begun, outcome);
        result
    }

    /// A step whose failure is reported at the end.
    pub(crate) fn check(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        self.check_if_possible(name, || work().map(|()| Done::Ran));
    }

    /// The same, for what may be impossible here through no fault of the code.
    pub(crate) fn check_if_possible(&mut self, name: &str, work: impl FnOnce() -> Result<Done>) {
        let begun = begin(name);
        let outcome = match work() {
            Ok(Done::Ran) => Outcome::Passed,
            Ok(Done::Skipped(reason)) => {
                self.skips.push(Skip { name: name.to_owned(), reason });
                Outcome::Skipped
            }
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        self.end(name, begun, outcome);
    }

    /// Adds what the programs of a step skipped.
    pub(crate) fn skipped(&mut self, skips: Vec<Skip>) {
        self.skips.extend(skips);
    }

    /// What was skipped so far, by steps and by their programs.
    pub(crate) fn skips(&self) -> &[Skip] {
        &self.skips
    }

    fn end(&mut self, name: &str, begun: Instant, outcome: Outcome) {
        let step = Step { name: name.to_owned(), took: begun.elapsed(), outcome };
        match &step.outcome {
            Outcome::Failed(why) => eprintln!("{}: {why}", line(&step)),
            _ => eprintln!("{}", line(&step)),
        }
        self.steps.push(step);
    }

    /// Prints the table; an error if any step failed.
    pub(crate) fn finish(self) -> Result<()> {
        eprintln!("\n==> summary");
        for step in &self.steps {
            eprintln!("{}", line(step));
        }
        for skip in skips::lines(&self.skips) {
            eprintln!("     skipped  {skip}");
        }
        eprintln!("    {:>8}  in all", seconds(self.begun.elapsed()));
        let failed = self.steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_))).count();
        if failed > 0 {
            bail!("{failed} of {} steps failed", self.steps.len());
        }
        Ok(())
    }
}

/// What a thread beside the steps came to.
pub(crate) fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(anyhow!("it panicked")))
}

fn begin(name: &str) -> Instant {
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
    fn a_failed_check_lets_the_rest_run_and_fails_the_whole() {
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
    fn a_step_that_could_not_run_is_shown_with_its_reason_and_fails_nothing() {
        let mut steps = Steps::new();
        steps.check_if_possible("advisories", || Ok(Done::Skipped("offline".to_owned())));
        assert!(line(&steps.steps[0]).contains("advisories: SKIPPED"));
        assert_eq!(skips::lines(steps.skips()), ["advisories: offline"]);
        steps.finish().unwrap();
    }

    #[test]
    fn a_needed_step_passes_its_error_on() {
        let mut steps = Steps::new();
        assert!(steps.need("setup", || -> Result<()> { bail!("nothing there") }).is_err());
        assert!(steps.finish().is_err());
    }
}
