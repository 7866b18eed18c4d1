//! The charts of a report.

use luc_report::show::document::{Chart, Line};

use super::{Shown, unique};
use crate::file;
use crate::points::Point;

impl Shown<'_> {
    pub(super) fn charts(&self, plot: &file::Plot) -> Vec<Chart> {
        let points = self.points(plot.block.get_ref(), &plot.fits);
        let of = |point: &Point<'_>| -> Vec<String> {
            plot.each
                .iter()
                .map(|factor| point.value(factor).to_owned())
                .collect()
        };
        let mut each: Vec<Vec<String>> = Vec::new();
        for point in &points {
            let key = of(point);
            if !each.contains(&key) {
                each.push(key);
            }
        }
        each.into_iter()
            .map(|key| {
                let here: Vec<&Point<'_>> =
                    points.iter().filter(|point| of(point) == key).collect();
                let x = unique(here.iter().map(|point| point.value(&plot.x)));
                let title = if key.is_empty() {
                    plot.title.clone()
                } else {
                    format!("{}, {}", plot.title, key.join(", "))
                };
                Chart {
                    title,
                    x_label: plot.x_label.clone().unwrap_or_else(|| plot.x.clone()),
                    y_label: plot.y_label.clone(),
                    lines: self.lines(plot, &here, &x),
                    x,
                }
            })
            .collect()
    }

    fn lines(&self, plot: &file::Plot, here: &[&Point<'_>], x: &[String]) -> Vec<Line> {
        let values = if plot.lines == "arm" {
            vec![String::new()]
        } else {
            unique(here.iter().map(|point| point.value(&plot.lines)))
        };
        let mut lines = Vec::new();
        for value in &values {
            for figure in &plot.figures {
                let at = |at: &String| {
                    let fits = |point: &&&Point<'_>| {
                        point.value(&plot.x) == at
                            && (value.is_empty() || point.value(&plot.lines) == value)
                    };
                    let point = here.iter().find(fits)?;
                    Some(self.figure(point, figure)?.mean)
                };
                let name = match (value.as_str(), plot.figures.len()) {
                    ("", _) => figure.arm.clone(),
                    (value, 1) => value.to_owned(),
                    (value, _) => format!("{value}, {}", figure.arm),
                };
                lines.push(Line {
                    name,
                    y: x.iter().map(at).collect(),
                });
            }
        }
        lines
    }
}
