//! The commands of cells.

use super::{Load, Measurement, Purpose, Times};
use crate::plan::arm::{Arm, POLICIES};

#[test]
fn commands_of_a_steered_cell() {
    let cell = Measurement {
        disk: "4ms:1".to_owned(),
        load: Load::CreateFsync {
            threads: 4,
            times: Times::new(2000, 50),
        },
        arm: Arm::Pid,
        repeat: 2,
        purpose: Purpose::Figures,
    };
    assert_eq!(cell.name(), "create-fsync-4-4msx1-pid-r2");
    let (steps, bench) = cell.steps();
    let lines: Vec<String> = steps.iter().map(|step| step.join(" ")).collect();
    assert_eq!(lines[0], "luc on /mnt/0 --policy pid");
    assert_eq!(
        lines[bench],
        "luc bench create-fsync --threads 4 --seconds 2.000 --warmup-s 0.050 --keep --json /mnt/0"
    );
    assert_eq!(lines[3], "luc off /mnt/0 --unload");
}

#[test]
fn stock_cells_know_nothing_of_luc_but_its_workload() {
    let cell = Measurement {
        disk: "4ms:8".to_owned(),
        load: Load::WriteBurst {
            threads: 16,
            spread_us: 5000,
            bursts: 40,
        },
        arm: Arm::Stock,
        repeat: 3,
        purpose: Purpose::Figures,
    };
    let (steps, bench) = cell.steps();
    assert_eq!((steps.len(), bench), (1, 0));
    assert!(steps[0].join(" ").contains("--bursts 40 --seed 3 --keep"));
}

#[test]
fn commands_of_real_workloads() {
    let line = |load: Load, arm: Arm| {
        let cell = Measurement {
            disk: "100us:64".to_owned(),
            load,
            arm,
            repeat: 1,
            purpose: Purpose::Figures,
        };
        let (steps, bench) = cell.steps();
        (cell.name(), steps[bench].join(" "))
    };
    let varmail = Load::Varmail {
        threads: 16,
        times: Times::new(2500, 500),
    };
    let (name, command) = line(varmail, Arm::Nofsync);
    assert_eq!(name, "varmail-16-100usx64-nofsync-r1");
    assert_eq!(
        command,
        "luc bench run varmail --preset paper -D nthreads=16 --seconds 2.500 --warmup-s 0.500 --settle --seed 1 \
         --keep --json --dir /mnt/0 --no-fsync"
    );
    let metarates = Load::Metarates {
        procs: 4,
        files: 4,
        rounds: 32,
    };
    let (name, command) = line(metarates, Arm::Stock);
    assert_eq!(name, "metarates-4x4-100usx64-stock-r1");
    assert_eq!(
        command,
        "luc bench metarates --procs 4 --files 128 --keep --json --dir /mnt/0"
    );
    let (_, command) = line(Load::Iozone { threads: 256 }, Arm::Luc);
    assert_eq!(
        command,
        "luc bench iozone -s 128k -r 32k -e -c -t 256 --keep --json --dir /mnt/0"
    );
}

#[test]
fn policies_change_the_disk_or_the_workload_but_never_both() {
    let cell = |arm| Measurement {
        disk: "4ms:1".to_owned(),
        load: Load::Iozone { threads: 4 },
        arm,
        repeat: 1,
        purpose: Purpose::Figures,
    };
    for arm in POLICIES {
        let spec = cell(arm).disk_specs().expect("a disk").remove(0);
        let special = spec.to_string() != "4ms:1";
        let expected = matches!(arm, Arm::Nojc | Arm::KernelBatching);
        assert_eq!(special, expected, "{spec}");
        assert!(!special || !arm.attached());
    }
    assert!(!cell(Arm::Nofsync).load.suits(Arm::Nofsync));
    assert!(cell(Arm::Nojc).load.suits(Arm::Nojc));
}
