//! The figures and their targets, as a table for users and as JSON.

use crate::rounds::{Series, ratio};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// The value that a figure should reach.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// The figure is only reported.
    None,
}

pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) target: Target,
}

#[derive(Default)]
pub(crate) struct Report {
    figures: Vec<Figure>,
    runs: Vec<Value>,
    curves: Vec<Curve>,
    tables: Vec<Table>,
}

/// Details that are more than one figure. Each row has a value for each column.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Value>>,
}

/// The time of a call as the size of something grows.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    pub(crate) points: Vec<(String, Duration)>,
}

impl Figure {
    pub(crate) fn is_met(&self) -> bool {
        match self.target {
            Target::AtMost(target) => self.value <= target,
            Target::AtLeast(target) => self.value >= target,
            Target::None => true,
        }
    }

    fn target_text(&self) -> String {
        match self.target {
            Target::AtMost(target) => format!("≤ {target}"),
            Target::AtLeast(target) => format!("≥ {target}"),
            Target::None => String::new(),
        }
    }

    fn verdict(&self) -> &'static str {
        match (self.target, self.is_met()) {
            (Target::None, _) => "",
            (_, true) => "met",
            (_, false) => "MISSED",
        }
    }
}

impl Report {
    pub(crate) fn figure(&mut self, name: impl Into<String>, value: f64, unit: &'static str, target: Target) {
        self.figures.push(Figure { name: name.into(), value, unit, target });
    }

    /// Adds the ratio of the medians of two programs.
    pub(crate) fn ratio(&mut self, name: &str, of: &Series, to: &Series, target: Target) {
        self.figure(format!("{name} vs. {}", to.name), ratio(of.median(), to.median()), "x", target);
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

    pub(crate) fn curve(&mut self, name: &'static str, points: Vec<(String, Duration)>) {
        self.curves.push(Curve { name, points });
    }

    pub(crate) fn table(&mut self, table: Table) {
        self.tables.push(table);
    }

    pub(crate) fn figures(&self) -> &[Figure] {
        &self.figures
    }

    pub(crate) fn missed(&self) -> usize {
        self.figures.iter().filter(|figure| !figure.is_met()).count()
    }

    /// Returns the report as Markdown tables.
    pub(crate) fn text(&self) -> String {
        let mut text = String::from("| measurement | value | target | result |\n|---|---:|---:|---|\n");
        for figure in &self.figures {
            let (value, unit, target, verdict) = (figure.value, figure.unit, figure.target_text(), figure.verdict());
            let _ = writeln!(text, "| {} | {value:.2} {unit} | {target} | {verdict} |", figure.name);
        }
        if !self.runs.is_empty() {
            text += "\n| program | median ms | min | p95 | CPU ms | memory MiB | page faults |\n|---|---:|---:|---:|---:|---:|---:|\n";
        }
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
            let _ = write!(text, "\n{}:", curve.name);
            for (size, time) in &curve.points {
                let _ = write!(text, " {size} {:.2} ms;", time.as_secs_f64() * 1e3);
            }
            text.push('\n');
        }
        text + &self.tables.iter().map(Table::text).collect::<String>()
    }

    pub(crate) fn json(&self) -> Value {
        let figures = self.figures.iter().map(|figure| {
            json!({
                "name": figure.name, "value": figure.value, "unit": figure.unit,
                "target": figure.target_text(), "met": figure.is_met(),
            })
        });
        let curves = self.curves.iter().map(|curve| {
            let points = curve.points.iter().map(|(size, time)| json!([size, time.as_secs_f64() * 1e3]));
            json!({"name": curve.name, "points_ms": points.collect::<Vec<_>>()})
        });
        json!({
            "figures": figures.collect::<Vec<_>>(), "runs": self.runs, "curves": curves.collect::<Vec<_>>(),
            "tables": self.tables.iter().map(Table::json).collect::<Vec<_>>(),
        })
    }
}

impl Table {
    fn text(&self) -> String {
        let mut text = format!("\n{}:\n\n| {} |\n|---", self.name, self.columns.join(" | "));
        text += &"|---:".repeat(self.columns.len() - 1);
        text += "|\n";
        for row in &self.rows {
            let cells: Vec<String> =
                row.iter().map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned)).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
        text
    }

    fn json(&self) -> Value {
        let row = |row: &Vec<Value>| {
            let cells = self.columns.iter().zip(row).map(|(column, cell)| ((*column).to_owned(), cell.clone()));
            Value::Object(cells.collect())
        };
        json!({"name": self.name, "rows": self.rows.iter().map(row).collect::<Vec<_>>()})
    }
}
