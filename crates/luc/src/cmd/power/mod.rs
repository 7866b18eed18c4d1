//! `luc power`

mod recorded;
mod text;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueHint;
use luc_guard::Why;
use luc_host::sysfs::{self, Attached};
use luc_host::{System, journal, kernel, steerable};
use luc_power::machine::{MachineError, PowerModel};
use luc_power::meter::{Boundary, Energy, External, Meter};
use serde::Serialize;

use luc_cli::{Code, Context, Failure, Interrupt, Verb};
use luc_watch::clock::limit::{self, Limit, put_back_at_once};
use luc_watch::clock::{
    self, ClockFindings, ClockSubject, Clocks, Search, Setting, WriteMeter, search,
};
use luc_watch::trial::Ended;

/// Find the lowest processor clock that the load needs
///
/// Lowers the highest allowed clock of all processors step by step, and compares each step with the
/// highest clock by pairs of short windows in random order: syncs per second, their 99th
/// percentile, and power if a meter is found. It stops at the first clock that is slower. At its
/// end or on Ctrl-C the old limits return; after `kill -9`, the next `luc power` puts them back. If
/// another program changes the clock's settings meanwhile, it ends, and that setting stays.
///
/// `--from` answers from a recording instead, without privileges: the simulator runs the recorded
/// load at lower clocks, on stock and with LUC. A recording does not tell whether threads compute
/// between their operations, so the answer may be a range. docs/power.md explains the results.
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools)] // each is a switch
#[command(after_help = "Examples:\n\
    \x20 luc power /srv/mail\n\
    \x20 luc power /srv/mail --seconds 3600 --tolerance 2% --apply\n\
    \x20 luc power --from run.luc --machine e3-server\n\
    \x20 luc power --restore")]
pub struct Args {
    /// A path on the file system, or its block device, as in /dev/vdb, vdb or 254:16
    #[arg(
        value_name = "PATH|DEVICE",
        value_hint = ValueHint::AnyPath,
        required_unless_present_any = ["restore", "from"]
    )]
    path: Option<PathBuf>,
    /// Recording of `luc trace record` to simulate at lower clocks instead; - for standard input
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with_all = ["path", "seconds", "min_mhz", "epp", "meter", "apply"]
    )]
    from: Option<PathBuf>,
    /// Machine of the energy model, with changes, as in `r710:idle_w=50`; the recorded clock is
    /// taken for its highest [default: none, no joules]
    #[arg(long, value_name = "MACHINE", requires = "from", value_parser = machine)]
    machine: Option<PowerModel>,
    /// Length of the whole search in seconds, 10 to 86400
    #[arg(long, value_name = "SECONDS", default_value = "900", value_parser = clap::value_parser!(u32).range(10..=86_400))]
    seconds: u32,
    /// How much slower a clock may be, 0.1% to 50%
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = tolerance)]
    tolerance: f64,
    /// Lowest clock to try on the fastest processors, in MHz
    #[arg(long, value_name = "MHZ", conflicts_with = "epp", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    min_mhz: Option<u64>,
    /// Step the processors' energy preference down instead of their highest clock
    #[arg(long)]
    epp: bool,
    /// A command or device that gives watts, one number a line [default: the processors' energy
    /// counters, or a battery]
    #[arg(long, value_name = "COMMAND|DEVICE")]
    meter: Option<String>,
    /// Keep the limit that was found until `luc power --restore`, the next `luc power` or a reboot,
    /// or until `luc service` finds that it no longer fits the load
    #[arg(long)]
    apply: bool,
    /// Put back the limits of an earlier `luc power`
    #[arg(long, exclusive = true)]
    restore: bool,
    /// Print JSON at the end instead of a line for each clock
    #[arg(long)]
    json: bool,
}

fn machine(text: &str) -> Result<PowerModel, String> {
    text.parse()
        .map_err(|error: MachineError| error.to_string())
}

fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(percent) if (0.1..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage from 0.1% to 50%".into()),
    }
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    device: String,
    mount_points: &'a [PathBuf],
    tolerance: f64,
    /// The file of each policy that was stepped.
    setting: &'static str,
    highest: ClockFindings,
    clocks: &'a [ClockFindings],
    /// Parts of the machine whose energy was measured.
    energy_of: Option<Boundary>,
    energy_unknown: Option<String>,
    lowest: Option<&'a str>,
    /// The highest chance that `lowest` is slower than the tolerance allows.
    error: f64,
    saved_kwh_per_year: Option<f64>,
    discarded_pairs: u64,
    sentence: String,
    /// Why the search ended early.
    ended: Option<String>,
    /// Whether the limit is kept.
    applied: bool,
}

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        match (&self.path, &self.from) {
            (_, Some(file)) => {
                let machine = self.machine.as_ref();
                recorded::foretell(file, machine, self.tolerance, self.json, context)
            }
            (Some(path), None) => self.search(path, context),
            (None, None) => restore(context),
        }
    }

    fn interrupt(&self) -> Interrupt {
        match self.from {
            Some(_) => Interrupt::Ends,
            None => Interrupt::AsksThen(put_back_at_once),
        }
    }
}

