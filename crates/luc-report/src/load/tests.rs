//! The commands of cells.

use super::{Load, Measurement, Mode, POLICIES, Purpose};

#[test]
fn commands_of_a_steered_cell() {
    let cell = Measurement {
        disk: "4ms:1".to_owned(),
        load: Load::CreateFsync {
            threads: 4,
            measure_ms: 2000,
            warmup_ms: 50,
        },
        mode: Mode::Pid,
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
        mode: Mode::Stock,
        repeat: 3,
        purpose: Purpose::Figures,
    };
    let (steps, bench) = cell.steps();
    assert_eq!((steps.len(), bench), (1, 0));
    assert!(steps[0].join(" ").contains("--bursts 40 --seed 3 --keep"));
}

#[test]
fn commands_of_real_workloads() {
    let line = |load: Load, mode: Mode| {
        let cell = Measurement {
            disk: "100us:64".to_owned(),
            load,
            mode,
            repeat: 1,
            purpose: Purpose::Figures,
        };
        let (steps, bench) = cell.steps();
        (cell.name(), steps[bench].join(" "))
    };
    let varmail = Load::Varmail {
        threads: 16,
        measure_ms: 2500,
        warmup_ms: 500,
    };
    let (name, command) = line(varmail, Mode::Nofsync);
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
    let (name, command) = line(metarates, Mode::Stock);
    assert_eq!(name, "metarates-4x4-100usx64-stock-r1");
    assert_eq!(
        command,
        "luc bench metarates --procs 4 --files 128 --keep --json --dir /mnt/0"
    );
    let (_, command) = line(Load::Iozone { threads: 256 }, Mode::Luc);
    assert_eq!(
        command,
        "luc bench iozone -s 128k -r 32k -e -c -t 256 --keep --json --dir /mnt/0"
    );
}

#[test]
fn policies_change_the_disk_or_the_workload_but_never_both() {
    let cell = |mode| Measurement {
        disk: "4ms:1".to_owned(),
        load: Load::Iozone { threads: 4 },
        mode,
        repeat: 1,
        purpose: Purpose::Figures,
    };
    for mode in POLICIES {
        let spec = cell(mode).disk_spec().expect("a disk");
        let special = spec.to_string() != "4ms:1";
        let expected = matches!(mode, Mode::Nojc | Mode::KernelBatching);
        assert_eq!(special, expected, "{spec}");
        assert!(!special || !mode.attached());
    }
    assert!(!cell(Mode::Nofsync).load.suits(Mode::Nofsync));
    assert!(cell(Mode::Nojc).load.suits(Mode::Nojc));
}
