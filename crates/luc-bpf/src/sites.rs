//! Calls inside functions, at which tasks go to sleep.
//!
//! A hook on a function that puts tasks to sleep runs for every task of the machine that sleeps on
//! anything; a kprobe on the one call that matters does not. Where that call lies depends on the
//! kernel's build, so it is looked for in the text of the functions that may hold it.

use crate::hooks::Wait;

/// Where a function lies in the kernel's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub address: u64,
    /// Bytes up to the next function.
    pub bytes: u64,
}

/// A kind of wait and the calls at which it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    pub wait: Wait,
    /// Functions that may hold the calls; the compiler inlines some into others.
    pub inside: &'static [&'static str],
    /// One of these is called when a wait begins.
    pub begin: &'static [&'static str],
    /// The program at that call.
    pub at_begin: &'static str,
    /// One of these is called when a wait ends. If it is `begin`, the wait ends when that returns.
    pub end: &'static [&'static str],
    /// The program at the end.
    pub at_end: &'static str,
}

pub const SITES: [Site; 2] = [
    Site {
        wait: Wait::Buffer,
        inside: &["do_get_write_access"],
        begin: &["out_of_line_wait_on_bit"],
        at_begin: "call_buffer",
        end: &["out_of_line_wait_on_bit"],
        at_end: "called_buffer",
    },
    Site {
        wait: Wait::Locked,
        inside: &[
            "wait_transaction_locked",
            "wait_transaction_switching",
            "start_this_handle",
        ],
        begin: &["prepare_to_wait", "prepare_to_wait_exclusive"],
        at_begin: "call_locked",
        end: &["finish_wait"],
        at_end: "called_locked",
    },
];

/// Opcode of a call to an address relative to the next instruction (x86-64).
const CALL: u8 = 0xe8;
/// Replaces the opcode while another kprobe is on the call; the address after it stays. The kernel
/// never turns a probed call into a jump.
const BREAKPOINT: u8 = 0xcc;
const CALL_BYTES: usize = 5;

/// A place for a kprobe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub function: &'static str,
    /// From the start of the function, bytes.
    pub offset: u64,
}

impl Site {
    /// All functions that must be known to find the calls.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let lists = [self.inside, self.begin, self.end];
        lists.into_iter().flatten().copied()
    }

    /// Where waits begin and where they end; `None` unless both are found. `extent` tells where a
    /// function lies, `text` returns its bytes.
    pub fn places(
        &self,
        extent: &dyn Fn(&str) -> Option<Extent>,
        text: &dyn Fn(Extent) -> Option<Vec<u8>>,
    ) -> Option<(Vec<Place>, Vec<Place>)> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        let targets = |names: &[&'static str]| -> Vec<u64> {
            let found = names.iter().filter_map(|name| extent(name));
            found.map(|extent| extent.address).collect()
        };
        let (begins, ends) = (targets(self.begin), targets(self.end));
        let (mut at_begin, mut at_end) = (Vec::new(), Vec::new());
        let behind = if self.begin == self.end {
            CALL_BYTES
        } else {
            0
        };
        for &function in self.inside {
            let Some(place) = extent(function) else {
                continue;
            };
            let bytes = text(place)?;
            let put = |list: &mut Vec<Place>, targets: &[u64], behind: usize| {
                for offset in calls(&bytes, place.address, targets) {
                    let offset = (offset + behind) as u64;
                    list.push(Place { function, offset });
                }
            };
            put(&mut at_begin, &begins, 0);
            put(&mut at_end, &ends, behind);
        }
        (!at_begin.is_empty() && !at_end.is_empty()).then_some((at_begin, at_end))
    }
}

/// Offsets of calls to one of these addresses in text that begins at `address`.
///
/// Looks at every byte, not at every instruction: five bytes hardly form such a call by chance, and
/// the kernel refuses kprobes inside an instruction.
fn calls(text: &[u8], address: u64, targets: &[u64]) -> Vec<usize> {
    let target = |(offset, bytes): (usize, &[u8])| {
        let (&(CALL | BREAKPOINT), relative) = bytes.split_first()? else {
            return None;
        };
        let relative = i32::from_le_bytes(relative.try_into().ok()?);
        let next = address.wrapping_add((offset + CALL_BYTES) as u64);
        let target = next.wrapping_add_signed(i64::from(relative));
        targets.contains(&target).then_some(offset)
    };
    let windows = text.windows(CALL_BYTES).enumerate();
    windows.filter_map(target).collect()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    const BEGIN: u64 = 0xffff_ffff_8100_0000;
    const WAIT_ON_BIT: u64 = 0xffff_ffff_8100_4000;

    fn call(text: &mut Vec<u8>, target: u64) {
        let next = BEGIN + text.len() as u64 + CALL_BYTES as u64;
        let relative = i32::try_from(target.cast_signed() - next.cast_signed()).unwrap();
        text.push(CALL);
        text.extend(relative.to_le_bytes());
    }

    fn extent(name: &str) -> Option<Extent> {
        let address = match name {
            "do_get_write_access" => BEGIN,
            "out_of_line_wait_on_bit" => WAIT_ON_BIT,
            // Lies before its caller.
            "prepare_to_wait" => BEGIN - 0x800,
            _ => return None,
        };
        Some(Extent {
            address,
            bytes: 0x100,
        })
    }

    #[test]
    fn calls_are_found_by_what_they_call() {
        let mut text = vec![0x90, CALL, 0x90];
        call(&mut text, WAIT_ON_BIT);
        text.extend([CALL, 1, 2]);
        call(&mut text, WAIT_ON_BIT + 1);
        call(&mut text, BEGIN - 0x800);
        call(&mut text, WAIT_ON_BIT);
        assert_eq!(calls(&text, BEGIN, &[WAIT_ON_BIT]), [3, 21]);
        assert_eq!(calls(&text, BEGIN, &[BEGIN - 0x800]), [16]);
        assert!(calls(&text[..4], BEGIN, &[WAIT_ON_BIT]).is_empty());
        assert!(calls(&text, BEGIN, &[]).is_empty());
    }

    #[test]
    fn a_call_is_found_while_another_tracer_probes_it() {
        let mut text = vec![0x90, BREAKPOINT, BREAKPOINT];
        call(&mut text, WAIT_ON_BIT);
        text[3] = BREAKPOINT;
        assert_eq!(calls(&text, BEGIN, &[WAIT_ON_BIT]), [3]);
    }

    #[test]
    fn a_wait_that_ends_with_its_call_ends_behind_it() {
        let mut text = vec![0x90];
        call(&mut text, WAIT_ON_BIT);
        let (begin, end) = SITES[0]
            .places(&extent, &|_| Some(text.clone()))
            .expect("both are there");
        let function = "do_get_write_access";
        let place = |offset| [Place { function, offset }];
        assert_eq!((begin, end), (place(1).to_vec(), place(6).to_vec()));
    }

    #[test]
    fn without_begin_or_end_there_is_no_site() {
        let places = |site: &Site, text: Option<&[u8]>| {
            let text = text.map(<[u8]>::to_vec);
            site.places(&extent, &|_| text.clone())
        };
        assert_eq!(places(&SITES[0], Some(&[0x90; 64])), None);
        assert_eq!(places(&SITES[0], None), None);
        assert_eq!(places(&SITES[1], Some(&[])), None);
    }
}
