//! What libFuzzer wrote, as far as it matters: how much it ran and found, and
//! what it crashed on. Pure.

/// One target's run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) target: String,
    pub(crate) runs: u64,
    /// Edges of the runtime's code that were reached.
    pub(crate) edges: u64,
    /// The same, told apart by how often, and by what was compared.
    pub(crate) features: u64,
    pub(crate) crash: Option<Crash>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Crash {
    /// The first lines of the panic, or what libFuzzer calls it.
    pub(crate) what: String,
    /// The file with the input; none if it was not even started.
    pub(crate) input: Option<String>,
}

impl Row {
    pub(super) fn read(target: &str, output: &str, succeeded: bool) -> Row {
        let status = output.lines().rfind(|line| line.contains(" cov: ")).unwrap_or_default();
        let runs = output.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        Row {
            target: target.to_owned(),
            runs: runs.and_then(|runs| runs.trim().parse().ok()).unwrap_or_else(|| after(status, "#")),
            edges: after(status, "cov: "),
            features: after(status, "ft: "),
            crash: (!succeeded).then(|| Crash::read(output)),
        }
    }

    pub(super) fn line(&self) -> String {
        let Row { target, runs, edges, features, crash } = self;
        let crashes = u8::from(crash.is_some());
        format!("{target:<12} {runs:>9} runs  {edges:>6} edges  {features:>6} features  {crashes} crashes")
    }
}

impl Crash {
    fn read(output: &str) -> Crash {
        let said = |mark: &str| output.lines().position(|line| line.contains(mark));
        // A panic says more than the signal that it ends in.
        let what = match (said("panicked at"), said("ERROR: libFuzzer")) {
            (Some(at), _) => output.lines().skip(at).take(4).collect::<Vec<_>>().join("\n"),
            (None, Some(at)) => output.lines().nth(at).unwrap_or_default().to_owned(),
            (None, None) => output.lines().last().unwrap_or("it said nothing").to_owned(),
        };
        let input = output.lines().find_map(|line| line.split_once("Test unit written to ").map(|(_, path)| path));
        Crash { what, input: input.map(str::to_owned) }
    }
}

/// The number behind a mark.
fn after(line: &str, mark: &str) -> u64 {
    let digits = line.split_once(mark).map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next());
    digits.flatten().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_to_its_end_is_counted() {
        let output = "INFO: Seed: 1\n#2\tINITED cov: 5 ft: 6 corp: 1/1b\n#812\tDONE   cov: 93 ft: 255 corp: 92/2177b\n\
                      Done 812 runs in 9 second(s)\nstat::number_of_executed_units: 812\n";
        let row = Row::read("json", output, true);
        assert_eq!(row, Row { target: "json".into(), runs: 812, edges: 93, features: 255, crash: None });
        assert!(row.line().starts_with("json ") && row.line().ends_with("0 crashes"), "{}", row.line());
    }

    #[test]
    fn a_crash_is_told_with_its_input() {
        let output = "#7\tNEW    cov: 9 ft: 9\nthread 'a' panicked at src/x.rs:1:1:\nleft is not right\n\
                      ==1== ERROR: libFuzzer: deadly signal\nartifact_prefix='c-'; Test unit written to c-crash-1\n";
        let row = Row::read("json", output, false);
        let crash = row.crash.unwrap();
        assert_eq!((row.runs, crash.input.as_deref()), (7, Some("c-crash-1")));
        assert!(crash.what.starts_with("thread 'a' panicked at src/x.rs:1:1:\nleft is not right"), "{}", crash.what);
    }

    #[test]
    fn what_never_began_is_a_crash_without_input() {
        for (output, what) in [("", "it said nothing"), ("a\n==1== ERROR: libFuzzer: timeout after 60\n", "timeout")] {
            let crash = Row::read("json", output, false).crash.unwrap();
            assert!(crash.what.contains(what) && crash.input.is_none(), "{crash:?}");
        }
    }
}
