//! Measures the overhead of the engine for workload files: one thread creates and closes files,
//! first through the engine, then in a hand-written loop of the same system calls.
//!
//!     cargo run --release -p luc-workload --example engine_overhead -- /dev/shm
//!
//! The engine times and counts each call, which the loop does not. On virtual time one instruction
//! is one nanosecond, so a few rounds tell exactly how many more the engine needs:
//!
//!     luc-lab run --file target/x86_64-unknown-linux-gnu/release/examples/engine_overhead:/x -- \
//!         /x --rounds 3 /tmp

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Parser;
use luc_base::Stop;
use luc_workload::wml::{self, WmlOptions};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Files per round: enough for a tenth of a second.
const FILES: u64 = 40_000;

#[derive(Parser)]
struct Cli {
    /// Directory on the file system to use; a tmpfs shows the engine rather than the disk
    dir: PathBuf,
    /// Number of rounds to measure
    #[arg(long, default_value_t = 31, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
}

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    options: WmlOptions,
}

fn main() -> Result<(), Failure> {
    let Cli { dir, rounds } = Cli::parse();
    let (mut engines, mut hands) = (Vec::new(), Vec::new());
    println!("create + close, files per second: engine, by hand, ratio");
    for _ in 0..rounds {
        let engine = engine(&dir)?;
        // In a thread as well: in a process with several threads, the kernel counts the users of
        // each descriptor.
        let hand = std::thread::scope(|scope| scope.spawn(|| by_hand(&dir)).join());
        let hand = hand.map_err(|_| "the loop panicked")??;
        println!("{engine:12.0} {hand:12.0} {:8.3}", engine / hand);
        engines.push(engine);
        hands.push(hand);
    }
    engines.sort_by(f64::total_cmp);
    hands.sort_by(f64::total_cmp);
    let half = engines.len() / 2;
    println!("ratio of the medians {:.3}", engines[half] / hands[half]);
    // Other work on the machine can only slow a round down.
    println!(
        "ratio of the fastest {:.3}",
        engines[engines.len() - 1] / hands[hands.len() - 1]
    );
    Ok(())
}

/// Returns the engine's files per second. All files lie in the fileset's directory 00000001.
fn engine(dir: &Path) -> Result<f64, Failure> {
    let text = format!(
        "define fileset name=set,path=/tmp,entries={},dirwidth=100000000,dirgamma=0,size=0,prealloc=0\n\
         define process name=p {{ thread name=t,memsize=1m {{\n\
         flowop createfile name=create,filesetname=set,fd=1\n\
         flowop closefile name=close,fd=1\n}} }}\nrun 60\n",
        10 * FILES
    );
    let script = luc_wml::parse("overhead", &text)?;
    let plan = script.plan(&[])?;
    // The warm-up leaves out the time a thread takes to start, as the loop by hand does.
    let dir = dir.to_str().ok_or("the directory's name is not UTF-8")?;
    let words = format!("overhead --warmup-s 0.02 --seconds 0.1 --dir {dir}");
    let options = Options::try_parse_from(words.split(' '))?.options;
    let report = wml::run(
        &plan,
        "overhead",
        &[],
        &options,
        &Stop::new(),
        &mut |_, _| (),
    )?;
    let creates = report
        .found
        .flowops
        .iter()
        .find(|flowop| flowop.name == "create");
    Ok(creates.map_or(0.0, |create| create.ops_per_s))
}

/// Makes the same calls by hand: a stat of the parent, an open that creates, a close.
fn by_hand(dir: &Path) -> Result<f64, Failure> {
    let root = dir.join(format!("luc-bench.{}", std::process::id()));
    fs::create_dir_all(root.join("set/00000001"))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = openat(CWD, &root, flags, Mode::empty())?;
    let mut name = *b"set/00000001/00000000\0";
    let create = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
    let start = Instant::now();
    for number in 1..=FILES {
        let mut rest = number;
        for digit in name[13..21].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10)?;
            rest /= 10;
        }
        let path = std::ffi::CStr::from_bytes_with_nul(&name)?;
        statat(&top, c"set/00000001", AtFlags::empty())?;
        drop(openat(&top, path, create, Mode::from_raw_mode(0o666))?);
    }
    let seconds = start.elapsed().as_secs_f64();
    fs::remove_dir_all(&root)?;
    Ok(FILES as f64 / seconds)
}
