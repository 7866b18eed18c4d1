//! The tracer as verbs use it: which file systems it watches, what it lacks,
//! and why there is none.

use std::time::{Duration, Instant};

use luc_bpf::{Settings, Tracer, TracerError};
use luc_host::{HostError, System, process, watching};
use luc_trace::{SPAN_BYTES, Span, Trace};

use crate::losses::Causes;
use luc_cli::Context;
use luc_cli::exit::Failure;
use luc_cli::progress::Bar;
use luc_cli::units::counted;

/// How often the buffers are emptied: often enough to keep them from filling,
/// seldom enough to disturb nothing.
pub const PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of spans kept in memory, about 1 GiB of them.
const SPANS_MAX: usize = 8_000_000;

/// Attaches the tracer, and notes what it cannot see. The inner error is the
/// tracer's: the caller may have another source.
pub fn attach(
    settings: &Settings,
    context: &mut Context,
) -> Result<Result<Tracer, TracerError>, Failure> {
    let tracer = watching::attach(settings, context.system);
    for note in tracer.iter().flat_map(|tracer| tracer.attached().notes()) {
        context.note(format_args!("{note}"))?;
    }
    Ok(tracer)
}

/// The failure of a verb that cannot do without the tracer.
pub fn untraceable(verb: &'static str, error: TracerError, system: &dyn System) -> Failure {
    match error {
        TracerError::Denied { why } => HostError::NotPermitted {
            what: format!("trace with BPF ({why})"),
            fix: if watching::may_trace(system) {
                "this process has the privileges, so the kernel or a container denies BPF to everybody; \
                 `luc probe` tells more"
            } else {
                "run it as root, or with CAP_BPF and CAP_PERFMON, on the host rather than in a container"
            }
            .into(),
        }
        .into(),
        TracerError::NoCgroup { .. } | TracerError::TooMany { .. } => Failure::usage(verb, error),
        other => Failure::trace("recording", other),
    }
}

/// Traces into memory until `limit`, an interrupt, or `SPANS_MAX`. `ring_kib` is the size of the
/// tracer's ring. Returns the start and end, too, ns of the monotonic clock.
pub fn watch(
    mut tracer: Tracer,
    ring_kib: u32,
    limit: Duration,
    context: &mut Context,
) -> Result<(Trace, (u64, u64)), Failure> {
    let begin_ns = now_ns();
    let begin = Instant::now();
    let mut spans = Vec::new();
    let mut unknown = 0;
    let mut take = |taken: &[[u8; SPAN_BYTES]], spans: &mut Vec<Span>| {
        for bytes in taken {
            match Span::from_bytes(bytes) {
                Some(span) => spans.push(span),
                None => unknown += 1,
            }
        }
    };
    let system = context.system;
    let failed = |error: TracerError| untraceable("doctor", error, system);
    let bar = Bar::wait("watching", limit);
    while begin.elapsed() < limit && !context.stopped() && spans.len() < SPANS_MAX {
        std::thread::sleep(PAUSE.min(limit));
        tracer.poll(|taken| take(taken, &mut spans));
    }
    drop(bar);
    let end_ns = now_ns();
    tracer.detach();
    tracer.poll(|taken| take(taken, &mut spans));
    if spans.len() >= SPANS_MAX {
        context.note(format_args!(
            "there were so many events that memory was full after {:.1} s; the verdict covers only \
             this time",
            begin.elapsed().as_secs_f64()
        ))?;
    }
    let mut trace = Trace::of(spans);
    trace.unseen = tracer.attached().unseen();
    trace.cgroups = process::cgroups(context.system);
    trace.spans_lost = tracer.lost().map_err(failed)?.saturating_add(unknown);
    if trace.spans_lost > 0 {
        let lost = counted(trace.spans_lost, "event was", "events were");
        let causes = Causes::of(&tracer, false);
        // The doctor's own ring has a fixed size, but it can judge a recording as well.
        let larger_kib = ring_kib.saturating_mul(4);
        let larger = format!("luc trace record --buffer-kib {larger_kib}, then luc doctor --from");
        let why = causes.advice(&larger);
        context.note(format_args!("{lost} lost: {why}"))?;
    }
    Ok((trace, (begin_ns, end_ns)))
}

/// Reads the monotonic clock, which the tracer uses.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    // The clock starts at boot, and its nanoseconds are below a second.
    let whole = |part: i64| u64::try_from(part).unwrap_or(0);
    whole(now.tv_sec) * 1_000_000_000 + whole(now.tv_nsec)
}
