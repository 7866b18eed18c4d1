//! The simulator: models of the kernel and the disk, with the real controllers inside.

use std::collections::BTreeMap;

use luc_model::comparison::{Comparison, DELAY_US};
use luc_model::summary::Summary;
use luc_sim::costs::Costs;
use luc_sim::disk::DiskKind;
use luc_sim::journal::kind::Choice;
use luc_sim::kernel::{self, KERNELS};
use luc_sim::mount::Mount;
use luc_sim::processors::governor::{self, Scaling};
use luc_sim::processors::{CLOCK_LATENCY_US_MAX, MEMORY_PAGE_NS_MAX, PAST_US_MAX, ProcessorModel};
use luc_sim::speeds;
use luc_sim::{RUNS_MAX, SimError};
use luc_trace::Trace;
use luc_vm::disk::SIZE_MIB_DEFAULT;
use serde_json::Value;

use super::file_system::text;
use super::{Factor, NONE, Needs, Place, Setup, none_or, whole};
use crate::arms::Arm;
use crate::cell::{Cell, NamedArm, Versions};
use crate::error::{CampaignError, Result};
use crate::result::{ArmResult, Measured};

/// Digest of the simulator's sources; results of other sources do not count.
pub const SOURCES: &str = env!("LUC_SIM_SOURCES");

pub struct Sim;

const FACTORS: &[Factor] = &[
    Factor {
        name: "vcpus",
        help: "processors, each with a time of its own",
        default: Some("1"),
        check: |text| whole(text, 1, 1024),
    },
    Factor {
        name: "mips",
        help: "million instructions per second of a processor, or of each: 3000,1000",
        default: Some("1000"),
        check: |text| speeds::list(text).map(drop),
    },
    Factor {
        name: "past_us",
        help: "how far apart the tasks' virtual times are at most when a run starts, or `own`: one \
               request of the scheduler",
        default: Some(OWN),
        check: |text| past_ns(text).map(drop),
    },
    Factor {
        name: "memory_page_ns",
        help: "time that a copied page of 4 KiB spends on its way through memory, whatever the \
               processor's speed",
        default: Some("0"),
        check: |text| whole(text, 0, MEMORY_PAGE_NS_MAX),
    },
    Factor {
        name: "runs",
        help: "runs that follow each other on one mount, of which the seed draws the one that is \
               measured, or `none`: a single run",
        default: Some(NONE),
        check: |text| none_or(text, |runs| whole(runs, 1, RUNS_MAX.into())),
    },
    Factor {
        name: "governor",
        help: "governor that chooses the clock among `clocks`, or `none`: the speed is `mips`",
        default: Some(NONE),
        check: |text| {
            none_or(text, |name| {
                let found = governor::named(name);
                found.map(drop).map_err(|error| error.to_string())
            })
        },
    },
    Factor {
        name: "clocks",
        help: "clocks of the governor, as speeds in million instructions per second, or those of a \
               machine: 800,1600,3200 or r710; `none` without a governor",
        default: Some(NONE),
        check: |text| {
            none_or(text, |clocks| {
                speeds::scaling("performance", clocks, false).map(drop)
            })
        },
    },
    Factor {
        name: "clock_latency_us",
        help: "time until a clock that the governor has chosen takes effect, or `none`: at once",
        default: Some(NONE),
        check: |text| none_or(text, |us| whole(us, 1, CLOCK_LATENCY_US_MAX)),
    },
    Factor {
        name: "clock_per_processor",
        help: "`yes`: the governor chooses a clock for each processor; or `none`: one for all",
        default: Some(NONE),
        check: |text| match text {
            NONE | YES => Ok(()),
            _ => Err(format!("must be {YES} or {NONE}")),
        },
    },
    Factor {
        name: "journal_on",
        help: "processor of the journal's thread, from 0 on, or `none`: it may run on all",
        default: Some(NONE),
        check: |text| none_or(text, |number| whole(number, 0, 1023)),
    },
    Factor {
        name: "kernel",
        help: "kernel whose ext4 and scheduler to simulate: `luc-lab sim run --help` lists them",
        default: Some(KERNELS[0].name),
        check: |text| {
            let found = kernel::named(text);
            found.map(drop).map_err(|error| error.to_string())
        },
    },
    Factor {
        name: "disk",
        help: "a disk as in `luc-lab sim run --disk`: 4ms:1, hdd-7200, raid10:4:hdd-15k, nehalem-hdd",
        default: None,
        check: |text| {
            let parsed = text.parse::<DiskKind>();
            parsed.map(drop).map_err(|error| error.to_string())
        },
    },
    Factor {
        name: "mount",
        help: "mount options: noatime, dioread_lock",
        default: Some(""),
        check: |text| {
            let parsed = text.parse::<Mount>();
            parsed.map(drop).map_err(|error| error.to_string())
        },
    },
    Factor {
        name: "journal",
        help: "jbd2, or an alternative to it: `luc-lab sim run --help` lists them",
        default: Some("jbd2"),
        check: |text| journal(text, OWN, SIZE_MIB_DEFAULT).map(drop),
    },
    Factor {
        name: "journal_mib",
        help: "size of its log in MiB, or `own`: the default of its kind, which for jbd2 depends \
               on the disk's size",
        default: Some(OWN),
        check: |text| journal("jbd2", text, SIZE_MIB_DEFAULT).map(drop),
    },
];

