//! Figures of the presets as a table, under the loads of data sheets: it shows the effect of a
//! change of the model or of a value.

use std::fmt::Write as _;

use luc_disk::{Figures, presets};

#[test]
fn figures_of_the_presets() {
    let mut table = format!(
        "{:<16} {:>20} {:>20} {:>14} {:>10}\n{:<16} {:>9} {:>10} {:>9} {:>10} {:>6} {:>7} {:>10}\n",
        "4 GiB",
        "4K random reads/s",
        "4K random writes/s",
        "stream MB/s",
        "log sync",
        "",
        "1 deep",
        "32 deep",
        "1 deep",
        "32 deep",
        "read",
        "write",
        "us",
    );
    for preset in presets() {
        let f = Figures::from_params(&preset.params().unwrap());
        writeln!(
            table,
            "{:<16} {:>9.0} {:>10.0} {:>9.0} {:>10.0} {:>6.0} {:>7.0} {:>10.0}",
            preset.name,
            f.read_4k_per_s,
            f.read_4k_depth32_per_s,
            f.write_4k_per_s,
            f.write_4k_depth32_per_s,
            f.read_stream_per_s_bytes / 1e6,
            f.write_stream_per_s_bytes / 1e6,
            f.log_sync_ns / 1e3,
        )
        .unwrap();
    }
    insta::assert_snapshot!(table);
}
