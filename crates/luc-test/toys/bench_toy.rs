//! Workload `toy`: one thread makes one file durable, a number of times.

use std::fmt;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::args::Common;
use crate::benchmark::{Benchmark, Figures, Found, Measured};
use crate::clock::now_ns;
use crate::observer::Observed;
use crate::scratch::Scratch;
use crate::text::{Lines, latency};
use crate::{Latency, Result, Stop};
use luc_base::Recorder;

/// Arguments of the workload `toy`.
#[derive(Args, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toy {
    /// Arguments of every workload.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: Common,
    /// Times to write and fsync the file
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub turns: u32,
}

/// Result of the workload `toy`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToyResult {
    /// The arguments it ran with.
    pub args: Toy,
    /// Sync delay: the time an fsync took.
    pub fsync: Latency,
}

impl Benchmark for Toy {
    type Found = ToyResult;

    fn run(&self, stop: &Stop) -> Result<Measured<Self::Found>> {
        let scratch = Scratch::new(&self.common.dir, self.common.keep)?;
        let dir = scratch.subdir("toy")?;
        let file = dir.create(c"file")?;
        let begin_ns = now_ns();
        let mut times = Recorder::new();
        for _ in 0..self.turns {
            dir.write(&file, c"file", b"toy")?;
            let called_ns = now_ns();
            dir.fsync(&file, c"file")?;
            times.record(now_ns() - called_ns);
        }
        let elapsed_ns = now_ns() - begin_ns;
        drop((file, dir));
        scratch.remove()?;
        let fsync = Recorder::merged([&times]);
        Ok(Measured {
            found: ToyResult {
                args: self.clone(),
                fsync,
            },
            elapsed_ns,
            interrupted: stop.is_set(),
            observed: Observed::default(),
        })
    }
}

impl Found for ToyResult {
    fn title(&self) -> String {
        format!("toy, {} turns", self.args.turns)
    }

    fn lines(&self, lines: &mut Lines<'_, '_>) -> fmt::Result {
        lines.line("sync delay", latency(&self.fsync))
    }

    fn figures(&self) -> Figures<'_> {
        Figures {
            is_a_rate: false,
            ..Figures::rate(self.fsync.mean_ns, &self.fsync)
        }
    }
}
