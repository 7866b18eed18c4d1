//! Spans for tests.

use luc_control::Dev;
use luc_trace::{Span, SpanKind};
use proptest::prelude::*;

/// The file system of all spans here.
pub const DEV: Dev = Dev {
    major: 259,
    minor: 3,
};

fn any_kind() -> impl Strategy<Value = SpanKind> {
    prop::sample::select(&SpanKind::ALL[..])
}

/// A span of any bytes.
pub fn any_span() -> impl Strategy<Value = Span> {
    let numbers = any::<[u64; 6]>();
    let ids = any::<[u32; 5]>();
    (
        any_kind(),
        any_kind(),
        numbers,
        ids,
        any::<i64>(),
        any::<i32>(),
    )
        .prop_map(|(kind, within, numbers, ids, amount, result)| {
            let [begin_ns, end_ns, object, a, b, c] = numbers;
            let [pid, tgid, wanted, done_tid, flags] = ids;
            Span {
                kind,
                begin_ns,
                end_ns,
                object,
                amount,
                marks_ns: [a, b, c],
                dev: DEV,
                pid,
                tgid,
                tid: wanted,
                done_tid,
                result,
                within,
                flags,
            }
        })
}
