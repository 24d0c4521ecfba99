//! A chart of the figures that have a target, for docs/performance.md. The length of a bar is
//! the figure relative to its target: shorter is better, and a bar that ends before
//! the line meets the target.

use crate::report::{Figure, Target};
use std::fmt::Write as _;

const ROW: usize = 26;
const LABELS: usize = 430;
/// The length of the bar of a figure that equals its target.
const FULL: f64 = 260.0;

pub(crate) fn svg(figures: &[Figure]) -> String {
    let rows: Vec<(&Figure, f64)> = figures.iter().filter_map(|figure| Some((figure, share(figure)?))).collect();
    let (width, height) = (LABELS + 460, rows.len() * ROW + 40);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (at, (figure, share)) in rows.iter().enumerate() {
        let (y, color) = (at * ROW + 10, if figure.is_met() { "#4a8f5c" } else { "#b5483a" });
        let (name, value, unit) = (escape(&figure.name), figure.value, figure.unit);
        let (length, text_x) = ((share * FULL).min(FULL * 1.5), LABELS as f64 + (share * FULL).min(FULL * 1.5) + 6.0);
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{LABELS}\" y=\"{y}\" width=\"{length:.1}\" height=\"{}\" fill=\"{color}\"/>\
             <text x=\"{text_x:.1}\" y=\"{}\">{value:.2} {unit}</text>",
            LABELS - 8,
            y + 14,
            ROW - 8,
            y + 14,
        );
    }
    let (x, end) = (LABELS as f64 + FULL, rows.len() * ROW + 10);
    let _ =
        writeln!(svg, "<line x1=\"{x}\" y1=\"4\" x2=\"{x}\" y2=\"{end}\" stroke=\"#333\" stroke-dasharray=\"4 3\"/>");
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{}\" text-anchor=\"middle\">target</text>\n</svg>", end + 18);
    svg
}

/// Returns the figure relative to its target; above 1 the target is missed.
fn share(figure: &Figure) -> Option<f64> {
    match figure.target {
        Target::AtMost(target) => Some(figure.value / target),
        Target::AtLeast(target) => Some(target / figure.value),
        Target::None => None,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
