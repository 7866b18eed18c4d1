//! Charts as SVG. Positions across are shares of the width, so that a chart is as wide as its page
//! while its text keeps the page's font; heights are pixels. Colours are CSS variables of the page.

use std::fmt::Write as _;

use super::document::{Chart, Spot};
use super::number;
use super::text::{axis, nice_top};

/// Colours of a light and of a dark page.
pub const LIGHT: &str = "--paper: #fff; --ink: #1c2024; --soft: #5b6470; --grid: #dfe3e8; \
    --good: #1a7f37; --bad: #c62828; --band: #f4f6f8; \
    --line0: #c2410c; --line1: #0b6bcb; --line2: #6d28d9; --line3: #0f766e; --line4: #a16207;";
pub const DARK: &str = "--paper: #15181c; --ink: #e6e8eb; --soft: #9aa4b0; --grid: #333a42; \
    --good: #5cc879; --bad: #ff7b72; --band: #1d2127; \
    --line0: #ff9d5c; --line1: #6cb6ff; --line2: #c4a7ff; --line3: #5fd3c4; --line4: #e3b341;";
/// Number of colours of lines.
const COLOURS: usize = 5;

/// Heights of the whole drawing, above its field and of its field, pixels.
const HEIGHT: f64 = 330.0;
const ABOVE: f64 = 60.0;
const FIELD: f64 = 220.0;
/// Positions of the first and last value, percent of the width; the axis's labels come before.
const ACROSS: (f64, f64) = (12.0, 97.0);
/// Width of a drawing in a file of its own, pixels.
const FILE_WIDTH: u32 = 760;
/// How far intervals at one position stand apart, pixels.
const APART: f64 = 5.0;

/// A chart for the page, which shows its title.
pub fn render(chart: &Chart) -> String {
    drawing(chart, &chart.y_label, "width=\"100%\"", "")
}

/// A chart as a file of its own, with these colours.
pub fn file(chart: &Chart, colours: &str) -> String {
    let size = format!("xmlns=\"http://www.w3.org/2000/svg\" width=\"{FILE_WIDTH}\"");
    let style = format!(
        "<style>:root {{ {colours} font: 14px system-ui, sans-serif; fill: var(--ink); }}\
         </style>\n"
    );
    let heading = format!("{}: {}", chart.title, chart.y_label);
    drawing(chart, &heading, &size, &style)
}

fn drawing(chart: &Chart, heading: &str, size: &str, style: &str) -> String {
    let top = nice_top(chart.highest());
    let y = |value: f64| ABOVE + FIELD * (1.0 - (value / top).clamp(0.0, 1.0));
    let last = chart.x.len().saturating_sub(1).max(1) as f64;
    let x = |position: usize| {
        let share = position as f64 / last;
        format!("{:.2}%", ACROSS.0 + (ACROSS.1 - ACROSS.0) * share)
    };
    let soft = "fill=\"var(--soft)\"";
    // Writing to a String cannot fail, here and below.
    let mut out = format!(
        "<svg {size} height=\"{HEIGHT}\" role=\"img\" aria-label=\"{}\">\n{style}\
         <text y=\"16\" {soft}>{}</text>\n<text y=\"38\">",
        escape(&chart.title),
        escape(heading)
    );
    for (index, line) in chart.lines.iter().enumerate() {
        let (colour, name) = (index % COLOURS, escape(&line.name));
        let _ = write!(
            out,
            "<tspan fill=\"var(--line{colour})\">\u{25cf} {name}\u{2003}</tspan>"
        );
    }
    out.push_str("</text>\n");
    for step in ticks(top) {
        let height = y(step);
        let _ = writeln!(
            out,
            "<line x2=\"100%\" y1=\"{height}\" y2=\"{height}\" stroke=\"var(--grid)\"/>\
             <text y=\"{}\" {soft}>{}</text>",
            height - 4.0,
            axis(step)
        );
    }
    for (position, name) in chart.x.iter().enumerate() {
        let _ = writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            x(position),
            ABOVE + FIELD + 20.0,
            escape(name)
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"50%\" y=\"{}\" text-anchor=\"middle\" {soft}>{}</text>",
        ABOVE + FIELD + 42.0,
        escape(&chart.x_label)
    );
    let spots = || {
        chart
            .lines
            .iter()
            .flat_map(|line| line.spots.iter().flatten())
    };
    let has_intervals = spots().any(|spot| spot.ends.is_some());
    for (index, line) in chart.lines.iter().enumerate() {
        let aside = index as f64 - (chart.lines.len() - 1) as f64 / 2.0;
        let aside = if has_intervals { aside * APART } else { 0.0 };
        let _ = writeln!(
            out,
            "<g transform=\"translate({aside})\" style=\"--line: var(--line{})\" \
             fill=\"var(--line)\" stroke=\"var(--line)\">",
            index % COLOURS
        );
        for (position, pair) in line.spots.windows(2).enumerate() {
            if let [Some(from), Some(to)] = pair {
                let (x1, x2) = (x(position), x(position + 1));
                let (y1, y2) = (y(from.y), y(to.y));
                let _ = writeln!(
                    out,
                    "<line x1=\"{x1}\" y1=\"{y1:.1}\" x2=\"{x2}\" y2=\"{y2:.1}\" \
                     stroke-width=\"2\"/>"
                );
            }
        }
        for (position, spot) in line.spots.iter().enumerate() {
            if let Some(Spot { y: value, ends }) = spot {
                let height = y(*value);
                let mut title = format!("{}: {}", line.name, number::three(*value));
                let mut bar = String::new();
                if let Some((low, high)) = ends {
                    let (from, to) = (y(*high) - height, y(*low) - height);
                    bar = format!("<path d=\"M-4 {from:.1}h8m-4 0V{to:.1}m-4 0h8\"/>");
                    let (low, high) = (number::three(*low), number::three(*high));
                    let _ = write!(title, " ({low} to {high})");
                }
                let _ = writeln!(
                    out,
                    "<svg x=\"{}\" y=\"{height:.1}\" overflow=\"visible\"><title>{}</title>\
                     <circle r=\"4\"/>{bar}</svg>",
                    x(position),
                    escape(&title)
                );
            }
        }
        out.push_str("</g>\n");
    }
    out + "</svg>"
}

/// Round values from 0 to the end of the axis, three to six steps apart.
fn ticks(top: f64) -> impl Iterator<Item = f64> {
    let is_round = |steps: &u32| {
        let step = top / f64::from(*steps);
        let digit = step / 10_f64.powf((step * 1.0001).log10().floor());
        [1.0, 2.0, 5.0]
            .iter()
            .any(|round| (digit - round).abs() < 0.01)
    };
    let steps = [5, 4, 3, 6].into_iter().find(is_round).unwrap_or(4);
    (0..=steps).map(move |step| top * f64::from(step) / f64::from(steps))
}

/// Escapes a text for a page or a drawing.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
