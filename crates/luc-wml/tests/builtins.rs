//! The workloads that come with the program.

mod common;

use common::{plan, script};
use luc_wml::plan::{Bounds, Distribution, Thread, Value};
use luc_wml::{builtin, builtin_presets};

/// `-D` accepts the values as `variables` lists them.
#[test]
fn a_variable_set_to_its_own_value_changes_nothing() {
    for (name, text) in luc_wml::BUILTINS {
        let script = script(text);
        let expected = script.plan(&[]).expect(name);
        for variable in script.variables() {
            let plan = script.plan(std::slice::from_ref(&variable)).expect(name);
            assert_eq!(plan, expected, "{name}: {variable:?}");
        }
    }
}

/// The personalities do the same as those of Filebench.
#[test]
fn builtins_are_the_stock_personalities() {
    let kinds = |thread: &Thread| {
        let kinds = thread.flowops.iter().map(|flowop| flowop.kind);
        kinds.collect::<Vec<_>>().join(" ")
    };
    let of = |name: &str| plan(builtin(name).expect(name));

    let varmail = of("varmail");
    let set = &varmail.filesets[0];
    assert_eq!(set.entries, Value::Fixed(1000));
    assert_eq!(set.dir_width, Value::Fixed(1_000_000));
    assert_eq!(set.prealloc_percent, Value::Fixed(80));
    assert_eq!(
        varmail.randoms[0].distribution,
        Distribution::CvarGamma {
            mean: 16384.0,
            shape: 1.5,
            bounds: Bounds {
                round: 0.0,
                min: f64::MIN_POSITIVE,
                max: f64::MAX
            }
        }
    );
    let thread = &varmail.processes[0].threads[0];
    assert_eq!(thread.instances, 16);
    assert_eq!(
        kinds(thread),
        "deletefile createfile appendfilerand fsync closefile openfile \
         readwholefile appendfilerand fsync closefile openfile readwholefile closefile"
    );

    let web = of("webserver");
    assert_eq!(web.filesets.len(), 2);
    assert!(web.filesets[0].read_only && !web.filesets[1].read_only);
    assert_eq!(web.filesets[0].dir_width, Value::Fixed(20));
    assert_eq!(web.filesets[1].entries, Value::Fixed(1));
    assert_eq!(web.filesets[1].prealloc_percent, Value::Fixed(100));
    let thread = &web.processes[0].threads[0];
    assert_eq!(thread.instances, 100);
    assert_eq!(thread.flowops.len(), 31);
    let expected = "openfile readwholefile closefile ".repeat(10) + "appendfilerand";
    assert_eq!(kinds(thread), expected);

    let files = of("fileserver");
    assert_eq!(files.filesets[0].entries, Value::Fixed(10_000));
    let thread = &files.processes[0].threads[0];
    assert_eq!(thread.instances, 50);
    assert_eq!(
        kinds(thread),
        "createfile writewholefile closefile openfile appendfilerand closefile \
         openfile readwholefile closefile deletefile statfile"
    );

    let oltp = of("oltp");
    let instances: Vec<u64> = oltp.processes.iter().map(|p| p.instances).collect();
    assert_eq!(instances, [1, 10, 200]);
    for (process, expected) in [
        "aiowrite aiowait semblock",
        "aiowrite hog semblock aiowait",
        "read hog sempost sempost eventlimit",
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(kinds(&oltp.processes[process].threads[0]), *expected);
    }
    let write = &oltp.processes[1].threads[0].flowops[0];
    assert_eq!(write.iters, Value::Fixed(100));
    let transfer = write.op.transfer().expect("a transfer");
    assert!(transfer.random && transfer.target.rotate && transfer.target.flags.dsync);
    assert!(!transfer.target.flags.direct_io);
    assert_eq!(transfer.io_bytes, Value::Fixed(2048));
    assert_eq!(oltp.event_rate_per_s, Some(Value::Fixed(0)));
}

#[test]
fn the_papers_presets() {
    let preset = |name: &str| {
        let overrides = builtin_presets(name, "paper").expect(name);
        let script = script(builtin(name).expect(name));
        script.plan(&overrides).expect(name)
    };
    let varmail = preset("varmail");
    assert_eq!(varmail.processes[0].threads[0].instances, 64);
    assert_eq!(varmail.filesets[0].entries, Value::Fixed(256));
    assert_eq!(varmail.filesets[0].size, Value::Fixed(1024));
    for flowop in &varmail.processes[0].threads[0].flowops {
        if let Some(transfer) = flowop.op.transfer() {
            assert_eq!(transfer.io_bytes, Value::Fixed(1024), "{}", flowop.name);
        }
    }
    let oltp = preset("oltp");
    let threads: u64 = oltp.processes.iter().map(|p| p.instances).sum();
    assert_eq!(threads, 48);
    assert_eq!(oltp.filesets[0].entries, Value::Fixed(48));
    assert_eq!(builtin_presets("webserver", "paper"), None);
    assert_eq!(builtin_presets("varmail", "other"), None);
}