/// Value of a factor that is on or off.
const YES: &str = "yes";

/// Stands for the default of a kind of journal or of the scheduler.
const OWN: &str = "own";

/// Parses `past_us`, which cells of the lab do not have.
fn past_ns(text: &str) -> std::result::Result<Option<u64>, String> {
    if text.is_empty() || text == OWN {
        return Ok(None);
    }
    whole(text, 0, PAST_US_MAX)?;
    Ok(text.parse().ok().map(|us: u64| us * 1000))
}

/// Chooses the journal. Cells of the lab, which `luc-lab sim validate` simulates, have neither
/// factor.
fn journal(name: &str, mib: &str, disk_mib: u32) -> std::result::Result<Choice, String> {
    let name = if name.is_empty() { "jbd2" } else { name };
    let mib = match mib {
        OWN | "" => None,
        mib => Some(
            mib.parse()
                .map_err(|_| format!("{mib} is not a number of MiB"))?,
        ),
    };
    Choice::on(name, mib, disk_mib).map_err(|error| error.to_string())
}

impl Place for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn factors(&self) -> &'static [Factor] {
        FACTORS
    }

    fn check(&self, cell: &Cell) -> std::result::Result<(), String> {
        for named in &cell.arms {
            let arm = |why: String| format!("arm {}: {why}", named.name);
            let setup = setup(cell, named).map_err(arm)?;
            setup.check().map_err(|error| arm(error.to_string()))?;
            Watch::asked(&named.arm).map_err(arm)?;
        }
        load(cell).map(drop)
    }

    fn needs(&self, _cell: &Cell) -> Needs {
        Needs {
            processors: 1,
            memory_mib: 64,
            alone: false,
        }
    }

    fn versions(&self, _cell: &Cell, _setup: &Setup) -> Result<Versions> {
        Ok(BTreeMap::from([("luc-sim".to_owned(), SOURCES.to_owned())]))
    }

    fn command(&self, cell: &Cell, arm: &NamedArm) -> Option<String> {
        shlex::try_join(words(cell, arm).iter().map(String::as_str)).ok()
    }

    fn measure(
        &self,
        cell: &Cell,
        _setup: &Setup,
        _progress: &mut dyn luc_vm::Progress,
    ) -> Result<Measured> {
        let arms = self.simulate(cell);
        Ok(Measured {
            kernel_release: "simulated".to_owned(),
            arms: arms.map_err(|why| CampaignError::Failed { why, log: None })?,
        })
    }
}

impl Sim {
    /// Simulates all arms of a cell.
    ///
    /// # Errors
    /// The simulator does not support something in it.
    pub fn simulate(&self, cell: &Cell) -> std::result::Result<Vec<ArmResult>, String> {
        let load = load(cell)?;
        let arms = cell.arms.iter().map(|named| {
            let arm = |why: String| format!("arm {}: {why}", named.name);
            simulate_arm(&load, cell, named).map_err(arm)
        });
        arms.collect()
    }
}

fn simulate_arm(
    load: &luc_sim_loads::Load,
    cell: &Cell,
    named: &NamedArm,
) -> std::result::Result<ArmResult, String> {
    let setup = setup(cell, named)?;
    let watch = Watch::asked(&named.arm)?;
    let said = |error: SimError| error.to_string();
    let (report, after) = if let Some(watch) = watch {
        let (report, recording) = luc_sim_loads::record(load, &setup).map_err(said)?;
        let after = watch.look(recording.into_trace());
        (report, Some(after.map_err(|error| error.to_string())?))
    } else {
        (luc_sim_loads::run(load, &setup).map_err(said)?, None)
    };
    Ok(ArmResult {
        arm: named.name.clone(),
        report,
        counters: BTreeMap::new(),
        after,
    })
}

