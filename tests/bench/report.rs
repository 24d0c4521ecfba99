//! What was measured, against its bars: a table for people, and JSON.

use crate::rounds::{Series, ratio};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// How a figure is held to its bar.
#[derive(Clone, Copy)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
    /// Told, and not judged.
    None,
}

pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) bar: Bar,
}

#[derive(Default)]
pub(crate) struct Report {
    figures: Vec<Figure>,
    runs: Vec<Value>,
    curves: Vec<Curve>,
}

/// How long a call takes with more and more of something.
pub(crate) struct Curve {
    pub(crate) of: &'static str,
    pub(crate) points: Vec<(String, Duration)>,
}

impl Figure {
    pub(crate) fn is_met(&self) -> bool {
        match self.bar {
            Bar::AtMost(bar) => self.value <= bar,
            Bar::AtLeast(bar) => self.value >= bar,
            Bar::None => true,
        }
    }

    fn bar_text(&self) -> String {
        match self.bar {
            Bar::AtMost(bar) => format!("≤ {bar}"),
            Bar::AtLeast(bar) => format!("≥ {bar}"),
            Bar::None => String::new(),
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.bar, self.is_met()) {
            (Bar::None, _) => "",
            (_, true) => "met",
            (_, false) => "MISSED",
        }
    }
}

impl Report {
    pub(crate) fn figure(&mut self, what: impl Into<String>, value: f64, unit: &'static str, bar: Bar) {
        self.figures.push(Figure { what: what.into(), value, unit, bar });
    }

    /// The medians of two programs of the same rounds.
    pub(crate) fn ratio(&mut self, what: &str, of: &Series, to: &Series, bar: Bar) {
        self.figure(format!("{what}, by {}", to.name), ratio(of.median(), to.median()), "x", bar);
    }

    pub(crate) fn runs(&mut self, group: &str, all: &[Series]) {
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        self.runs.extend(all.iter().map(|series| {
            json!({
                "group": group, "program": series.name,
                "median_ms": milliseconds(series.median()), "min_ms": milliseconds(series.min()),
                "p95_ms": milliseconds(series.p95()), "cpu_ms": milliseconds(series.cpu()),
                "memory_kib": series.memory, "page_faults": series.page_faults(),
            })
        }));
    }

    pub(crate) fn curve(&mut self, of: &'static str, points: Vec<(String, Duration)>) {
        self.curves.push(Curve { of, points });
    }

    pub(crate) fn figures(&self) -> &[Figure] {
        &self.figures
    }

    pub(crate) fn missed(&self) -> usize {
        self.figures.iter().filter(|figure| !figure.is_met()).count()
    }

    /// In the README's own syntax.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from("| what | figure | bar | |\n|---|---:|---:|---|\n");
        for figure in &self.figures {
            let (value, unit, bar, verdict) = (figure.value, figure.unit, figure.bar_text(), figure.verdict());
            let _ = writeln!(text, "| {} | {value:.2} {unit} | {bar} | {verdict} |", figure.what);
        }
        text += "\n| program | median ms | min | p95 | CPU ms | memory MiB | page faults |\n|---|---:|---:|---:|---:|---:|---:|\n";
        for run in &self.runs {
            let number = |key: &str| run[key].as_f64().unwrap_or_default();
            let _ = writeln!(
                text,
                "| {}: {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {} |",
                run["group"].as_str().unwrap_or_default(),
                run["program"].as_str().unwrap_or_default(),
                number("median_ms"),
                number("min_ms"),
                number("p95_ms"),
                number("cpu_ms"),
                number("memory_kib") / 1024.0,
                run["page_faults"],
            );
        }
        for curve in &self.curves {
            let _ = write!(text, "\n{}:", curve.of);
            for (size, time) in &curve.points {
                let _ = write!(text, " {size} {:.2} ms;", time.as_secs_f64() * 1e3);
            }
            text.push('\n');
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        let figures = self.figures.iter().map(|figure| {
            json!({
                "what": figure.what, "value": figure.value, "unit": figure.unit,
                "bar": figure.bar_text(), "met": figure.is_met(),
            })
        });
        let curves = self.curves.iter().map(|curve| {
            let points = curve.points.iter().map(|(size, time)| json!([size, time.as_secs_f64() * 1e3]));
            json!({"of": curve.of, "points_ms": points.collect::<Vec<_>>()})
        });
        json!({"figures": figures.collect::<Vec<_>>(), "runs": self.runs, "curves": curves.collect::<Vec<_>>()})
    }
}
