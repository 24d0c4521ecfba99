//! Rounds: every program once, then every program again, so that whatever else
//! the machine does meets them all alike.

use crate::program::{Program, Sample};
use std::time::Duration;

const WARM_UP: usize = 5;

/// All runs of one program.
pub(crate) struct Series {
    pub(crate) name: String,
    samples: Vec<Sample>,
    /// Peak of memory, in KiB.
    pub(crate) memory: u64,
}

pub(crate) fn interleaved(programs: &[Program], rounds: usize) -> Result<Vec<Series>, String> {
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

/// Each begins rounds in its turn, and steps of all widths that meet everyone take
/// turns: a program that always followed the same would find the same left behind.
fn order(programs: usize, round: usize) -> impl Iterator<Item = usize> {
    let meets_all = |step: &usize| !(2..=*step).any(|part| step.is_multiple_of(part) && programs.is_multiple_of(part));
    let steps: Vec<usize> = (1..programs.max(2)).filter(meets_all).collect();
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

/// How many times as long.
pub(crate) fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_meets_every_program_once_and_not_always_in_one_order() {
        for programs in 1..12 {
            let rounds: Vec<Vec<usize>> = (0..40).map(|round| order(programs, round).collect()).collect();
            for round in &rounds {
                let mut met = round.clone();
                met.sort_unstable();
                assert_eq!(met, (0..programs).collect::<Vec<_>>());
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