/// The options of `luc-lab sim run` for the factors.
const OPTIONS: [(&str, &str); 14] = [
    ("disk", "--disk"),
    ("vcpus", "--cpus"),
    ("mips", "--mips"),
    ("past_us", "--past-us"),
    ("memory_page_ns", "--memory-page-ns"),
    ("runs", "--runs"),
    ("governor", "--governor"),
    ("clocks", "--clocks"),
    ("clock_latency_us", "--clock-latency-us"),
    ("journal_on", "--journal-on"),
    ("kernel", "--kernel"),
    ("mount", "--mount"),
    ("journal", "--journal"),
    ("journal_mib", "--journal-mib"),
];

/// The words of the `luc-lab sim run` that measures an arm, without factors at their default.
fn words(cell: &Cell, named: &NamedArm) -> Vec<String> {
    let split = |text: &str| shlex::split(text).unwrap_or_default();
    let mut words = split("luc-lab sim run");
    for (name, option) in OPTIONS {
        let default = FACTORS.iter().find(|factor| factor.name == name);
        let default = default.and_then(|factor| factor.default);
        let value = cell.machine.get(name).map(String::as_str);
        if let Some(value) = value.filter(|value| Some(*value) != default) {
            words.extend([option.to_owned(), value.to_owned()]);
        }
    }
    if text(cell, "clock_per_processor") == YES {
        words.push("--clock-per-processor".to_owned());
    }
    let on = named.arm.on.as_deref().filter(|_| !named.arm.elsewhere);
    let options = on.map(split);
    match options {
        Some(options) if options.is_empty() => words.push("--luc".to_owned()),
        // LUC changes nothing while it observes.
        Some(options) if options.iter().all(|word| word != "--observe") => words.extend(options),
        _ => {}
    }
    words.extend(["--seed".to_owned(), cell.seed.to_string(), "--".to_owned()]);
    // The simulator needs no folder.
    let bench = cell.bench.replace("--dir {dir}", "");
    words.extend(split(&bench.replace("{dir}", "")));
    words
}

/// The command around a benchmark that the simulator can stand in for.
const RECORD: &str = "luc trace record -o {out} --on {dir} --";
/// How a verb analyzes a recording.
type Look = fn(&Trace) -> serde_json::Result<Value>;

/// Verbs of `luc trace` that may follow the benchmark.
const LOOKS: [(&str, Look); 2] = [
    ("summary", |trace| {
        serde_json::to_value(Summary::from_trace(trace))
    }),
    ("model", |trace| {
        serde_json::to_value(Comparison::from_trace(trace, DELAY_US))
    }),
];

/// How an arm's recording is analyzed.
struct Watch {
    look: Look,
    last_s: Option<f64>,
}

impl Watch {
    /// `None` if the arm is not recorded.
    fn asked(arm: &Arm) -> std::result::Result<Option<Self>, String> {
        if arm.around.is_empty() && arm.after.is_empty() {
            return Ok(None);
        }
        let words = |text| shlex::split(text).unwrap_or_default();
        let after = words(&arm.after);
        let after: Vec<&str> = after.iter().map(String::as_str).collect();
        let asked = match after.as_slice() {
            ["luc", "trace", verb, "--json", "{out}"] => Some((*verb, None)),
            ["luc", "trace", verb, "--json", "--last-s", last_s, "{out}"] => {
                let last_s = last_s.parse().ok().filter(|last_s: &f64| *last_s > 0.0);
                last_s.map(|last_s| (*verb, Some(last_s)))
            }
            _ => None,
        };
        let known = asked.and_then(|(verb, last_s)| {
            let (_, look) = LOOKS.into_iter().find(|(name, _)| *name == verb)?;
            Some(Self { look, last_s })
        });
        known
            .filter(|_| words(&arm.around) == words(RECORD))
            .map(Some)
            .ok_or_else(|| {
                format!(
                    "the simulator runs no commands; it only stands in for `{RECORD}` followed by \
                     `luc trace summary --json {{out}}` or `luc trace model --json {{out}}`"
                )
            })
    }

    fn look(&self, mut trace: Trace) -> serde_json::Result<Value> {
        if let Some(last_s) = self.last_s {
            trace.keep_last(last_s);
        }
        (self.look)(&trace)
    }
}

