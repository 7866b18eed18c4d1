//! `luc top`
//!
//! Two pure functions decide what the view does:
//! [`State::step`] takes an event, [`draw`] makes the screen. Only this
//! file and [`terminal`] do I/O.

mod draw;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
pub(super) mod text;

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use luc_control::{Dev, POLICY, knob, policies};
use luc_host::{HostError, System, sysfs};

use self::draw::draw;
use self::state::{Action, Event, State};
use self::terminal::{Input, Screen};
use super::failed;
use super::means::ByMeans;
use luc_cli::progress::Bar;
use luc_cli::units::interval;
use luc_cli::{Context, Failure, Interrupt, Verb};
use luc_watch::WatchError;
use luc_watch::blame::{BlameSample, BlameWatch};
use luc_watch::sample::{Sampler, Snapshot};
use luc_watch::time::wait;

/// Watch journals and the processes that wait for them, live
///
/// Shows the commits of each ext4 and ext3 journal, fsyncs per commit, fsync times, late fsyncs,
/// delayed writes, and what LUC does. Shows the recent history of the chosen journal, and the
/// processes that sync most or lose most time. With BPF, it needs no module; without BPF, it shows
/// the module's counts. Watching changes nothing; the keys p and o change knobs, as `luc set` does.
/// The key / filters processes by name or control group, s sorts them; b shows whose commits those
/// of the chosen journal wait for; h lists all keys; q and Escape quit.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc top\n\
    \x20 luc top --comm postgres\n\
    \x20 luc top --once --interval 10")]
pub struct Args {
    /// Seconds between two updates, 0.2 to 60
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval::<60>)]
    interval: Duration,
    /// Show only processes whose names contain this text; journals count all processes
    #[arg(long, value_name = "NAME")]
    comm: Option<String>,
    /// Show only processes whose control groups contain this text
    #[arg(long, value_name = "NAME")]
    cgroup: Option<String>,
    /// Print the numbers of one interval as text and exit
    #[arg(long)]
    once: bool,
    /// With --once: print JSON
    #[arg(long, requires = "once")]
    json: bool,
    #[command(flatten)]
    by: ByMeans,
}

impl Args {
    /// Keeps only the processes that were asked for.
    fn chosen(&self, mut snapshot: Snapshot) -> Snapshot {
        let processes = &mut snapshot.processes;
        processes.retain(|one| self.chooses(&one.name, one.cgroup.as_deref()));
        snapshot
    }

    /// Keeps only the parties that were asked for; a control group has no name of a process.
    fn chosen_to_blame(&self, mut sample: BlameSample) -> BlameSample {
        let processes = &mut sample.processes.waiters;
        processes.retain(|one| self.chooses(&one.name, one.cgroup.as_deref()));
        let groups = &mut sample.control_groups.waiters;
        groups.retain(|one| holds(Some(&one.name), self.cgroup.as_deref()));
        sample
    }

    fn chooses(&self, name: &str, cgroup: Option<&str>) -> bool {
        holds(Some(name), self.comm.as_deref()) && holds(cgroup, self.cgroup.as_deref())
    }
}

fn holds(text: Option<&str>, asked: Option<&str>) -> bool {
    asked.is_none_or(|asked| text.is_some_and(|text| text.contains(asked)))
}

/// Time between two checks for an interrupt.
const PAUSE: Duration = Duration::from_millis(100);

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        if self.once {
            return once(self, context);
        }
        if !std::io::stdout().is_terminal() {
            return Err(Failure::usage(
                "top",
                "standard output is not a terminal; `luc top --once`, `luc status` and \
                 `luc trace count` print numbers",
            ));
        }
        watch(self, context)
    }

    fn interrupt(&self) -> Interrupt {
        if self.once {
            Interrupt::Asks
        } else {
            Interrupt::AsksThen(terminal::give_back_at_once)
        }
    }
}

fn once(args: &Args, context: &mut Context) -> Result<(), Failure> {
    let sampler = Sampler::new(None, args.by.chosen(), context.system);
    let snapshot = sampler.and_then(|sampler| one_interval(sampler, args.interval, context));
    let snapshot = args.chosen(snapshot.map_err(failed("top"))?);
    if args.json {
        return context.print_json(&snapshot);
    }
    Ok(text::print(&snapshot, context.out)?)
}

