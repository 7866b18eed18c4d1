//! Prometheus' text format, version 0.0.4.
//!
//! Not `OpenMetrics`: `node_exporter`'s textfile collector does not read that, while
//! a Prometheus scrape reads both.

use std::fmt::Write as _;

/// Media type of the pages that [`render`] makes.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// The current state.
    Gauge,
    /// Durations in buckets.
    Histogram,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

pub type Labels = Vec<(&'static str, String)>;

/// The value of one series of a metric.
#[derive(Clone, Debug)]
pub enum Value {
    Number(f64),
    /// Durations: upper bounds with cumulative counts, then the sum and the total count.
    Buckets(Vec<(f64, u64)>, f64, u64),
}

/// A metric with its series.
#[derive(Clone, Debug)]
pub struct Family {
    pub name: String,
    pub kind: Kind,
    pub help: String,
    pub series: Vec<(Labels, Value)>,
}

impl Family {
    pub fn new(
        name: impl Into<String>,
        kind: Kind,
        help: &str,
        series: impl IntoIterator<Item = (Labels, Value)>,
    ) -> Self {
        Family {
            name: name.into(),
            kind,
            help: help.into(),
            series: series.into_iter().collect(),
        }
    }
}

pub fn render(families: &[Family]) -> String {
    let mut page = String::new();
    // A metric without series would be noise.
    for family in families.iter().filter(|family| !family.series.is_empty()) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            page,
            "# HELP {} {}",
            family.name,
            escaped(&family.help, false)
        );
        let _ = writeln!(page, "# TYPE {} {}", family.name, family.kind.word());
        for (labels, value) in &family.series {
            series(&mut page, &family.name, labels, value);
        }
    }
    page
}

fn series(page: &mut String, name: &str, labels: &Labels, value: &Value) {
    let (buckets, sum, count) = match value {
        Value::Number(number) => return line(page, name, "", labels, None, *number),
        Value::Buckets(buckets, sum, count) => (buckets, sum, count),
    };
    for (bound, count) in buckets {
        let bound = Some(bound.to_string());
        line(
            page,
            name,
            "_bucket",
            labels,
            bound.as_deref(),
            *count as f64,
        );
    }
    line(page, name, "_bucket", labels, Some("+Inf"), *count as f64);
    line(page, name, "_sum", labels, None, *sum);
    line(page, name, "_count", labels, None, *count as f64);
}

fn line(
    page: &mut String,
    name: &str,
    suffix: &str,
    labels: &Labels,
    bound: Option<&str>,
    value: f64,
) {
    page.push_str(name);
    page.push_str(suffix);
    let labels = labels.iter().map(|(name, value)| (*name, value.as_str()));
    let shown: Vec<_> = labels
        .chain(bound.map(|bound| ("le", bound)))
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value, true)))
        .collect();
    if !shown.is_empty() {
        let _ = write!(page, "{{{}}}", shown.join(","));
    }
    let _ = writeln!(page, " {value}");
}

/// Escapes backslashes and newlines, and in label values also quotes.
fn escaped(text: &str, quotes: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => shown.push_str("\\\\"),
            '\n' => shown.push_str("\\n"),
            '"' if quotes => shown.push_str("\\\""),
            c => shown.push(c),
        }
    }
    shown
}
