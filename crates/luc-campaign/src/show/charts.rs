//! The charts of a report.

use luc_report::show::document::{Chart, Line, Spot};

use super::{Shown, grouped, unique};
use crate::figures::PointResults;
use crate::file;

impl Shown<'_> {
    pub(super) fn charts(&self, plot: &file::Plot) -> Vec<Chart> {
        let each = |it: &&PointResults<'_>| -> Vec<String> {
            let factors = plot.each.iter();
            factors
                .map(|factor| format!("{factor} {}", it.point.value(factor)))
                .collect()
        };
        let points = self.points(plot.block.get_ref(), &plot.fits);
        let chart = |(key, here): (Vec<String>, Vec<&PointResults<'_>>)| {
            let x = unique(here.iter().map(|it| it.point.value(&plot.x)));
            let title = std::iter::once(plot.title.clone()).chain(key);
            Chart {
                title: title.collect::<Vec<_>>().join(", "),
                x_label: plot.x_label.clone().unwrap_or_else(|| plot.x.clone()),
                y_label: plot.y_label.clone(),
                lines: self.lines_over(plot, &here, &x),
                x,
            }
        };
        grouped(points, each).into_iter().map(chart).collect()
    }

    fn lines_over(&self, plot: &file::Plot, here: &[&PointResults<'_>], x: &[String]) -> Vec<Line> {
        let values = if plot.lines == "arm" {
            vec![String::new()]
        } else {
            unique(here.iter().map(|it| it.point.value(&plot.lines)))
        };
        let mut lines = Vec::new();
        for value in &values {
            for figure in &plot.figures {
                let at = |at: &String| {
                    let fits = |it: &&&PointResults<'_>| {
                        it.point.value(&plot.x) == at
                            && (value.is_empty() || it.point.value(&plot.lines) == value)
                    };
                    let found = self.figure(here.iter().find(fits)?, figure)?;
                    Some(Spot {
                        y: found.mean,
                        ends: found.ends,
                    })
                };
                let name = match (value.as_str(), plot.figures.len()) {
                    ("", _) => figure.arm.clone(),
                    (value, 1) => value.to_owned(),
                    (value, _) => format!("{value}, {}", figure.arm),
                };
                lines.push(Line {
                    name,
                    spots: x.iter().map(at).collect(),
                });
            }
        }
        lines
    }
}