fn permitted(system: &dyn System, what: &str) -> Result<(), Failure> {
    if kernel::capable(system, kernel::Capability::SysAdmin) {
        return Ok(());
    }
    Err(sysfs::denied(what).into())
}

fn restore(context: &mut Context) -> Result<(), Failure> {
    permitted(context.system, "put the limits of the clock back")?;
    let (_lock, line) = limit::restore(context.system)?;
    let line = line.unwrap_or_else(|| "no limit of `luc power` is in place".into());
    Ok(writeln!(context.out, "{line}")?)
}

/// The outcome of a search.
struct Found {
    clocks: Clocks,
    search: Search,
    meter: Result<Meter, String>,
    ended: Option<Ended>,
    applied: bool,
}

impl Args {
    fn search(&self, path: &Path, context: &mut Context) -> Result<(), Failure> {
        let system = context.system;
        let shown = path.display().to_string();
        let cannot = |why| Failure::coded(Code::KernelUnsupported, format!("power {shown}: {why}"));
        let offered = Clocks::policies(system, self.setting());
        offered.map_err(|why| {
            cannot(format!(
                "{why}; for an answer by the simulator, `luc trace record -o run.luc --on {shown} --seconds 60` and \
                 `luc power --from run.luc`"
            ))
        })?;
        let journal = steerable::at(system, path)?;
        permitted(system, &format!("limit the clock for {shown}"))?;
        let (lock, line) = limit::restore(system)?;
        if let Some(line) = line {
            context.note(line)?;
        }
        let min_khz = self.min_mhz.map(|mhz| mhz * 1000);
        let clocks = Clocks::read(system, self.setting(), min_khz).map_err(cannot)?;
        let attached = Attached {
            name: journal.name.clone(),
            device: journal.device,
        };
        let external = self.meter.as_deref().map(External::named);
        let meter = Meter::find(&system.path("/"), external.as_ref());
        let meter = match meter {
            Err(error) if external.is_some() => {
                return Err(Failure::usage("power", error));
            }
            found => found.map_err(|error| error.to_string()),
        };
        let (mut subject, lacks) =
            ClockSubject::new(system, &attached, &clocks, meter.as_ref().ok())
                .map_err(super::failed("power"))?;
        for lack in lacks {
            context.note(lack)?;
        }
        let sees_times = subject.sees_times();
        if !sees_times {
            context.note("the times of syncs are not seen: the rate decides alone")?;
        }
        if !self.json {
            text::ClockTable::new(&clocks, self.tolerance).heads(context.out, &clocks)?;
        }
        let limit = Limit::begin(system, lock, &clocks)?;
        let writes = WriteMeter::new(system, journal.device);
        let time = Duration::from_secs(self.seconds.into());
        let mut found = Search::new(&clocks, self.tolerance, sees_times, time);
        let ended = self.run_pairs(context, &mut subject, &clocks, &mut found);
        let sound = steerable::sound(system, &journal, &shown);
        let unsound = sound.as_ref().err();
        let unsound = unsound.map(|why| Ended::By(Why::Refused(why.to_string())));
        let ended = ended.or(unsound);
        let (ended, applied) = self.close(limit, &writes, context, &mut subject, &found, ended)?;
        drop(subject);
        let found = Found {
            clocks,
            search: found,
            meter,
            ended,
            applied,
        };
        self.print(context, &journal, &found)?;
        sound?;
        close(&shown, &found)
    }

    fn setting(&self) -> Setting {
        if self.epp {
            Setting::EnergyPreference
        } else {
            Setting::HighestClock
        }
    }

    fn run_pairs(
        &self,
        context: &mut Context,
        subject: &mut ClockSubject,
        clocks: &Clocks,
        found: &mut Search,
    ) -> Option<Ended> {
        let stop = context.stop.clone();
        let table = text::ClockTable::new(clocks, self.tolerance);
        let each = |found: &Search, at: usize| match ClockFindings::lower(clocks, found, at) {
            Some(findings) if !self.json => table.row(context.out, &findings),
            _ => Ok(()),
        };
        search(subject, found, &stop, each).err()
    }

