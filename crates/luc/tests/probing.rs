//! `luc probe` on machines that lack one thing each.

#![allow(clippy::format_collect)] // a few lines, once

mod common;

use common::Pretended;
use insta::assert_snapshot;
use luc_test::command::dense;
use luc_test::machine::RELEASE;

#[test]
fn a_machine_that_can() {
    let machine = Pretended::new();
    assert_snapshot!(machine.run(&["probe"]));
    machine.run(&["on", "/srv/data"]);
    assert_snapshot!(dense(&machine.run(&["probe", "--json"])));
}

/// The lines about what is missing, and the verdict.
fn verdict(change: impl Fn(&Pretended)) -> String {
    let machine = Pretended::new();
    change(&machine);
    let said = machine.run(&["probe"]);
    let telling = said.lines().filter(|line| {
        ["missing", "unknown", "note", "luc:", "[exit", "This"]
            .iter()
            .any(|begin| line.starts_with(begin))
    });
    telling.map(|line| format!("{line}\n")).collect()
}

#[derive(Default)]
struct Verdicts(String);

impl Verdicts {
    fn on(&mut self, name: &str, change: impl Fn(&Pretended)) {
        let said = format!("-- {name}\n{}", verdict(change));
        self.0.push_str(&said);
    }
}

#[test]
fn kernels_that_lack_something() {
    let tracing = "/sys/kernel/tracing";
    let mut machine = Verdicts::default();
    machine.on("not root", |m| {
        m.put("/proc/self/status", "CapEff:\t0000000000010000\n");
    });
    machine.on("arm", |m| m.put("/proc/sys/kernel/arch", "aarch64\n"));
    machine.on("no direct calls", |m| {
        m.put(&format!("/boot/config-{RELEASE}"), "CONFIG_MODULES=y\n");
    });
    machine.on("no configuration", |m| {
        m.remove(&format!("/boot/config-{RELEASE}"));
    });
    machine.on("packed configuration", |m| {
        m.remove(&format!("/boot/config-{RELEASE}"));
        m.put(
            "/proc/config.gz",
            gzip(b"CONFIG_MODULES=y\n# CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS is not set\n"),
        );
    });
    machine.on("ftrace off", |m| {
        m.put("/proc/sys/kernel/ftrace_enabled", "0\n");
    });
    machine.on("no ftrace", |m| {
        m.remove("/proc/sys/kernel/ftrace_enabled");
    });
    machine.on("functions gone", |m| {
        m.put(
            &format!("{tracing}/available_filter_functions"),
            "jbd2_journal_commit_transaction [jbd2]\njbd2_log_wait_commit [jbd2]\n",
        );
    });
    machine.on("functions by kallsyms", |m| {
        m.remove(tracing);
        let needed = luc_control::hooked_functions()
            .iter()
            .filter(|it| it.needed);
        let lines: String = needed
            .map(|it| format!("0000000000000000 T {}\t[jbd2]\n", it.name))
            .collect();
        m.put("/proc/kallsyms", lines);
    });
    machine.on("ext4 not loaded", |m| {
        m.put(
            &format!("{tracing}/available_filter_functions"),
            "vfs_read\n",
        );
        m.remove("/sys/fs/ext4");
        m.put("/proc/self/mountinfo", "");
    });
    machine.on("taken by a BPF program", |m| {
        m.put(
            &format!("{tracing}/enabled_functions"),
            "vfs_read (1) R\njbd2_log_wait_commit (1) R   D   M \ttramp: 0xffff\n\
             jbd2_complete_transaction (1)\n",
        );
    });
    machine.on("one livepatched", |m| {
        m.put(
            &format!("{tracing}/enabled_functions"),
            "ext4_sync_file (1) R I\n",
        );
        let patch = "/sys/kernel/livepatch/livepatch_cve";
        m.put(&format!("{patch}/enabled"), "1\n");
        m.put(&format!("{patch}/vmlinux/patched"), "1\n");
        m.put(&format!("{patch}/vmlinux/ext4_sync_file,1/x"), "");
        m.put(&format!("{patch}/vmlinux/vfs_read,1/x"), "");
    });
    assert_snapshot!(machine.0);
}

#[test]
fn modules_that_lack_something() {
    let module = format!("/lib/modules/{RELEASE}");
    let mut machine = Verdicts::default();
    machine.on("modules disabled", |m| {
        m.put("/proc/sys/kernel/modules_disabled", "1\n");
    });
    machine.on("secure boot", |m| {
        m.put(
            "/sys/kernel/security/lockdown",
            "none [integrity] confidentiality\n",
        );
        m.put(
            "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
            [6, 0, 0, 0, 1],
        );
    });
    machine.on("secure boot, signed", |m| {
        m.put(
            "/sys/kernel/security/lockdown",
            "none [integrity] confidentiality\n",
        );
        m.put(
            &format!("{module}/extra/luc.ko"),
            "\x7fELF~Module signature appended~\n",
        );
    });
    machine.on("no module", |m| {
        m.remove(&format!("{module}/extra"));
        m.remove(&format!("{module}/modules.dep"));
    });
    machine.on("no module, no headers", |m| m.remove(&module));
    machine.on("nothing to steer", |m| {
        m.remove("/sys/fs/ext4");
        m.put("/sys/fs/ext4/vdd/journal_task", "77\n");
        m.put(
            "/proc/self/mountinfo",
            "20 1 254:48 / /srv/frozen rw - ext4 /dev/vdd ro\n",
        );
    });
    assert_snapshot!(machine.0);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).expect("memory");
    packer.finish().expect("memory")
}

#[test]
fn a_module_found_without_depmod() {
    let machine = Pretended::new();
    machine.remove(&format!("/lib/modules/{RELEASE}/modules.dep"));
    assert!(machine.run(&["probe"]).contains("extra/luc.ko"));
    assert!(machine.run(&["on", "/srv/data"]).starts_with("on: "));
}
