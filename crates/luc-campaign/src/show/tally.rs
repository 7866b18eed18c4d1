//! Counts figures that keep their bounds.

use luc_report::show::document::{Entry, Tone};

use crate::file::Bound;
use luc_stats::Interval;

/// How many figures reached their bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub reached: usize,
    pub missed: usize,
    /// Figures whose mean misses the bound, but whose interval contains it.
    pub open: usize,
}

impl Tally {
    /// The counts as a sentence; empty if nothing was judged.
    pub fn sentence(self) -> String {
        let Self {
            reached,
            missed,
            open,
        } = self;
        match (reached + missed + open, missed + open) {
            (0, _) => String::new(),
            (all, 0) => format!("All {all} figures reached their bounds."),
            (all, _) if open == 0 => {
                format!("{reached} of {all} figures reached their bounds; missed: {missed}.")
            }
            (all, _) => format!(
                "{reached} of {all} figures reached their bounds; missed: {missed}; open because \
                 the intervals are wide: {open}."
            ),
        }
    }
}

/// Judges whether the mean keeps its bound. If it does not but its interval contains the bound, the
/// figure is open: more repeats would tell.
pub(super) fn judged(bound: Bound, figure: Option<Interval>, tally: &mut Tally) -> Entry {
    let (Some(figure), true) = (figure, bound != Bound::default()) else {
        return Entry::none();
    };
    let (low, high) = figure.ends.unwrap_or((figure.mean, figure.mean));
    let keeps = |low: f64, high: f64| {
        bound.at_least.is_none_or(|least| high >= least)
            && bound.at_most.is_none_or(|most| low <= most)
    };
    if keeps(figure.mean, figure.mean) {
        tally.reached += 1;
        Entry::toned("reached", Tone::Good)
    } else if keeps(low, high) {
        tally.open += 1;
        Entry::new("open")
    } else {
        tally.missed += 1;
        Entry::toned("MISSED", Tone::Bad)
    }
}
