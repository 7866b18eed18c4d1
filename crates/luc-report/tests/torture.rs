//! The report of a campaign of power cuts.

use luc_report::text;
use luc_report::torture::{Did, Torment, Torture, Unfinished, document};
use luc_torture::{Loss, Summary};

fn torment(policy: &str, losses: Vec<Loss>) -> Torment {
    Torment {
        kernel: "6.12".to_owned(),
        kernel_release: "6.12.95-test".to_owned(),
        scenario: "ordered".to_owned(),
        policy: policy.to_owned(),
        summary: Summary {
            log_entries: 9000,
            flushes: 500,
            cuts: 40,
            syncs_verified: 30_000,
            syncs: 1700,
            files: 3000,
            fscks: 10,
            torn: 1,
            losses,
        },
        did: (policy != "stock").then_some(Did {
            held: 90,
            copies: 12,
        }),
        stock_loses: None,
    }
}

fn loss() -> Loss {
    Loss {
        index: 77,
        mode: "none".to_owned(),
        seed: 5,
        what: "name-lost: t1/f: expected a file, found nothing".to_owned(),
    }
}

#[test]
fn losses_are_told_apart_and_named() {
    let torture = Torture {
        torments: vec![
            torment("luc", Vec::new()),
            torment("copyout", vec![loss(), loss()]),
            torment("stock", vec![loss()]),
        ],
        unfinished: vec![Unfinished {
            scenario: "ext3 luc".to_owned(),
            why: "kernel 6.12 at 1000 MIPS: the guest panicked".to_owned(),
        }],
    };
    assert_eq!(torture.losses(), (2, 1));
    insta::assert_snapshot!(text::render(&document(&torture), false));
}

/// If the kernel is known to lose data, and does so in the same run, LUC is not to blame; otherwise
/// it is.
#[test]
fn a_known_fault_of_the_kernel_is_not_lucs_but_only_where_it_shows() {
    let known = |policy: &str, losses| Torment {
        stock_loses: Some("replay".to_owned()),
        ..torment(policy, losses)
    };
    let torture = |torments| Torture {
        torments,
        unfinished: Vec::new(),
    };
    let shown = torture(vec![
        known("luc", vec![loss(), loss()]),
        known("stock", vec![loss()]),
    ]);
    assert_eq!(shown.losses(), (0, 3));
    let not_shown = torture(vec![known("luc", vec![loss()]), known("stock", Vec::new())]);
    assert_eq!(not_shown.losses(), (1, 0));
    let mut elsewhere = known("stock", vec![loss()]);
    elsewhere.kernel = "7.2".to_owned();
    let other_kernel = torture(vec![known("luc", vec![loss()]), elsewhere]);
    assert_eq!(other_kernel.losses(), (1, 1));
    let unknown = torture(vec![
        torment("luc", vec![loss()]),
        torment("stock", vec![loss()]),
    ]);
    assert_eq!(unknown.losses(), (1, 1));
}

#[test]
fn results_survive_json() {
    let torture = Torture {
        torments: vec![torment("luc (on and off)", Vec::new())],
        unfinished: Vec::new(),
    };
    let text = serde_json::to_string(&torture).expect("serializes");
    assert_eq!(
        serde_json::from_str::<Torture>(&text).expect("parses"),
        torture
    );
}
