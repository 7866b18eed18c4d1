//! `luc service`

mod notify;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::ValueHint;
use luc_control::{Dev, Knob};
use luc_host::{HostError, System, module, mounts, steerable, sysfs};
use luc_service::{Action, Config, Memory, Names, Seen, Source, config, keep};

use luc_cli::{Code, Context, Failure, Interrupt, Verb};
use luc_watch::clock::KeptLimit;
use luc_watch::mounted::{Changes, Mounts};
use luc_watch::time::now;
use luc_watch::trial::GuardedFileSystems;

/// Keep LUC on across boots, as `/etc/luc/luc.toml` says
///
/// Switches LUC on for each file system that the configuration names, as soon as it is mounted.
/// Leaves changes by an administrator alone. Guards these file systems as `luc guard` does. On
/// SIGHUP, it reads the configuration again; if that is faulty, the previous one stays in force. On
/// exit, the service switches LUC off wherever it switched LUC on. It gives back a limit that `luc
/// power --apply` has put on the clock once that no longer fits the load. It fails if this machine
/// cannot run LUC. The systemd unit `luc.service` runs it; luc.toml(5) lists every key.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc service --check\n\
    \x20 luc service --config /etc/luc")]
pub struct Args {
    /// Directory of luc.toml, and of luc.toml.d, whose files add to it
    #[arg(long, value_name = "DIR", default_value = CONFIG, value_hint = ValueHint::DirPath)]
    config: PathBuf,
    /// Check the configuration, print what it asks for, and exit
    #[arg(long)]
    check: bool,
    /// Print a template of the configuration, which names no file system
    #[arg(long, conflicts_with = "check")]
    template: bool,
}

/// Folder of the configuration.
pub const CONFIG: &str = "/etc/luc";
/// Longest time between two looks. A mount triggers one; only a look finds a change by hand.
const LOOK: Duration = Duration::from_secs(2);
/// File that tells a new service what a killed one has done.
const MEMORY: &str = "/run/luc/service.json";

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        if self.template {
            return Ok(write!(context.out, "{}", config::template())?);
        }
        let config = read(&self.config, context.system)?;
        if self.check {
            checked(&config, context)?;
            return tell(&config, context);
        }
        let hup = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&hup))
            .map_err(anyhow::Error::from)?;
        Service {
            memory: remembered(context),
            config,
            mounts: Mounts::new(context.system),
            guarded: GuardedFileSystems::new(context.system, "service"),
            limit: KeptLimit::default(),
        }
        .run(self, &hup, context)
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

/// Reads luc.toml and the files that add to it.
pub fn read(dir: &Path, system: &dyn System) -> Result<Config, Failure> {
    let dir = std::path::absolute(dir)?;
    let dir = system.path(&dir.to_string_lossy());
    let drop_ins = fs::read_dir(dir.join("luc.toml.d"));
    let drop_ins = drop_ins.map(|all| all.filter_map(|it| Some(it.ok()?.path())).collect());
    let files = config::order(&dir.join("luc.toml"), drop_ins.unwrap_or_default());
    let source = |path: PathBuf| match fs::read_to_string(&path) {
        Ok(text) => Ok(Source { path, text }),
        Err(error) => Err(bad(&format!("cannot read {}: {error}", path.display()))),
    };
    let sources: Vec<Source> = files.into_iter().map(source).collect::<Result<_, _>>()?;
    config::read(&sources).map_err(|error| bad(&error.to_string()))
}

fn bad(why: &str) -> Failure {
    Failure::Coded(Code::Configuration, format!("service: {why}"))
}

/// Refuses an entry whose mount point holds something that LUC cannot steer. An entry that is not
/// mounted yet cannot be checked.
fn checked(config: &Config, context: &Context) -> Result<(), Failure> {
    // Without a mount table there is nothing to check by.
    let table = mounts::mounts(context.system).unwrap_or_default();
    for entry in &config.entries {
        let Names::Path(path) = &entry.names else {
            continue;
        };
        if !table.iter().any(|mount| mount.point == *path) {
            continue;
        }
        // Read-only is a state: the service waits for it to end.
        if let Err(error @ HostError::NotJournaled { .. }) = steerable::at(context.system, path) {
            return Err(bad(&format!("{}: {error}", entry.at)));
        }
    }
    Ok(())
}

/// Prints one line per entry, for `--check`.
fn tell(config: &Config, context: &mut Context) -> Result<(), Failure> {
    if config.entries.is_empty() {
        writeln!(context.out, "no file system is named: LUC stays off")?;
    }
    for entry in &config.entries {
        let groups = entry.groups.iter();
        let groups = groups.map(|(knob, path)| format!("{}={path}", knob.name));
        let knobs: Vec<String> = entry
            .settings
            .iter()
            .map(|(knob, value)| format!("{}={}", knob.name, knob.format(*value)))
            .chain(groups)
            .collect();
        let knobs = if knobs.is_empty() {
            "default knobs".to_owned()
        } else {
            knobs.join(" ")
        };
        let guard = if entry.guard { "" } else { ", no guard" };
        writeln!(
            context.out,
            "{}: {knobs}{guard} ({})",
            entry.names, entry.at
        )?;
    }
    Ok(())
}

struct Service<'a> {
    config: Config,
    memory: Memory,
    mounts: Mounts,
    guarded: GuardedFileSystems<'a>,
    limit: KeptLimit,
}

