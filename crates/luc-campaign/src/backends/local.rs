//! Runs cells on this machine, as many at a time as its memory and processors allow.

use std::fs;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::{Backend, Engine, Wishes};
use crate::cell::Cell;
use crate::error::{CampaignError, Result};
use crate::measure::{Board, measure_cell, place_of};
use crate::places::{self, Needs, Setup};
use crate::store::Store;

const NAME: &str = "local";

/// Runs cells on this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local {
    /// Most cells at a time; `None`: as many as there are processors.
    pub jobs: Option<u32>,
}

impl Local {
    /// # Errors
    /// An option applies only to an engine's jobs.
    pub fn new(wishes: &Wishes) -> Result<Self> {
        if wishes.engine != Engine::default() {
            return Err(CampaignError::Backend {
                backend: NAME,
                why: "the options are for a cluster, but cells run on this machine; name a \
                      back-end with --on"
                    .to_owned(),
            });
        }
        Ok(Self { jobs: wishes.jobs })
    }
}

/// Free processors and memory, and whether a running cell needs the machine to itself.
struct Free {
    processors: u32,
    memory_mib: u64,
    running: u32,
    alone: bool,
}

impl Free {
    /// Reserves what a cell needs, if it is free. A cell that needs more than the machine has runs
    /// alone.
    fn take(&mut self, needs: Needs) -> bool {
        let idle = self.running == 0;
        let fits = self.processors >= needs.processors && self.memory_mib >= needs.memory_mib;
        if self.alone || !(idle || fits && !needs.alone) {
            return false;
        }
        self.processors = self.processors.saturating_sub(needs.processors);
        self.memory_mib = self.memory_mib.saturating_sub(needs.memory_mib);
        self.running += 1;
        self.alone = needs.alone || !fits;
        true
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No thread panics while it changes the value.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Backend for Local {
    fn name(&self) -> &'static str {
        NAME
    }

    fn measure(
        &self,
        cells: &[Cell],
        store: &Store,
        setup: &Setup,
        board: &mut Board<'_>,
    ) -> Result<()> {
        let processors =
            thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
        let processors = self.jobs.unwrap_or(processors);
        let total = Free {
            processors,
            memory_mib: free_memory_mib().unwrap_or(u64::MAX),
            running: 0,
            alone: false,
        };
        let (all_processors, all_memory_mib) = (total.processors, total.memory_mib);
        let (free, freed) = (Mutex::new(total), Condvar::new());
        let board = Mutex::new(board);
        let failure: Mutex<Option<CampaignError>> = Mutex::new(None);
        let ended = || setup.stop.is_set() || lock(&failure).is_some();
        thread::scope(|scope| {
            for cell in cells {
                let mut needs = match place_of(cell) {
                    Ok(place) => place.needs(cell),
                    Err(error) => {
                        lock(&failure).get_or_insert(error);
                        break;
                    }
                };
                needs.processors = needs.processors.min(all_processors);
                let mut now = lock(&free);
                while !ended() && !now.take(needs) {
                    now = freed.wait(now).unwrap_or_else(PoisonError::into_inner);
                }
                drop(now);
                if ended() {
                    break;
                }
                let (free, freed, board, failure) = (&free, &freed, &board, &failure);
                scope.spawn(move || {
                    let mut reporter = Reporter { board, cell };
                    match measure_cell(cell, store, setup, &mut reporter) {
                        Ok(_) => lock(board).done(1, &places::shown(cell)),
                        Err(error) => {
                            lock(failure).get_or_insert(error);
                        }
                    }
                    let mut now = lock(free);
                    now.running -= 1;
                    now.alone = false;
                    now.processors = (now.processors + needs.processors).min(all_processors);
                    now.memory_mib = (now.memory_mib + needs.memory_mib).min(all_memory_mib);
                    drop(now);
                    freed.notify_all();
                });
            }
        });
        lock(&failure).take().map_or(Ok(()), Err)
    }
}

/// Memory available without swapping, in MiB; `None` if the kernel does not report it.
fn free_memory_mib() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024)
}

/// Passes on the progress of one cell.
struct Reporter<'a, 'b> {
    board: &'a Mutex<&'a mut Board<'b>>,
    cell: &'a Cell,
}

impl luc_vm::Progress for Reporter<'_, '_> {
    fn stage(&mut self, text: &str) {
        lock(self.board).say(text);
    }

    fn guest(&mut self, _done: u32, _total: u32, _text: &str) {
        lock(self.board).say(&places::shown(self.cell));
    }

    fn note(&mut self, text: &str) {
        lock(self.board).note(text);
    }
}

#[cfg(test)]
mod tests {
    use super::{Free, Needs};

    #[test]
    fn what_needs_too_much_runs_alone() {
        let needs = |processors, memory_mib, alone| Needs {
            processors,
            memory_mib,
            alone,
        };
        let mut free = Free {
            processors: 2,
            memory_mib: 1000,
            running: 0,
            alone: false,
        };
        assert!(free.take(needs(1, 600, false)));
        assert!(!free.take(needs(1, 600, false)), "the memory is taken");
        assert!(!free.take(needs(1, 100, true)), "it wants to be alone");
        assert!(free.take(needs(1, 100, false)));
        assert!(!free.take(needs(1, 100, false)), "no processor is left");
        let mut idle = Free { running: 0, ..free };
        assert!(
            idle.take(needs(8, 9999, false)),
            "nobody else needs the machine"
        );
        assert!(!idle.take(needs(1, 1, false)));
    }
}
