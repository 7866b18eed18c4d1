//! The ring of spans as mapped memory: `spans` and `ring` in `bpf/maps.h`.

use crate::error::TracerError;
use luc_trace::SPAN_BYTES;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::cell::Cell;
use std::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

/// Offsets in `struct luc_ring`, bytes.
const HEAD: usize = 0;
const TAIL: usize = 64;
const CONTROL_BYTES: usize = 72;
/// Offset of a span's end, bytes. The span is not whole while its end is 0.
const END: usize = 8;
/// Most spans handed out at once; then their places are free again.
const AT_ONCE: u64 = 2048;

/// Number of places in a ring of at least this many KiB.
pub(crate) fn places(kib: u32) -> u32 {
    let places = u64::from(kib.clamp(4, 1 << 20)) * 1024 / SPAN_BYTES as u64;
    // At most 2^20 KiB of spans: their number fits 32 bits.
    u32::try_from(places.next_power_of_two()).unwrap_or(1 << 24)
}

/// A map's memory.
struct Memory {
    at: NonNull<c_void>,
    bytes: usize,
}

impl Memory {
    fn map(map: BorrowedFd<'_>, bytes: usize) -> Result<Self, TracerError> {
        let (may, how) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses the address, so no other memory is replaced.
        let at = unsafe { mmap(null_mut(), bytes, may, how, map, 0) };
        let at = at.ok().and_then(NonNull::new);
        let at = at.ok_or_else(|| TracerError::Read {
            what: "spans",
            why: "the ring cannot be mapped".to_owned(),
        })?;
        Ok(Self { at, bytes })
    }

    /// A word that the programs may write at the same time.
    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.bytes);
        // SAFETY: it lies within the memory, aligned, and is only ever used as an atomic.
        unsafe { self.at.cast::<AtomicU64>().byte_add(offset).as_ref() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and no reference into it outlives `self`.
        let _ = unsafe { munmap(self.at.as_ptr(), self.bytes) };
    }
}

/// The reader's side.
pub(crate) struct Ring {
    control: Memory,
    spans: Memory,
    places: u64,
    /// Spans skipped because no program finished them.
    given_up: Cell<u64>,
    was_full: Cell<bool>,
}

impl Ring {
    /// `places` is a power of two.
    pub(crate) fn new(
        control: BorrowedFd<'_>,
        spans: BorrowedFd<'_>,
        places: u32,
    ) -> Result<Self, TracerError> {
        let control = Memory::map(control, CONTROL_BYTES)?;
        let spans = Memory::map(spans, places as usize * SPAN_BYTES)?;
        Ok(Self {
            control,
            spans,
            places: u64::from(places),
            given_up: Cell::new(0),
            was_full: Cell::new(false),
        })
    }

    /// Hands out spans in order, several at a time, up to the first that is not whole.
    pub(crate) fn take(&self, mut each: impl FnMut(&[[u8; SPAN_BYTES]])) {
        let tail_word = self.control.word(TAIL);
        let head = self.control.word(HEAD).load(Ordering::Acquire);
        let mut tail = tail_word.load(Ordering::Relaxed);
        if head - tail >= self.places {
            self.was_full.set(true);
        }
        while tail != head {
            let first = tail % self.places;
            let most = (head - tail).min(self.places - first).min(AT_ONCE);
            let whole = |place: &u64| self.end(first + place).load(Ordering::Acquire) != 0;
            let count = (0..most).take_while(whole).count();
            if count == 0 {
                break;
            }
            each(self.whole(first, count));
            for place in first..first + count as u64 {
                self.end(place).store(0, Ordering::Relaxed);
            }
            tail += count as u64;
            tail_word.store(tail, Ordering::Release);
        }
    }

    /// Skips the next span, which no program will finish; false if there is none.
    pub(crate) fn give_up_one(&self) -> bool {
        let tail_word = self.control.word(TAIL);
        let tail = tail_word.load(Ordering::Relaxed);
        if tail == self.control.word(HEAD).load(Ordering::Acquire) {
            return false;
        }
        self.given_up.set(self.given_up.get() + 1);
        tail_word.store(tail + 1, Ordering::Release);
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        let at = |word| self.control.word(word).load(Ordering::Acquire);
        at(HEAD) == at(TAIL)
    }

    /// Number of skipped spans.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.get()
    }

    /// Whether the reader ever found the ring full. Only the reader makes room.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full.get()
    }

    fn end(&self, place: u64) -> &AtomicU64 {
        self.spans.word(offset(place) + END)
    }

    /// `count` whole spans from this place on.
    fn whole(&self, first: u64, count: usize) -> &[[u8; SPAN_BYTES]] {
        assert!(first + count as u64 <= self.places);
        // SAFETY: they lie within the memory. The programs write to no span that is whole
        // until `tail` has passed it, and `take` moves that only after the last use.
        unsafe {
            let first = self.spans.at.byte_add(offset(first));
            std::slice::from_raw_parts(first.cast().as_ptr(), count)
        }
    }
}

