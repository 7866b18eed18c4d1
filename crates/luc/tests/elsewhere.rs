//! A file system that is not mounted here, but in another namespace, on a fake machine.

mod common;

use common::Pretended;
use insta::assert_snapshot;
use luc_host::System as _;

#[test]
fn a_file_system_that_is_mounted_elsewhere_has_three_names() {
    let machine = Pretended::new();
    machine.run(&["on", "/srv/data"]);
    let file = "/proc/self/mountinfo";
    let table = machine.read(file).expect("a mount table");
    let here: Vec<&str> = table
        .lines()
        .filter(|line| !line.contains("/dev/vdb"))
        .collect();
    machine.put(file, here.join("\n"));
    machine.put("/proc/fs/ext4/vdb/options", "rw\nerrors=continue\n");
    let mut said = machine.run(&["status"]);
    for words in [
        // Nothing is mounted there any more.
        &["off", "/srv/data"][..],
        &["status", "/srv/data"],
        &["set", "vdb", "batching", "off"],
        &["set", "/dev/vdb", "batching", "returns"],
        &["set", "254:16", "kp_milli"],
        &["doctor", "--seconds", "1", "vdb"],
        &["off", "vdb"],
        &["on", "254:16"],
        &["off", "254:16"],
        &["on", "/dev/vdb"],
        &["off", "/dev/vdb"],
        &["off", "vdz"],
        &["off", "9:9"],
    ] {
        let words_said = machine.run(words);
        said += &["$ ", &words.join(" "), "\n"].concat();
        said += words_said
            .lines()
            .take(3)
            .collect::<Vec<_>>()
            .join("\n")
            .trim_end();
        said += "\n";
    }
    let page = machine.run(&["probe"]);
    let row = page.lines().find(|line| line.contains(" vdb "));
    said += row.expect("a row");
    assert_snapshot!(said);
}
