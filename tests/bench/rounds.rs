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
        // Each begins a round in its turn, so that none always follows the same.
        for at in (0..programs.len()).map(|at| (round + at) % programs.len()) {
            all[at].samples.push(programs[at].run()?);
        }
    }
    Ok(all)
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
    fn quantiles_are_values_that_were_measured() {
        assert_eq!(quantile(vec![3, 1, 2], 50), 2);
        assert_eq!(quantile((1..=100).collect(), 95), 96);
        assert_eq!(quantile(vec![7], 95), 7);
        assert_eq!(quantile(Vec::<u64>::new(), 50), 0);
    }
}
