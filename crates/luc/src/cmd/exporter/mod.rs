//! `luc exporter`

mod blame;
mod families;
mod guards;
mod http;
mod text;
mod textfile;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueHint;
use luc_host::{System, journal};
use luc_power::meter::Meter;

use super::means::ByMeans;
use super::{failed, service};
use luc_cli::units::interval;
use luc_cli::{Context, Failure, Interrupt, Verb};
use luc_watch::blame::BlameWatch;
use luc_watch::mounted::Mounts;
use luc_watch::sample::Sampler;
use luc_watch::time::{now, wait};

/// Serve the numbers of `luc top` to Prometheus
///
/// Answers GET /metrics, or keeps a file up to date for the textfile collector of `node_exporter`.
/// With BPF, it counts the commits, syncs and waits of every ext4 and ext3 journal from the moment
/// it starts, and the machine's energy if it has counters. For journals with LUC on, it also serves
/// the counters of `luc status`. If neither BPF nor the module is available, every
/// `luc_tracer_attached` is 0 and the exporter keeps running. The package puts a dashboard of the
/// metrics and alerting rules into /usr/share/luc (grafana-dashboard.json, prometheus-alerts.yml).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n\
    \x20 luc exporter\n\
    \x20 luc exporter --listen 0.0.0.0:9797\n\
    \x20 luc exporter --blame /srv/data\n\
    \x20 luc exporter --textfile /var/lib/prometheus/node-exporter/luc.prom")]
pub struct Args {
    /// Serve GET /metrics at this address; anyone who can connect can read the metrics
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:9797",
        conflicts_with_all = ["textfile", "once"]
    )]
    listen: SocketAddr,
    /// Write this file instead; `node_exporter` reads only names that end in .prom. The exporter
    /// removes the file at exit, so that nobody reads stale numbers
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    textfile: Option<PathBuf>,
    /// Seconds between two writes of the file, 0.2 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "15", requires = "textfile", value_parser = interval::<3600>)]
    interval: Duration,
    /// Write the metrics once and exit: to the file, which stays, or to standard output. They have
    /// no counts of the tracer, because it has only just started
    #[arg(long)]
    once: bool,
    /// Also count whose commits and data each control group waits for on this file system, by its
    /// mount point or device; repeat it for more. This traces every sync and write there, at
    /// several times the cost
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, conflicts_with = "once")]
    blame: Vec<PathBuf>,
    #[command(flatten)]
    by: ByMeans,
}

/// Time between two checks for an interrupt.
const PAUSE: Duration = Duration::from_millis(200);

impl Verb for Args {
    fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let system = context.system;
        let mut blames = Vec::new();
        if !self.blame.is_empty() {
            for device in journal::devs(&self.blame, system)? {
                let watch = BlameWatch::new(device, self.by.chosen(), system);
                blames.push(watch.map_err(failed("exporter"))?);
            }
        }
        let sampler = Sampler::even_blind(None, self.by.chosen(), system);
        let sampler = sampler.map_err(failed("exporter"))?;
        let mut pages = Pages {
            blames,
            sampler: sampler.without_processes().with_groups(),
            mounts: Mounts::new(system),
            energy: Meter::find(&system.path("/"), None).ok(),
            forget_traced: self.once,
        };
        let first = pages.sampler.read(system);
        for lack in first.map_err(failed("exporter"))?.lacks {
            context.note(format_args!("{lack}"))?;
        }
        if let Some(file) = &self.textfile {
            return keep(file, self, &mut pages, context);
        }
        if self.once {
            let page = pages.next(system)?;
            return Ok(context.out.write_all(page.as_bytes())?);
        }
        let server = http::Server::new(self.listen)?;
        let at = server.address()?;
        writeln!(context.out, "serving http://{at}/metrics")?;
        context.out.flush()?;
        while !context.stopped() {
            server.serve(PAUSE, || {
                pages.next(system).map_err(|failure| failure.to_string())
            })?;
            pages.poll(system);
        }
        Ok(())
    }

    fn interrupt(&self) -> Interrupt {
        Interrupt::Asks
    }
}

/// The pages, one after the other.
struct Pages {
    blames: Vec<BlameWatch>,
    sampler: Sampler,
    mounts: Mounts,
    energy: Option<Meter>,
    /// Whether the tracer has only just started whenever a page is made.
    forget_traced: bool,
}

impl Pages {
    /// To be called several times a second, as events that nobody fetches are lost.
    fn poll(&mut self, system: &dyn System) {
        for watch in &mut self.blames {
            watch.add_up(system);
        }
    }

    /// Polls until the time is over or an interrupt comes.
    fn poll_for(&mut self, time: Duration, context: &Context) {
        let end = now() + time;
        while !context.stopped() && now() < end {
            wait(PAUSE.min(end.saturating_sub(now())), &context.stop);
            self.poll(context.system);
        }
    }

    fn next(&mut self, system: &dyn System) -> Result<String, Failure> {
        let reading = self.sampler.read(system);
        let mut reading = reading.map_err(failed("exporter"))?;
        let mut energy = self.energy.as_ref().map(Meter::sample);
        if self.forget_traced {
            reading.forget_traced();
            energy = None;
        }
        // Many machines have no luc.toml; a faulty one is the service's to report.
        let wanted = service::read(Path::new(service::CONFIG), system)
            .and_then(|config| Ok(self.mounts.named(system, &config)?));
        let mut all = families::families(&reading);
        all.push(families::wanted(&reading, &wanted.unwrap_or_default()));
        all.extend(energy.map(|energy| families::energy(&energy)));
        all.extend(guards::families(&reading, system));
        let blamed = self.blames.iter().filter_map(|watch| {
            let mut journals = reading.journals.iter();
            let journal = journals.find(|journal| journal.device == watch.device())?;
            let blamed = blame::Blamed {
                totals: watch.totals(),
                lost: watch.not_added_up().ok(),
            };
            Some((journal, blamed))
        });
        all.extend(blame::families(&blamed.collect::<Vec<_>>()));
        Ok(text::render(&all))
    }
}

/// Rewrites the file every interval, and removes it at the end; with `--once` writes it once.
fn keep(file: &Path, args: &Args, pages: &mut Pages, context: &mut Context) -> Result<(), Failure> {
    if file.extension().is_none_or(|ending| ending != "prom") {
        let shown = file.display();
        context.note(format_args!(
            "node_exporter reads only files whose names end in .prom, which {shown} does not"
        ))?;
    }
    textfile::replace(file, &pages.next(context.system)?)?;
    if args.once {
        return Ok(());
    }
    let kept = loop {
        pages.poll_for(args.interval, context);
        if context.stopped() {
            break Ok(());
        }
        let page = pages.next(context.system);
        let written = page.and_then(|page| textfile::replace(file, &page));
        if written.is_err() {
            break written;
        }
    };
    textfile::remove(file);
    kept
}

#[cfg(test)]
mod tests;
