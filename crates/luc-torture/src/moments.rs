//! Finds a moment that fits the names of every thread: one commit shows all names as of one moment.

use std::fmt;

/// A time in which a thread's names are right: after the mark that begins the last change in the
/// tree, and before the mark that follows the first change that is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    after: u64,
    before: u64,
}

impl Span {
    pub(crate) fn new(after: u64, before: Option<u64>) -> Self {
        Self {
            after,
            before: before.unwrap_or(u64::MAX),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "after mark {}", self.after)?;
        match self.before {
            u64::MAX => Ok(()),
            before => write!(f, " and before mark {before}"),
        }
    }
}

/// A thread and its spans.
type Of<'a> = (usize, &'a [Span]);

fn merged(spans: &[Span]) -> Vec<Span> {
    let mut merged: Vec<Span> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.after < last.before => last.before = last.before.max(span.before),
            _ => merged.push(*span),
        }
    }
    merged
}

/// `None` if one moment fits all threads; otherwise the moment that fits most, the latest on a tie,
/// and the threads that it does not fit. Each thread's spans are sorted by their start.
pub(crate) fn moments(threads: &[(usize, Vec<Span>)]) -> Option<(Span, Vec<Of<'_>>)> {
    let all: Vec<Vec<Span>> = threads.iter().map(|(_, spans)| merged(spans)).collect();
    // Spans are open: an end and a beginning at the same mark do not overlap, so ends sort first.
    let mut edges: Vec<(u64, bool)> = Vec::new();
    for span in all.iter().flatten() {
        edges.push((span.after, true));
        edges.push((span.before, false));
    }
    edges.sort_unstable();
    let (mut open, mut best, mut moment) = (0_usize, 0, Span::new(0, None));
    for (edge, (at, begins)) in edges.iter().enumerate() {
        if !begins {
            open -= 1;
            continue;
        }
        open += 1;
        if open >= best {
            best = open;
            let end = edges.get(edge + 1).map(|(at, _)| *at);
            moment = Span::new(*at, end);
        }
    }
    if best >= threads.len() {
        return None;
    }
    let suits = |spans: &[Span]| {
        let around = |span: &Span| span.after <= moment.after && moment.before <= span.before;
        spans.iter().any(around)
    };
    let late = threads.iter().zip(&all).filter(|(_, spans)| !suits(spans));
    let late = late.map(|((thread, spans), _)| (*thread, spans.as_slice()));
    Some((moment, late.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(after: u64, before: u64) -> Span {
        Span::new(after, Some(before))
    }

    #[test]
    fn a_common_moment_is_found_or_the_odd_thread_is_named() {
        let fine = [(1, vec![at(0, 5), at(4, 9)]), (2, vec![at(8, 20)])];
        assert_eq!(moments(&fine), None);
        let odd = [
            (1, vec![at(0, 5)]),
            (2, vec![at(8, 20)]),
            (3, vec![at(2, 4), at(9, 30)]),
        ];
        let (moment, late) = moments(&odd).expect("no common moment");
        assert_eq!(moment, at(9, 20));
        assert_eq!(late.len(), 1);
        assert_eq!(late[0].0, 1);
    }

    #[test]
    fn spans_that_only_touch_have_no_moment_in_common() {
        assert!(moments(&[(1, vec![at(0, 5)]), (2, vec![at(5, 9)])]).is_some());
        assert!(moments(&[(1, vec![at(0, 6)]), (2, vec![at(5, 9)])]).is_none());
    }

    #[test]
    fn no_thread_and_an_open_end_are_fine() {
        assert_eq!(moments(&[]), None);
        assert_eq!(moments(&[(0, vec![Span::new(0, None)])]), None);
    }
}
