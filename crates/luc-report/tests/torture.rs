//! What a campaign of power cuts prints.

use luc_report::text;
use luc_report::torture::{Torment, Torture, document};
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
            losses,
        },
    }
}

#[test]
fn losses_are_told_apart_and_named() {
    let loss = Loss {
        index: 77,
        mode: "none".to_owned(),
        seed: 5,
        what: "name-lost: t1/f: expected a file, found nothing".to_owned(),
    };
    let torture = Torture {
        torments: vec![
            torment("luc", Vec::new()),
            torment("copyout", vec![loss.clone(), loss.clone()]),
            torment("stock", vec![loss]),
        ],
    };
    assert_eq!(torture.losses(), (2, 1));
    insta::assert_snapshot!(text::render(&document(&torture), false));
}

#[test]
fn results_survive_json() {
    let torture = Torture {
        torments: vec![torment("luc (on and off)", Vec::new())],
    };
    let text = serde_json::to_string(&torture).expect("serializes");
    assert_eq!(
        serde_json::from_str::<Torture>(&text).expect("parses"),
        torture
    );
}