    /// Ends the limits: puts the old ones back, or keeps what was found.
    fn close(
        &self,
        limit: Limit,
        writes: &WriteMeter,
        context: &mut Context,
        subject: &mut ClockSubject,
        found: &Search,
        ended: Option<Ended>,
    ) -> Result<(Option<Ended>, bool), Failure> {
        let applied = if self.apply && ended.is_none() {
            clock::set_lowest(subject, found)
        } else {
            Ok(false)
        };
        if let Ok(true) = applied {
            clock::keep(context.system, limit, writes.load(context.system))?;
            return Ok((ended, true));
        }
        let returned = limit.put_back()?;
        if !returned.foreign.is_empty() {
            context.note(limit::told(&returned))?;
        }
        Ok((applied.err().or(ended), false))
    }

    fn print(
        &self,
        context: &mut Context,
        journal: &journal::Journal,
        found: &Found,
    ) -> Result<(), Failure> {
        let Found { clocks, search, .. } = found;
        let highest = ClockFindings::highest(clocks, search);
        let lower = (0..clocks.lower.len())
            .filter_map(|at| ClockFindings::lower(clocks, search, at))
            .collect::<Vec<_>>();
        let energy_unknown = energy_unknown(found);
        let lowest = search.descent.lowest();
        let saved_kwh = lowest.and_then(|at| search.spent[at].saved_kwh());
        let lowest = lowest.map(|at| clocks.shown(&clocks.lower[at]));
        let sentence = text::Sentence {
            tolerance: self.tolerance,
            lowest: lowest.as_deref(),
            error: search.descent.error(),
            saved_kwh,
            of: found.meter.as_ref().ok().map(Meter::boundary),
        };
        if self.json {
            return context.print_json(&Report {
                schema: 1,
                device: journal.device.to_string(),
                mount_points: &journal.mount_points,
                tolerance: self.tolerance,
                setting: clocks.setting.file(),
                highest,
                clocks: &lower,
                energy_of: sentence.of,
                energy_unknown,
                lowest: lowest.as_deref(),
                error: sentence.error,
                saved_kwh_per_year: saved_kwh,
                discarded_pairs: search.slept,
                sentence: sentence.to_string(),
                ended: found.ended.as_ref().map(told),
                applied: found.applied,
            });
        }
        text::ClockTable::new(clocks, self.tolerance).row(context.out, &highest)?;
        writeln!(context.out)?;
        match (energy_unknown, sentence.of) {
            (Some(why), _) => writeln!(context.out, "energy unknown: {why}")?,
            (None, Some(of)) => writeln!(context.out, "energy of {of}")?,
            (None, None) => {}
        }
        if search.slept > 0 {
            let pairs = luc_base::words::counted(search.slept, "pair was", "pairs were");
            writeln!(context.out, "{pairs} discarded: the machine slept")?;
        }
        writeln!(context.out, "{sentence}")?;
        if found.applied {
            writeln!(
                context.out,
                "the limit is kept until `luc power --restore`, a reboot, or until `luc service`, \
                 if it runs, finds that it no longer fits"
            )?;
        }
        Ok(())
    }
}

/// Why the energy of the highest clock's windows is unknown; `None` if it is known, or if there
/// was no window.
fn energy_unknown(found: &Found) -> Option<String> {
    match &found.meter {
        Err(why) => Some(why.clone()),
        Ok(_) => found
            .search
            .spent
            .iter()
            .find_map(|spent| match spent.highest.energy() {
                Some(Energy::Unknown { unknown }) => Some(unknown),
                _ => None,
            }),
    }
}

fn told(ended: &Ended) -> String {
    match ended {
        Ended::By(Why::Gone) => "the file system was unmounted, or nothing counts its syncs".into(),
        other => other.told(),
    }
}

/// The exit code. A search that ended early may have an answer.
fn close(shown: &str, found: &Found) -> Result<(), Failure> {
    let trials = found.search.descent.trials();
    let compared = trials.iter().any(|it| it.pairs() > 0);
    match &found.ended {
        Some(Ended::Interrupted) => {
            Err(Failure::interrupted("the old limits of the clock are back"))
        }
        Some(ended) => Err(Failure::Coded(
            Code::TrialEnded,
            format!("power {shown}: {}", told(ended)),
        )),
        None if !compared => Err(Failure::Coded(
            Code::NothingToTry,
            format!(
                "power {shown}: no pair of windows could be compared; search longer, under load"
            ),
        )),
        None => Ok(()),
    }
}