/// Where a place begins, bytes; the number of places fits 32 bits.
fn offset(place: u64) -> usize {
    usize::try_from(place).unwrap_or(usize::MAX / SPAN_BYTES) * SPAN_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd as _;

    const PLACES: u32 = 8;

    fn ring() -> Ring {
        let file = |bytes| {
            let file = tempfile::tempfile().unwrap();
            file.set_len(bytes).unwrap();
            file
        };
        let (control, spans) = (file(4096), file(4096));
        Ring::new(control.as_fd(), spans.as_fd(), PLACES).unwrap()
    }

    /// Like `begin_span()`.
    fn begin(ring: &Ring) -> Option<u64> {
        let head = ring.control.word(HEAD);
        let at = head.load(Ordering::Relaxed);
        let tail = ring.control.word(TAIL).load(Ordering::Relaxed);
        (at - tail < ring.places).then(|| {
            head.store(at + 1, Ordering::Relaxed);
            at
        })
    }

    fn end(ring: &Ring, at: u64) {
        let place = at % ring.places;
        ring.spans.word(offset(place)).store(at, Ordering::Relaxed);
        ring.end(place).store(at + 1, Ordering::Release);
    }

    fn taken(ring: &Ring) -> Vec<u64> {
        let mut list = Vec::new();
        ring.take(|spans| {
            let begins = spans.iter().map(|span| span.first_chunk().unwrap());
            list.extend(begins.map(|bytes| u64::from_ne_bytes(*bytes)));
        });
        list
    }

    #[test]
    fn spans_come_once_and_in_order_round_and_round() {
        let ring = ring();
        let mut next = 0;
        for some in [0, 3, 8, 1, 7, 8, 5] {
            let begun: Vec<u64> = (0..some).map(|_| begin(&ring).unwrap()).collect();
            for at in begun.iter().rev() {
                end(&ring, *at);
            }
            assert_eq!(taken(&ring), (next..next + some).collect::<Vec<_>>());
            assert!(ring.is_empty() && taken(&ring).is_empty());
            next += some;
        }
    }

    #[test]
    fn a_full_ring_takes_no_more_until_it_was_read() {
        let ring = ring();
        let begun: Vec<u64> = (0..8).map(|_| begin(&ring).unwrap()).collect();
        assert_eq!(begin(&ring), None);
        for at in &begun {
            end(&ring, *at);
        }
        assert_eq!(begin(&ring), None);
        assert!(!ring.was_full(), "the reader has not looked");
        assert_eq!(taken(&ring).len(), 8);
        assert!(ring.was_full());
        assert_eq!(begin(&ring), Some(8));
    }

    #[test]
    fn an_unfinished_span_holds_up_later_ones_until_it_is_skipped() {
        let ring = ring();
        let [a, b, c] = [(); 3].map(|()| begin(&ring).unwrap());
        end(&ring, a);
        end(&ring, c);
        assert_eq!(taken(&ring), [a]);
        assert!(!ring.is_empty());
        end(&ring, b);
        assert_eq!(taken(&ring), [b, c]);
        let _never = begin(&ring).unwrap();
        let last = begin(&ring).unwrap();
        end(&ring, last);
        assert!(taken(&ring).is_empty());
        assert!(ring.give_up_one());
        assert_eq!(taken(&ring), [last]);
        assert!(!ring.give_up_one());
        assert_eq!(ring.given_up(), 1);
    }

    #[test]
    fn sizes_are_powers_of_two_and_at_least_what_was_asked_for() {
        assert_eq!(places(0), 64);
        assert_eq!(places(16), 256);
        assert_eq!(places(16 * 1024), 1 << 18);
        assert_eq!(places(u32::MAX), 1 << 24);
    }

    #[test]
    fn the_words_lie_where_the_programs_have_them() {
        let header = include_str!("../../../abi/luc_tracer.h");
        let words = ["luc_u64 head;", "luc_u64 apart[7];", "luc_u64 tail;"];
        let at = words.map(|word| header.find(word).unwrap());
        assert!(at.is_sorted());
        assert!(
            include_str!("../../../abi/luc_span.h")
                .contains("luc_u64 begin_ns;\n\tluc_u64 end_ns;")
        );
        assert_eq!((HEAD, TAIL, CONTROL_BYTES), (0, 8 * 8, 9 * 8));
    }
}
