//! Reads the output of libFuzzer: how much it ran and found, and the input of a crash.
//! Does no IO.

/// The run of one target.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) target: String,
    pub(crate) runs: u64,
    /// How many edges of the runtime's code were reached.
    pub(crate) edges: u64,
    /// libFuzzer's features: edges with how often they were reached, and values that were compared.
    pub(crate) features: u64,
    pub(crate) crash: Option<Crash>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Crash {
    /// The first lines of the panic, or libFuzzer's error.
    pub(crate) description: String,
    /// The file with the input; `None` if the target did not start.
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
        let find = |text: &str| output.lines().position(|line| line.contains(text));
        // A panic's message is more useful than the signal that follows it.
        let description = match (find("panicked at"), find("ERROR: libFuzzer")) {
            (Some(at), _) => output.lines().skip(at).take(4).collect::<Vec<_>>().join("\n"),
            (None, Some(at)) => output.lines().nth(at).unwrap_or_default().to_owned(),
            (None, None) => output.lines().last().unwrap_or("it wrote nothing to stderr").to_owned(),
        };
        let input = output.lines().find_map(|line| line.split_once("Test unit written to ").map(|(_, path)| path));
        Crash { description, input: input.map(str::to_owned) }
    }
}

/// Returns the number that follows `text`, or 0.
fn after(line: &str, text: &str) -> u64 {
    let digits = line.split_once(text).map(|(_, rest)| rest.split(|c: char| !c.is_ascii_digit()).next());
    digits.flatten().and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_complete_run_are_read() {
        let output = "INFO: Seed: 1\n#2\tINITED cov: 5 ft: 6 corp: 1/1b\n#812\tDONE   cov: 93 ft: 255 corp: 92/2177b\n\
                      Done 812 runs in 9 second(s)\nstat::number_of_executed_units: 812\n";
        let row = Row::read("json", output, true);
        assert_eq!(row, Row { target: "json".into(), runs: 812, edges: 93, features: 255, crash: None });
        assert!(row.line().starts_with("json ") && row.line().ends_with("0 crashes"), "{}", row.line());
    }

    #[test]
    fn a_crash_has_a_description_and_an_input() {
        let output = "#7\tNEW    cov: 9 ft: 9\nthread 'a' panicked at src/x.rs:1:1:\nleft is not right\n\
                      ==1== ERROR: libFuzzer: deadly signal\nartifact_prefix='c-'; Test unit written to c-crash-1\n";
        let row = Row::read("json", output, false);
        let crash = row.crash.unwrap();
        assert_eq!((row.runs, crash.input.as_deref()), (7, Some("c-crash-1")));
        let start = "thread 'a' panicked at src/x.rs:1:1:\nleft is not right";
        assert!(crash.description.starts_with(start), "{crash:?}");
    }

    #[test]
    fn a_target_that_did_not_start_is_a_crash_without_input() {
        for (output, description) in
            [("", "it wrote nothing"), ("a\n==1== ERROR: libFuzzer: timeout after 60\n", "timeout")]
        {
            let crash = Row::read("json", output, false).crash.unwrap();
            assert!(crash.description.contains(description) && crash.input.is_none(), "{crash:?}");
        }
    }
}
