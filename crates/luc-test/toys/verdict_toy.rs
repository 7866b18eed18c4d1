//! Writes take long without waiting for a commit.

use super::{Kind, Standing};
use crate::diagnosis::account::Account;
use crate::diagnosis::evidence::{BOUND_SHARE_MIN, Case, Verdict, VerdictKind};

pub(super) const KIND: Kind = Kind {
    of: VerdictKind::Toy,
    name: "toy",
    what: "writes take long without any commit",
    answer: None,
    by_module: false,
    holds: |case| case.account().of_operations(own_ns(case.account())) >= BOUND_SHARE_MIN,
    verdict,
    advise: |_, _, advice| advice.push("Write less.".into()),
    undermined: |_| false,
    of_luc: false,
    has_sufferers: false,
    standing: Standing::Cause,
    largest: None,
};

fn own_ns(account: &Account) -> f64 {
    account.write_ns - account.buffer_ns
}

fn verdict(case: &Case<'_>) -> Verdict {
    let own = case.per_s(own_ns);
    case.verdict(VerdictKind::Toy, own_ns)
        .with("Writes alone take {} per second.", [("own_per_s_ns", own)])
}
