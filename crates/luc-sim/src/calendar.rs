//! The events to come, by time.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Events in the order of their time; events at one time in the order in which they were entered.
#[derive(Debug)]
pub struct Calendar<E> {
    /// One entry outside the heap: the event entered last is often the next to happen (the end of a
    /// piece of work), and then the heap is not touched.
    first: Option<Entry<E>>,
    events: BinaryHeap<Reverse<Entry<E>>>,
    entered: u64,
    now_ns: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at_ns: u64,
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (u64, u64) {
        (self.at_ns, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<E> Calendar<E> {
    /// Creates an empty calendar at time 0.
    pub fn new() -> Self {
        Self {
            first: None,
            events: BinaryHeap::new(),
            entered: 0,
            now_ns: 0,
        }
    }

    /// Returns the time of the latest event that happened, ns.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Enters an event; an event in the past happens now.
    pub fn enter(&mut self, at_ns: u64, event: E) {
        let entry = Entry {
            at_ns: at_ns.max(self.now_ns),
            number: self.entered,
            event,
        };
        self.entered += 1;
        let later = match self.first.take() {
            Some(first) if first < entry => {
                self.first = Some(first);
                entry
            }
            first => {
                self.first = Some(entry);
                let Some(first) = first else { return };
                first
            }
        };
        self.events.push(Reverse(later));
    }

    /// Returns the next event and advances the time to it. `None` if no event is due before
    /// `end_ns`; the time then advances to `end_ns`.
    pub fn next(&mut self, end_ns: u64) -> Option<E> {
        let of_heap = self.events.peek().map(|Reverse(entry)| entry);
        let is_apart = match (&self.first, of_heap) {
            (Some(first), Some(other)) => first < other,
            (first, _) => first.is_some(),
        };
        let next = if is_apart {
            self.first.as_ref()
        } else {
            of_heap
        };
        if next.is_none_or(|entry| entry.at_ns >= end_ns) {
            self.now_ns = self.now_ns.max(end_ns);
            return None;
        }
        let entry = if is_apart {
            self.first.take()
        } else {
            self.events.pop().map(|Reverse(entry)| entry)
        }?;
        self.now_ns = entry.at_ns;
        Some(entry.event)
    }
}

impl<E> Default for Calendar<E> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Calendar;

    proptest! {
        #[test]
        fn time_never_goes_back(times in proptest::collection::vec(0_u64..50, 1..100)) {
            let mut calendar = Calendar::new();
            for (number, at_ns) in times.iter().enumerate() {
                calendar.enter(*at_ns, (*at_ns, number));
            }
            let mut came = Vec::new();
            while let Some(event) = calendar.next(u64::MAX) {
                prop_assert_eq!(calendar.now_ns(), event.0);
                came.push(event);
                // The first one lies in the past and comes at once; the others fall between later
                // events.
                match came.len() {
                    1 => calendar.enter(0, (event.0, usize::MAX)),
                    len if len % 3 == 0 && came.len() < 200 => {
                        calendar.enter(event.0 + 7, (event.0 + 7, usize::MAX));
                    }
                    _ => {}
                }
            }
            prop_assert!(came.len() > times.len());
            prop_assert!(came.is_sorted());
        }
    }

    #[test]
    fn the_end_is_reached_and_kept() {
        let mut calendar = Calendar::new();
        calendar.enter(7, 'a');
        assert_eq!(calendar.next(7), None);
        assert_eq!(calendar.now_ns(), 7);
        assert_eq!(calendar.next(8), Some('a'));
        assert_eq!(calendar.next(5), None);
        assert_eq!(calendar.now_ns(), 7);
    }
}