impl Service<'_> {
    /// Keeps LUC on until it is told to stop, or the whole machine refuses LUC; in the end switches
    /// off what it switched on.
    fn run(mut self, args: &Args, hup: &AtomicBool, context: &mut Context) -> Result<(), Failure> {
        let kept = self.keep(args, hup, context);
        notify::stopping();
        self.guarded.stop();
        let line = self.limit.end(context.system);
        say(context, line.as_slice())?;
        let seen = self.mounts.seen(context.system, &self.config)?;
        let actions = keep::stop(&seen, &mut self.memory);
        self.act(actions, context)?;
        let _ = fs::remove_file(context.system.path(MEMORY));
        kept
    }

    fn keep(
        &mut self,
        args: &Args,
        hup: &AtomicBool,
        context: &mut Context,
    ) -> Result<(), Failure> {
        if !self.config.entries.is_empty() {
            module::can_run(context.system)?;
        }
        let changes = Changes::of_mounts(context.system);
        // `systemctl start` succeeds once LUC is on where it can be.
        self.look(context)?;
        notify::ready();
        let pace = LOOK.min(notify::half_of_watchdog().unwrap_or(LOOK));
        let mut look = now() + pace;
        while !context.stopped() {
            if hup.swap(false, Ordering::Relaxed) {
                self.reload(args, context)?;
                look = now();
            }
            if look <= now() {
                self.look(context)?;
                look = now() + pace;
            }
            let lines = self.guarded.tick();
            say(context, &lines)?;
            let wait = look.saturating_sub(now()).min(self.guarded.wait());
            if changes.wait(wait) {
                look = now();
            }
        }
        Ok(())
    }

    /// Looks at the machine, takes the actions due, and guards what the service switched on.
    ///
    /// # Errors
    /// The whole machine refuses LUC.
    fn look(&mut self, context: &mut Context) -> Result<(), Failure> {
        let system = context.system;
        let seen = self.mounts.seen(system, &self.config)?;
        let actions = keep::next(&self.config, &seen, &mut self.memory);
        self.act(actions, context)?;
        remember(&self.memory, context);
        let guarded: Vec<Dev> = self.memory.guarded(&self.config, &seen).collect();
        let mut attached = sysfs::attached(system)?;
        attached.retain(|one| guarded.contains(&one.device));
        let lines = self.guarded.keep(attached);
        say(context, &lines)?;
        let line = self.limit.look(system);
        say(context, line.as_slice())?;
        notify::alive(&self.state(&seen));
        Ok(())
    }

    fn reload(&mut self, args: &Args, context: &mut Context) -> Result<(), Failure> {
        notify::reloading();
        match read(&args.config, context.system) {
            Ok(config) => {
                self.config = config;
                self.memory.reread();
                writeln!(context.err, "luc: service: configuration read again")?;
            }
            Err(failure) => {
                writeln!(
                    context.err,
                    "luc: {failure}; the previous configuration stays in force"
                )?;
            }
        }
        notify::ready();
        Ok(())
    }

    fn act(&mut self, actions: Vec<Action>, context: &mut Context) -> Result<(), Failure> {
        for action in actions {
            let line = match action {
                Action::Say(line) => line,
                Action::On {
                    device,
                    name,
                    settings,
                } => {
                    let system = context.system;
                    let done = module::ensure_loaded(system, None)
                        .and_then(|_| sysfs::attach(system, &name, device, &settings));
                    match done {
                        Ok(_) => format!("{name}: LUC is on"),
                        Err(
                            error @ (HostError::ModuleUnavailable { .. }
                            | HostError::KernelUnsupported { .. }
                            | HostError::NotPermitted { .. }),
                        ) => return Err(error.into()),
                        Err(error) => {
                            self.memory.failed(device);
                            error.to_string()
                        }
                    }
                }
                Action::Set {
                    device,
                    name,
                    knob,
                    value,
                    group,
                } => match set(context.system, &name, device, knob, value) {
                    Ok(()) => format!("{name}: {} is {group}", knob.name),
                    Err(error) => {
                        self.memory.failed(device);
                        error.to_string()
                    }
                },
                Action::Off { device, name } => {
                    match sysfs::detach(context.system, &name, device) {
                        Ok(()) | Err(HostError::NotOn { .. }) => {
                            format!("{name}: LUC is off")
                        }
                        Err(error) => error.to_string(),
                    }
                }
            };
            say(context, &[line])?;
        }
        Ok(())
    }

    /// A line for `systemctl status`.
    fn state(&self, seen: &Seen) -> String {
        let on = self.memory.ours(seen).count();
        let all = self.config.entries.len();
        format!("LUC is on for {on} of {all} file systems that luc.toml names")
    }
}

fn set(
    system: &dyn System,
    name: &str,
    device: Dev,
    knob: &Knob,
    value: i64,
) -> Result<(), HostError> {
    let mut all = sysfs::attached(system)?.into_iter();
    let attached = all.find(|one| one.device == device);
    let attached = attached.ok_or_else(|| HostError::NotOn { path: name.into() })?;
    sysfs::set_knob(system, name, &attached, knob, value)
}

fn say(context: &mut Context, lines: &[String]) -> Result<(), Failure> {
    for line in lines {
        writeln!(context.err, "luc: service: {line}")?;
    }
    Ok(())
}

/// Reads what an earlier service did; nothing after a boot.
fn remembered(context: &Context) -> Memory {
    let text = context.system.read(MEMORY).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Saves the memory. If /run is full, only the memory is lost: LUC goes on.
fn remember(memory: &Memory, context: &Context) {
    let path = context.system.path(MEMORY);
    let text = serde_json::to_string(memory).unwrap_or_default();
    if fs::read_to_string(&path).is_ok_and(|kept| kept == text) {
        return;
    }
    let dir = path.parent().unwrap_or(Path::new("/"));
    let made = fs::create_dir_all(dir);
    let _ = made.and_then(|()| luc_base::replace_file(&path, text.as_bytes()));
}
