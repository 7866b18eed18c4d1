//! A measure names the machine of the energy model by a factor of its place.

use luc_campaign::cell::Versions;
use luc_campaign::places::sim::Sim;
use luc_campaign::result::Measured;
use luc_campaign::show::Shown;
use luc_campaign::{Store, campaigns, measures, points, sheets};

const TEXT: &str = r#"
title = "Machines"

[[block]]
name = "two"
place = "sim"
bench = "burst --threads 2 --bursts 3 --seed {seed} {dir}"
arms = ["stock"]
factors = { mips = 1600, vcpus = 4, disk = ["nehalem-hdd", "sandybridge-hdd"] }

[[table]]
title = "Watts"
block = "two"
rows = ["disk"]
columns = [{ heading = "watts", arm = "stock", measure = "model_watts:{disk}" }]
"#;

#[test]
fn each_disk_has_the_watts_of_its_own_machine() {
    let campaign = campaigns::parse("machines.toml", TEXT).expect("sound");
    let dir = tempfile::tempdir().expect("a folder");
    let store = Store::open(dir.path()).expect("a store");
    let mut expected = Vec::new();
    for point in points::all(&campaign) {
        let cell = point.cell(1);
        let arms = Sim.simulate(&cell).expect("simulated");
        let named = format!("model_watts:{}", point.value("disk"));
        expected.push(measures::value(&named, &arms[0], &cell).expect("watts"));
        let kernel_release = "simulated".to_owned();
        let measured = Measured {
            kernel_release,
            arms,
        };
        store
            .keep(&cell, &Versions::new(), measured, 1.0)
            .expect("kept");
    }
    let results = store.read().expect("readable");
    let sheet = &sheets::from_tables(&Shown::new(&campaign, &results, None))[0];
    let shown = sheet.rows.iter().map(|row| row[1].parse::<f64>());
    let shown: Vec<f64> = shown.collect::<Result<_, _>>().expect("numbers");
    assert_eq!(shown, expected);
    // The workstation of 2009 draws more than the small server.
    assert!(shown[0] > 1.5 * shown[1], "{shown:?}");
}

#[test]
fn a_machine_that_no_factor_names_is_refused() {
    for (before, after, why) in [
        (
            "{disk}",
            "{dik}",
            "no factor dik of the place sim; did you mean disk?",
        ),
        ("{disk}", "{clocks}", "the block has no values of clocks"),
        ("\"sandybridge-hdd\"", "\"4ms:1\"", "no machine 4ms"),
    ] {
        let text = TEXT.replacen(before, after, 1);
        let said = campaigns::parse("machines.toml", &text).expect_err(after);
        let said = said.to_string();
        assert!(said.contains(why) && !said.contains('\n'), "{said}");
    }
}