/// Measures one interval; an interrupt ends it early.
pub(super) fn one_interval(
    mut sampler: Sampler,
    interval: Duration,
    context: &Context,
) -> Result<Snapshot, WatchError> {
    sampler.sample(context.system)?;
    let bar = Bar::wait("watching", interval);
    wait(interval, &context.stop);
    drop(bar);
    sampler.sample(context.system)
}

fn watch(args: &Args, context: &mut Context) -> Result<(), Failure> {
    let system = context.system;
    let sampler = Sampler::new(None, args.by.chosen(), system);
    let mut sampler = sampler.map_err(failed("top"))?;
    let first = sampler.sample(system);
    first.map_err(failed("top"))?;
    let begin = Instant::now();
    let mut state = State::new(args.interval);
    let mut latest = begin.elapsed();
    let mut watched: Option<BlameWatch> = None;
    let mut screen = Screen::new()?;
    let mut changed = true;
    while !context.stopped() {
        if changed {
            screen.show(|frame| draw(frame, &state))?;
        }
        let due = (latest + state.interval).saturating_sub(begin.elapsed());
        let input = terminal::input(PAUSE.min(due), state.typing)?;
        if input == Some(Input::Stop) {
            screen.stop()?;
            changed = true;
            continue;
        }
        let anew = screen.heed_signals()?;
        let now = begin.elapsed();
        let event = match input {
            Some(Input::Key(key)) => Event::Key(key),
            _ if now >= latest + state.interval => {
                latest = now;
                match sampler.sample(system) {
                    Ok(snapshot) => Event::Sample(args.chosen(snapshot)),
                    Err(error) => Event::Failed(failed("top")(error).to_string()),
                }
            }
            _ => Event::Tick,
        };
        let interval_over = matches!(event, Event::Sample(_));
        let had_message = state.message.is_some();
        let quiet = matches!(event, Event::Tick);
        let (next, action) = state.step(event, now);
        state = next;
        changed = anew || !quiet || input.is_some() || had_message != state.message.is_some();
        match action {
            Some(Action::Quit) => break,
            Some(Action::Set {
                device,
                shown,
                knob,
                value,
            }) => {
                let event = match set(system, device, &shown, knob, value) {
                    Ok(said) => Event::Done(said),
                    Err(failure) => Event::Failed(failure.to_string()),
                };
                state = state.step(event, now).0;
            }
            None => {}
        }
        if let Some(event) = blamed(args, &state, &mut watched, interval_over, system) {
            state = state.step(event, now).0;
            changed = true;
        }
    }
    Ok(())
}

/// Watches the journal whose blame is shown, and no other; tells whom to blame with each sample.
fn blamed(
    args: &Args,
    state: &State,
    watched: &mut Option<BlameWatch>,
    interval_over: bool,
    system: &dyn System,
) -> Option<Event> {
    let device = state.blamed();
    if watched.as_ref().map(BlameWatch::device) != device {
        *watched = None;
        match BlameWatch::new(device?, args.by.chosen(), system) {
            Ok(new) => *watched = Some(new),
            Err(error) => return Some(Event::Unblamed(failed("top")(error).to_string())),
        }
    }
    let watched = watched.as_mut()?;
    watched.poll();
    if !interval_over {
        return None;
    }
    Some(match watched.sample(system) {
        Ok(sample) => Event::Blamed(args.chosen_to_blame(sample)),
        Err(error) => Event::Unblamed(failed("top")(error).to_string()),
    })
}

/// Sets a knob or a policy, as `luc set` does.
fn set(
    system: &dyn System,
    device: Dev,
    shown: &str,
    name: &str,
    value: i64,
) -> Result<String, Failure> {
    let attached = sysfs::attached(system)?;
    let attached = attached.iter().find(|one| one.device == device);
    let attached = attached.ok_or_else(|| HostError::NotOn { path: shown.into() })?;
    if let (true, Ok(at)) = (name == POLICY, usize::try_from(value))
        && let Some(policy) = policies().get(at)
    {
        return super::set::apply_policy(system, shown, attached, policy);
    }
    let knob = knob(name).map_err(anyhow::Error::from)?;
    super::set::apply(system, shown, attached, knob, value)
}
