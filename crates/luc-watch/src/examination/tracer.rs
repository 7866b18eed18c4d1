//! An examination with the tracer.

use std::time::{Duration, Instant};

use luc_base::Stop;
use luc_base::words::counted;
use luc_bpf::{Settings, Tracer, TracerError};
use luc_host::{System, watching};
use luc_trace::{SPAN_BYTES, Span, Trace};

use crate::LossCauses;
use crate::recording::PAUSE;
use crate::time::now_ns;

/// Maximum number of spans kept in memory, about 1 GiB of them.
const SPANS_MAX: usize = 8_000_000;

/// Traces into memory until `limit`, an interrupt, or `SPANS_MAX`. Notes what is missing. Returns
/// the start and end, too, ns of the tracer's clock.
pub(super) fn watch(
    tracer: &mut Tracer,
    settings: &Settings,
    limit: Duration,
    stop: &Stop,
    system: &dyn System,
    notes: &mut Vec<String>,
) -> Result<(Trace, (u64, u64)), TracerError> {
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
    while begin.elapsed() < limit && !stop.is_set() && spans.len() < SPANS_MAX {
        std::thread::sleep(PAUSE.min(limit));
        tracer.poll(|taken| take(taken, &mut spans));
    }
    let watched_ns = (begin_ns, now_ns());
    watching::detach(tracer, system)?;
    tracer.poll(|taken| take(taken, &mut spans));
    if spans.len() >= SPANS_MAX {
        notes.push(format!(
            "the events filled the memory after {:.1} s; the verdict covers only this time",
            begin.elapsed().as_secs_f64()
        ));
    }
    let mut trace = Trace::from_spans(spans);
    trace.unseen = tracer.attached().unseen();
    trace.spans_lost = tracer.lost()?.saturating_add(unknown);
    if trace.spans_lost > 0 {
        let lost = counted(trace.spans_lost, "event was", "events were");
        let causes = LossCauses::from_tracer(tracer, false);
        // The doctor's own ring has a fixed size, but it can judge a recording as well.
        let larger_kib = settings.ring_kib.saturating_mul(4);
        let larger = format!("luc trace record --buffer-kib {larger_kib}, then luc doctor --from");
        notes.push(format!("{lost} lost: {}", causes.advice(&larger)));
    }
    Ok((trace, watched_ns))
}
