//! The cost of the engine for workload files: one thread that creates and closes files, by the
//! engine and by a loop of the same system calls written by hand, side by side.
//!
//!     cargo run --release -p luc-workload --example engine_overhead -- /dev/shm
//!
//! Each call of the engine is timed and counted, which the loop does not do. On virtual time one
//! instruction is one nanosecond, and a few rounds tell exactly how many more there are:
//!
//!     luc lab run --file target/x86_64-unknown-linux-gnu/release/examples/engine_overhead:/x -- \
//!         /x --rounds 3 /tmp

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Parser;
use luc_workload::Stop;
use luc_workload::wml::{self, WmlOptions};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Files of each round: enough for a tenth of a second.
const FILES: u64 = 40_000;

#[derive(Parser)]
struct Cli {
    /// Directory on the file system to use: a tmpfs, to see the engine and not the disk
    dir: PathBuf,
    /// How often each is measured
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
        // In a thread as well: with more than one, the kernel counts users of each descriptor.
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
    // Other work of the machine can only slow a round down.
    println!(
        "ratio of the fastest {:.3}",
        engines[engines.len() - 1] / hands[hands.len() - 1]
    );
    Ok(())
}

/// Files per second of the engine. The files lie in one directory, 00000001 in the fileset.
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
    // Warm, so that the time a thread takes to start is no part of it, as it is none by hand.
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

/// The same calls: a look at the parent, an open that creates, a close.
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
