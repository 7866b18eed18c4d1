//! The entries of a fileset, existing or missing, busy or idle, which many threads pick in turn
//! without a lock.
//!
//! Each entry is one atomic word; a separate bitmap tells which entries exist, so that the next one
//! is found fast. A rotor is the index after the entry that was found last. A thread takes an entry
//! by making it busy, which only one thread can do. As in Filebench, the rotor moves past the entry
//! that the search found, even if that one was busy and a later one was taken.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const EXISTS: u32 = 1;
const BUSY: u32 = 2;
/// One open of the entry: the count of opens lies above the flags.
const OPEN_ONE: u32 = 4;

/// The kind of entries that a pick looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    Existing,
    Missing,
}

/// The state of an entry that is no longer busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Becomes {
    /// The state it had before.
    Same,
    Existing,
    /// Missing, and not open.
    Missing,
}

/// The result of a pick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// This entry, which is now busy.
    Taken(u32),
    /// All entries of that kind are busy.
    Busy,
    /// There is no entry of that kind.
    None,
}

/// The entries of one kind (files, leaf directories) of a fileset.
pub struct Entries<W> {
    states: Vec<AtomicU32>,
    /// One bit per entry, set if it exists.
    exist: Vec<AtomicU64>,
    next_existing: AtomicU32,
    next_missing: AtomicU32,
    /// Threads wait here for a busy entry; whoever calls [`Self::release`] wakes them.
    pub idle: W,
}

impl<W: Default> Entries<W> {
    /// Makes `count` entries, none of which exists.
    pub fn new(count: usize) -> Self {
        Self {
            states: (0..count).map(|_| AtomicU32::new(0)).collect(),
            exist: (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            next_existing: AtomicU32::new(0),
            next_missing: AtomicU32::new(0),
            idle: W::default(),
        }
    }

    pub fn count(&self) -> usize {
        self.states.len()
    }

    /// Returns the rotor that all threads share.
    pub fn rotor(&self, want: Want) -> &AtomicU32 {
        match want {
            Want::Existing => &self.next_existing,
            Want::Missing => &self.next_missing,
        }
    }

    /// Takes the next entry from `rotor` on, in index order.
    pub fn pick_next(&self, want: Want, rotor: &AtomicU32) -> Pick {
        let mut from = rotor.load(Ordering::Relaxed);
        loop {
            let Some(found) = self.search(want, from) else {
                return Pick::None;
            };
            match rotor.compare_exchange_weak(from, found + 1, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return self.take_from(want, found),
                Err(now) => from = now,
            }
        }
    }

    /// Takes the entry at `index`, or the next one of that kind.
    pub fn pick_at(&self, want: Want, index: u32) -> Pick {
        match self.search(want, index) {
            Some(found) => self.take_from(want, found),
            None => Pick::None,
        }
    }

    /// Makes this entry busy; false if it already is.
    pub fn take(&self, index: u32) -> bool {
        let state = &self.states[index as usize];
        state.fetch_or(BUSY, Ordering::AcqRel) & BUSY == 0
    }

    /// Ends the busy state, which the caller owns; adds `opened` to the number of times the entry
    /// is open.
    pub fn release(&self, index: u32, becomes: Becomes, opened: i32) {
        let state = &self.states[index as usize];
        // No other thread changes a busy entry.
        let old = state.load(Ordering::Relaxed);
        let opens = match becomes {
            Becomes::Missing => 0,
            _ => (old / OPEN_ONE).saturating_add_signed(opened),
        };
        let exists = match becomes {
            Becomes::Same => old & EXISTS != 0,
            Becomes::Existing => true,
            Becomes::Missing => false,
        };
        let word = &self.exist[index as usize / 64];
        let bit = 1 << (index % 64);
        if exists && old & EXISTS == 0 {
            word.fetch_or(bit, Ordering::SeqCst);
        } else if !exists && old & EXISTS != 0 {
            word.fetch_and(!bit, Ordering::SeqCst);
        }
        state.swap(opens * OPEN_ONE + u32::from(exists), Ordering::SeqCst);
    }

    pub fn opens(&self, index: u32) -> u32 {
        self.states[index as usize].load(Ordering::Acquire) / OPEN_ONE
    }

    pub fn exists(&self, index: u32) -> bool {
        self.states[index as usize].load(Ordering::Acquire) & EXISTS != 0
    }

    /// Marks an entry as existing while no other thread uses the entries.
    pub fn set_existing(&self, index: u32) {
        self.states[index as usize].store(EXISTS, Ordering::Release);
        self.exist[index as usize / 64].fetch_or(1 << (index % 64), Ordering::Release);
    }

    /// Takes the first entry that is not busy, from `first` on and around the end.
    fn take_from(&self, want: Want, first: u32) -> Pick {
        let (first, count) = (first as usize, self.states.len());
        let mut found = false;
        for (from, to) in [(first, count), (0, first)] {
            let mut at = from;
            while let Some(index) = self.scan(want, at, to) {
                if self.take_if(want, index) {
                    return Pick::Taken(index);
                }
                found = true;
                at = index as usize + 1;
            }
        }
        if found { Pick::Busy } else { Pick::None }
    }

    fn take_if(&self, want: Want, index: u32) -> bool {
        let state = &self.states[index as usize];
        let old = state.load(Ordering::Acquire);
        let right = (old & EXISTS != 0) == (want == Want::Existing);
        right
            && old & BUSY == 0
            && state
                .compare_exchange(old, old | BUSY, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    /// Finds the first entry of that kind at or after `from`, else the first of all.
    fn search(&self, want: Want, from: u32) -> Option<u32> {
        let count = self.states.len();
        let from = from as usize;
        if from < count
            && let Some(found) = self.scan(want, from, count)
        {
            return Some(found);
        }
        self.scan(want, 0, from.min(count))
    }

    fn scan(&self, want: Want, from: usize, to: usize) -> Option<u32> {
        let mut word = from / 64;
        let mut mask = u64::MAX << (from % 64);
        while word * 64 < to {
            let bits = self.exist[word].load(Ordering::Acquire);
            let bits = mask & if want == Want::Existing { bits } else { !bits };
            if bits != 0 {
                let found = word * 64 + bits.trailing_zeros() as usize;
                // The number fits: a tree has fewer than 2^32 entries.
                return (found < to).then(|| u32::try_from(found).unwrap_or(u32::MAX));
            }
            mask = u64::MAX;
            word += 1;
        }
        None
    }
}