fn load(cell: &Cell) -> std::result::Result<luc_sim_loads::Load, String> {
    let words = shlex::split(&cell.bench.replace("{dir}", "simulation")).unwrap_or_default();
    luc_sim_loads::load(words).map_err(|error| error.to_string())
}

fn setup(cell: &Cell, named: &NamedArm) -> std::result::Result<luc_sim::Setup, String> {
    let arm = &named.arm;
    let is_plain = [&arm.bench, &arm.fs, &arm.mkfs, &arm.mount]
        .iter()
        .all(|text| text.is_empty());
    if !is_plain {
        return Err("the simulator has one file system, without options".into());
    }
    let luc = match &arm.on {
        Some(options) if !arm.elsewhere => {
            let words = shlex::split(options).unwrap_or_default();
            luc_sim::knobs(&words).map_err(|error| error.to_string())?
        }
        _ => None,
    };
    let kernel = match text(cell, "kernel") {
        "" => Ok(&KERNELS[0]),
        name => kernel::named(name),
    };
    let kernel = kernel.map_err(|error| error.to_string())?;
    let mount = Mount::new(kernel, text(cell, "mount"));
    let disk: DiskKind = text(cell, "disk")
        .parse()
        .map_err(|error: luc_sim::disk::NoDisk| error.to_string())?;
    let mib = text(cell, "journal_mib");
    let journal = journal(text(cell, "journal"), mib, disk.size_mib)?;
    let machine = speeds::machine(text(cell, "vcpus").parse().ok(), text(cell, "mips"), &[])?;
    let each = text(cell, "clock_per_processor") == YES;
    let latency_us: u64 = text(cell, "clock_latency_us").parse().unwrap_or(0);
    let journal_on = text(cell, "journal_on").parse().ok();
    if journal_on.is_some_and(|cpu: u16| usize::from(cpu) >= machine.mips.len()) {
        let cpus = machine.mips.len();
        return Err(format!(
            "journal_on: the machine has {cpus} processors, from 0 on"
        ));
    }
    let scaling = match (text(cell, "governor"), text(cell, "clocks")) {
        ("", "") if each => return Err("clock_per_processor is for a governor".into()),
        ("", "") if latency_us > 0 => return Err("clock_latency_us is for a governor".into()),
        ("", "") => None,
        ("", _) => return Err("clocks are for a governor: name it by the factor governor".into()),
        (_, "") => return Err("a governor needs clocks: name them by the factor clocks".into()),
        (governor, clocks) => Some(Scaling {
            latency_ns: latency_us * 1000,
            ..speeds::scaling(governor, clocks, each)?
        }),
    };
    Ok(luc_sim::Setup {
        machine: ProcessorModel {
            past_ns: past_ns(text(cell, "past_us"))?,
            memory_page_ns: text(cell, "memory_page_ns").parse().unwrap_or(0),
            scaling,
            journal_on,
            ..machine
        },
        disk,
        journal,
        costs: Costs::default(),
        mount: mount.map_err(|error| error.to_string())?,
        luc,
        seed: cell.seed,
        runs: text(cell, "runs").parse().unwrap_or(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arms::builtin;
    use crate::measures;

    const SEEN: &str = "luc trace summary --json {out}";

    fn recorded(after: &str) -> Arm {
        Arm {
            around: RECORD.to_owned(),
            after: after.to_owned(),
            ..Arm::default()
        }
    }

    fn cell(bench: &str, arms: Vec<(&str, Arm)>) -> Cell {
        let arms = arms.into_iter().map(|(name, arm)| NamedArm {
            name: name.to_owned(),
            arm,
        });
        let machine = [("vcpus", "4"), ("mips", "1000"), ("disk", "hdd-7200")];
        Cell {
            place: "sim".to_owned(),
            machine: machine.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            bench: bench.to_owned(),
            arms: arms.collect(),
            repeat: 1,
            seed: 1,
        }
    }

    #[test]
    fn recorded_arms_are_summed_up() {
        let with_luc = Arm {
            on: Some(String::new()),
            ..recorded(SEEN)
        };
        let cell = cell(
            "metarates --procs 4 --files 16 --dir {dir}",
            vec![
                ("stock", Arm::default()),
                ("seen", recorded(SEEN)),
                ("luc", with_luc),
            ],
        );
        Sim.check(&cell).unwrap();
        let arms = Sim.simulate(&cell).unwrap();
        let of = |name, at: usize| measures::value(name, &arms[at], &cell);
        assert_eq!(arms[0].report, arms[1].report, "to record costs nothing");
        assert!(arms[0].after.is_none());
        let waited = of("after:/file_systems/0/table/commits_waited_mean", 1).unwrap();
        let share = of("two_commits_share", 1).unwrap();
        assert!((waited - 1.0 - share).abs() < 1e-9, "{waited} {share}");
        assert_eq!(
            Some(share),
            of("two_commits_share", 0),
            "the report's own count"
        );
        assert_eq!(of("after:/file_systems/0/counts/fsync", 2), Some(64.0));
        assert_eq!(of("write_calls_delayed_share", 1), Some(0.0));
    }

    /// The gain predicted from stock is near the simulated gain.
    #[test]
    fn gains_are_foretold() {
        let luc = Arm {
            on: Some(String::new()),
            ..Arm::default()
        };
        let bench = "create-fsync --threads 16 --seconds 5 --warmup-s 0.8 {dir}";
        let model = recorded("luc trace model --json --last-s 5 {out}");
        let cell = cell(bench, vec![("modelled", model), ("luc", luc)]);
        let arms = Sim.simulate(&cell).unwrap();
        let rate = |at: usize| measures::value("rate", &arms[at], &cell).unwrap();
        let foretold = measures::value("foretold_gain", &arms[0], &cell).unwrap();
        let gain = rate(1) / rate(0);
        assert!((foretold / gain - 1.0).abs() < 0.1, "{foretold} {gain}");
    }

    #[test]
    fn the_journal_s_thread_and_each_clock_have_a_place() {
        let bench = "create-fsync --threads 16 --seconds 1 --warmup-s 0.5 {dir}";
        let mut cell = cell(bench, vec![("stock", Arm::default())]);
        let mut with = |factors: &[(&str, &str)]| {
            let factors = factors
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()));
            cell.machine.extend(factors);
            let arms = Sim.simulate(&cell)?;
            Ok::<_, String>((
                words(&cell, &cell.arms[0]).join(" "),
                arms[0].report.clone(),
            ))
        };
        let (_, free) = with(&[("mips", "3000,3000,1000,1000")]).unwrap();
        let (command, little) = with(&[("journal_on", "3")]).unwrap();
        assert!(command.contains(" --journal-on 3 "), "{command}");
        assert_ne!(free, little);
        for (name, value) in [("clock_latency_us", "500"), ("clock_per_processor", YES)] {
            let why = with(&[(name, value)]).unwrap_err();
            assert!(why.contains(&format!("{name} is for a governor")), "{why}");
            with(&[(name, NONE)]).unwrap();
        }
        with(&[("clock_per_processor", YES)]).unwrap_err();
        let governed = [("governor", "schedutil"), ("clocks", "800,3500")];
        let (command, at_once) = with(&governed).unwrap();
        assert!(command.contains(" --clock-per-processor "), "{command}");
        let (command, late) = with(&[("clock_latency_us", "500")]).unwrap();
        assert!(command.contains(" --clock-latency-us 500 "), "{command}");
        assert_ne!(at_once, late);
        let why = with(&[("journal_on", "4")]).unwrap_err();
        assert!(why.contains("4 processors, from 0 on"), "{why}");
    }

    #[test]
    fn other_commands_are_refused() {
        let ok = |arm: &Arm| Watch::asked(arm).map(|watch| watch.is_some());
        assert_eq!(ok(&builtin()["stock"]), Ok(false));
        assert_eq!(ok(&recorded(SEEN)), Ok(true));
        assert_eq!(
            ok(&recorded("luc trace model --json --last-s 2.5 {out}")),
            Ok(true)
        );
        let only_after = Arm {
            after: SEEN.to_owned(),
            ..Arm::default()
        };
        for arm in [
            &builtin()["counted"],
            &builtin()["traced"],
            &recorded("luc trace model --json --last-s soon {out}"),
            &recorded("luc trace rank --json {out}"),
            &recorded("cat {out}"),
            &only_after,
        ] {
            let why = ok(arm).unwrap_err();
            assert!(why.contains("luc trace summary --json {out}"), "{why}");
        }
        let cell = cell(
            "burst {dir}",
            vec![("unsynced", builtin()["nofsync"].clone())],
        );
        let why = Sim.check(&cell).unwrap_err();
        assert!(why.starts_with("arm unsynced: "), "{why}");
    }
}
