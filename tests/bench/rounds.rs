//! Runs programs in rounds: each program once, then each program again, so that other
//! load on the machine affects all of them equally.

use crate::program::{Program, Sample};
use std::time::Duration;

const WARM_UP: usize = 5;

/// All runs of one program.
pub(crate) struct Series {
    pub(crate) name: String,
    samples: Vec<Sample>,
    /// The peak memory in KiB.
    pub(crate) memory: u64,
}

/// Runs the programs in turns and returns their samples.
pub(crate) fn run_interleaved(programs: &[Program], rounds: usize) -> Result<Vec<Series>, String> {
    for program in programs {
        for _ in 0..WARM_UP {
            program.run()?;
        }
    }
    let mut all: Vec<Series> = Vec::new();
    for program in programs {
        let memory = program.memory()?;
        all.push(Series { name: program.name.clone(), samples: Vec::new(), memory });
    }
    for round in 0..rounds {
        for at in order(programs.len(), round) {
            all[at].samples.push(programs[at].run()?);
        }
    }
    Ok(all)
}

/// Returns the order of the programs in a round. Both the first program and the step
/// between programs change from round to round, so that a program does not always run
/// after the same other one. Only steps that reach all programs are used.
fn order(programs: usize, round: usize) -> impl Iterator<Item = usize> {
    let reaches_all =
        |step: &usize| !(2..=*step).any(|part| step.is_multiple_of(part) && programs.is_multiple_of(part));
    let steps: Vec<usize> = (1..programs.max(2)).filter(reaches_all).collect();
    let step = steps[round % steps.len()];
    (0..programs).map(move |at| (round + at * step) % programs)
}

impl Series {
    pub(crate) fn median(&self) -> Duration {
        quantile(self.samples.iter().map(|sample| sample.wall).collect(), 50)
    }

    pub(crate) fn p95(&self) -> Duration {
        quantile(self.samples.iter().map(|sample| sample.wall).collect(), 95)
    }

    pub(crate) fn min(&self) -> Duration {
        self.samples.iter().map(|sample| sample.wall).min().unwrap_or_default()
    }

    pub(crate) fn cpu(&self) -> Duration {
        quantile(self.samples.iter().map(|sample| sample.cpu).collect(), 50)
    }

    pub(crate) fn page_faults(&self) -> u64 {
        quantile(self.samples.iter().map(|sample| sample.page_faults).collect(), 50)
    }
}

pub(crate) fn quantile<T: Ord + Copy + Default>(mut values: Vec<T>, percent: usize) -> T {
    values.sort_unstable();
    values.get(values.len() * percent / 100).or(values.last()).copied().unwrap_or_default()
}

/// Returns how many times as long `of` takes as `to`.
pub(crate) fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_runs_every_program_once_and_the_order_varies() {
        for programs in 1..12 {
            let rounds: Vec<Vec<usize>> = (0..40).map(|round| order(programs, round).collect()).collect();
            for round in &rounds {
                let mut sorted = round.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..programs).collect::<Vec<_>>());
            }
            let before = |round: &Vec<usize>| {
                round.iter().position(|at| *at == 0).and_then(|at| round.get(at.checked_sub(1)?).copied())
            };
            let befores: std::collections::HashSet<usize> = rounds.iter().filter_map(before).collect();
            assert!(befores.len() + 1 >= programs.min(3), "{programs} programs: {befores:?}");
        }
    }

    #[test]
    fn quantiles_are_values_that_were_measured() {
        assert_eq!(quantile(vec![3, 1, 2], 50), 2);
        assert_eq!(quantile((1..=100).collect(), 95), 96);
        assert_eq!(quantile(vec![7], 95), 7);
        assert_eq!(quantile(Vec::<u64>::new(), 50), 0);
    }
}
