//! Charts as SVG that follows the page's colours.
//!
//! The plotting library knows only fixed colours. Each part of a chart gets a colour of its own
//! that nothing else uses, and in the finished drawing these stand-ins become CSS variables, so
//! that one drawing serves a light and a dark page.

use std::error::Error;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::document::Chart;
use super::text::{axis, nice_top};
use crate::error::{ReportError, Result};

/// Size of a drawing, pixels: that of a phone's screen, where it is not scaled and its text can be
/// read; a larger screen scales it up.
const SIZE: (u32, u32) = (380, 260);
/// Room for the values beside the vertical axis, pixels.
const VALUES_WIDTH: u32 = 54;
const MARGIN: u32 = 6;
/// Size of the text as the library counts it; 13 pixels.
const TEXT: u32 = 16;
/// Width of a character of a name at the size of the text, pixels.
const CHARACTER_WIDTH: f64 = 7.5;
/// Least distance between two names at the lines' ends, pixels.
const NAME_GAP: i32 = 16;

const INK: RGBColor = RGBColor(1, 1, 1);
const GRID: RGBColor = RGBColor(2, 2, 2);
const LINES: [RGBColor; 5] = [
    RGBColor(3, 0, 0),
    RGBColor(3, 0, 1),
    RGBColor(3, 0, 2),
    RGBColor(3, 0, 3),
    RGBColor(3, 0, 4),
];

/// Draws a chart; its colours are the CSS variables `--ink`, `--grid` and `--line0` to `--line4`.
///
/// # Errors
/// When the drawing library fails.
pub fn render(chart: &Chart) -> Result<String> {
    let mut svg = String::new();
    draw(chart, &mut svg).map_err(|why| ReportError::Chart {
        title: chart.title.clone(),
        why: why.to_string(),
    })?;
    Ok(themed(svg))
}

fn themed(mut svg: String) -> String {
    let lines = LINES
        .iter()
        .enumerate()
        .map(|(i, c)| (c, format!("var(--line{i})")));
    let parts = [
        (&INK, "var(--ink)".to_owned()),
        (&GRID, "var(--grid)".to_owned()),
    ];
    for (RGBColor(r, g, b), variable) in parts.into_iter().chain(lines) {
        svg = svg.replace(&format!("#{r:02X}{g:02X}{b:02X}"), &variable);
    }
    // A view box instead of a size lets the page scale it.
    let (width, height) = SIZE;
    svg.replacen(
        &format!("width=\"{width}\" height=\"{height}\" "),
        "role=\"img\" ",
        1,
    )
}

/// Room to the left of the first position, in positions.
const BEFORE: f64 = 0.2;

/// Room for the longest name to the right of the last position, in positions.
fn name_room(chart: &Chart) -> f64 {
    let longest = chart.lines.iter().map(|line| line.name.chars().count());
    // The names start a circle's width after the last circle.
    let needed = (longest.max().unwrap_or(0) as f64 + 2.0) * CHARACTER_WIDTH;
    let width = f64::from(SIZE.0 - 2 * MARGIN - VALUES_WIDTH);
    let positions = chart.x.len().saturating_sub(1) as f64 + BEFORE;
    // A long name may not take more than half of the field.
    let needed = needed.min(width / 2.0);
    needed * positions / (width - needed)
}

fn draw(chart: &Chart, svg: &mut String) -> std::result::Result<(), Box<dyn Error>> {
    let positions = chart.x.len();
    let top = nice_top(chart.y_max());
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let font = || ("sans-serif", TEXT).into_font();
    let text = font().color(&INK);
    let mut builder = ChartBuilder::on(&root);
    builder
        .margin(MARGIN)
        .x_label_area_size(40)
        .y_label_area_size(VALUES_WIDTH);
    let last = positions.saturating_sub(1) as f64;
    let mut area = builder.build_cartesian_2d(-BEFORE..last + name_room(chart), 0.0..top)?;
    area.configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(INK)
        .y_labels(6)
        .y_label_formatter(&|value| axis(*value))
        .y_desc(&chart.y_label)
        .x_desc(&chart.x_label)
        .x_labels(0)
        .label_style(text.clone())
        .axis_desc_style(text.clone())
        .draw()?;
    let below = text.pos(Pos::new(HPos::Center, VPos::Top));
    area.draw_series(chart.x.iter().enumerate().map(|(position, name)| {
        EmptyElement::at((position as f64, 0.0)) + Text::new(name.clone(), (0, 6), below.clone())
    }))?;

    let colours = || chart.lines.iter().zip(LINES.iter().cycle());
    for (line, colour) in colours() {
        let points = || {
            let known = line.y.iter().enumerate();
            known.filter_map(|(position, y)| y.map(|y| (position as f64, y)))
        };
        area.draw_series(LineSeries::new(points(), colour.stroke_width(2)))?;
        area.draw_series(points().map(|point| Circle::new(point, 4, colour.filled())))?;
    }
    // Names at the ends of the lines, pushed apart from top to bottom where they would overlap.
    let mut names: Vec<(i32, &str, &RGBColor)> = colours()
        .filter_map(|(line, colour)| {
            let position = line.y.iter().rposition(Option::is_some)?;
            let y = line.y[position]?;
            let (_, pixel) = area.backend_coord(&(position as f64, y));
            Some((pixel, line.name.as_str(), colour))
        })
        .collect();
    names.sort_by_key(|name| name.0);
    for index in 1..names.len() {
        names[index].0 = names[index].0.max(names[index - 1].0 + NAME_GAP);
    }
    let (x, _) = area.backend_coord(&(last, 0.0));
    for (y, name, colour) in names {
        let style = font().color(colour);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(name, (x + 10, y), style))?;
    }
    Ok(root.present()?)
}
