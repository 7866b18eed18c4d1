//! Files as they are published: what Filebench accepts without using it, and commands.

mod common;

use common::{flowop, plan, plan_with, script, thread_of};
use luc_wml::plan::{Action, Op, Position, Value};

/// Returns the notes of a thread with this flowop, without their positions.
fn notes(line: &str) -> Vec<String> {
    let notes = script(&thread_of(&format!("flowop {line}"))).notes();
    notes.into_iter().map(|note| note.message).collect()
}

#[test]
fn filebench_accepts_each_flowop_attribute_on_every_flowop() {
    let attributes = [
        "filename=set",
        "filesetname=set",
        "indexed=1",
        "fd=1",
        "srcfd=1",
        "opennext",
        "rotatefd",
        "iosize=1k",
        "random",
        "workingset=4k",
        "dsync",
        "directio",
        "noreadahead",
        "value=1",
        "highwater=1",
        "target=t",
        "blocking",
    ];
    let kinds = [
        "read",
        "write",
        "aiowrite",
        "aiowait",
        "readwholefile",
        "writewholefile",
        "appendfile",
        "appendfilerand",
        "openfile",
        "createfile",
        "closefile",
        "deletefile",
        "statfile",
        "fsync",
        "fsyncset",
        "makedir",
        "removedir",
        "listdir",
        "semblock",
        "sempost",
        "block",
        "wakeup",
        "hog",
        "delay",
        "eventlimit",
        "bwlimit",
        "iopslimit",
        "opslimit",
        "finishoncount",
        "finishonbytes",
    ];
    for kind in kinds {
        for attribute in attributes {
            let name = attribute.split('=').next().expect("a name");
            let ignored = format!("{kind} ignores `{name}`, as in Filebench 1.5");
            let notes = notes(&format!("{kind} name=x,{attribute}"));
            assert!(
                notes.is_empty() || notes == [ignored],
                "{kind} {attribute}: {notes:?}"
            );
        }
    }
    // Filebench's grammar has no such attribute of a flowop.
    for attribute in ["size=1k", "entries=1", "rate=1"] {
        let text = thread_of(&format!("flowop closefile name=x,{attribute}"));
        assert!(luc_wml::parse("x.f", &text).is_err(), "{attribute}");
    }
}

#[test]
fn ignored_attributes_change_nothing() {
    let opens = "openfile name=o,filename=set,fd=2\nflowop ";
    let plain = flowop("delay name=d,value=3");
    let odd = "delay name=d,value=3,filename=nowhere,iosize=$unset,indexed=7,fd=900";
    assert_eq!(flowop(odd).op, plain.op);
    let close = format!("{opens}closefile name=c,filesetname=set,fd=2,indexed=4");
    let close = plan(&thread_of(&format!("flowop {close}")));
    let closes = Op::CloseFile {
        fd: 2,
        rotate: false,
    };
    assert_eq!(close.processes[0].threads[0].flowops[1].op, closes);
    let noted = [
        "test.f:5:25: closefile ignores `filesetname`, as in Filebench 1.5",
        "test.f:5:46: closefile ignores `indexed`, as in Filebench 1.5",
    ];
    assert_eq!(close.notes, noted);
}

#[test]
fn a_composite_ignores_all_but_its_name_iterations_and_variables() {
    let plan = plan(
        "define flowop name=f,iters=3 { flowop hog name=h }
         define process name=p { thread name=t { flowop f name=x,value=1,iters=2 } }
         run 1",
    );
    let notes = [
        "test.f:1:22: define flowop ignores `iters`, as in Filebench 1.5",
        "test.f:2:66: f ignores `value`, as in Filebench 1.5",
    ];
    assert_eq!(plan.notes, notes);
    let flowop = &plan.processes[0].threads[0].flowops[0];
    assert_eq!(flowop.iters, Value::Fixed(2));
}

#[test]
fn the_last_of_two_equal_attributes_counts() {
    let flowop = flowop("delay name=a,value=1,name=b,value=2");
    let seconds = Value::Fixed(2);
    assert_eq!(
        (flowop.name.as_str(), flowop.op),
        ("b", Op::Delay { seconds })
    );
    let twice = "`filename` is given twice: the last one counts, as in Filebench 1.5";
    assert_eq!(
        notes("listdir name=l,filename=one,filesetname=set"),
        [twice]
    );
}

#[test]
fn a_path_needs_no_value_and_any_other_variable_can_be_given() {
    let text = "define fileset name=a,path=$dir,entries=$n
        define fileset name=b,path=\"/x/${dir}\",entries=1
        create files";
    let given = plan_with(text, &[("n", "7")]);
    let [a, b] = given.filesets.as_slice() else {
        panic!("two filesets");
    };
    assert_eq!((a.path.as_str(), a.entries), ("$dir", Value::Fixed(7)));
    assert_eq!(b.path, "/x/$dir");
    let why = "`$dir` is not set: files are made in the directory given to the run anyway";
    let notes = [format!("test.f:1:28: {why}"), format!("test.f:2:36: {why}")];
    assert_eq!(given.notes, notes);
    assert_eq!(
        plan_with(text, &[("n", "7"), ("dir", "/y")]).filesets[1].path,
        "/x//y"
    );

    let refused = |overrides: &[(&str, &str)]| {
        let owned = overrides
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        let plan = script(text).plan(&owned.collect::<Vec<(String, String)>>());
        plan.expect_err("a variable is wrong").to_string()
    };
    assert!(
        refused(&[]).contains("`$n` has no value"),
        "{}",
        refused(&[])
    );
    assert!(refused(&[]).contains("-D n=..."), "{}", refused(&[]));
    let odd = refused(&[("n", "7"), ("m", "8")]);
    assert!(odd.contains("the file has no variable `$m`"), "{odd}");
}

#[test]
fn commands_that_sync_and_drop_caches_need_no_shell() {
    let actions = |command: &str| {
        let text = format!("set $d=/srv/x\nsystem \"{command}\"\ncreate files");
        let mut actions = plan(&text).actions;
        assert_eq!(actions.pop(), Some(Action::CreateFiles));
        actions
    };
    let both = [Action::Sync, Action::DropCaches(3)];
    for command in [
        "sync",
        " sudo /bin/sync ;",
        "/usr/bin/sync $d",
        "sync .",
        "sh -c 'sync'",
    ] {
        assert_eq!(actions(command), both[..1], "{command}");
    }
    for command in [
        "echo 3 > /proc/sys/vm/drop_caches",
        "/bin/echo 3 >/proc/sys/vm/drop_caches",
        "sudo sh -c 'echo 3 > /proc/sys/vm/drop_caches'",
        "sudo bash -c \\\"echo '3' > /proc/sys/vm/drop_caches\\\"",
        "echo 3 | sudo tee /proc/sys/vm/drop_caches > /dev/null",
        "sudo sysctl -w vm.drop_caches=3",
    ] {
        assert_eq!(actions(command), both[1..], "{command}");
    }
    for command in [
        "sync; echo 3 > /proc/sys/vm/drop_caches",
        "sync && sudo sh -c 'echo 3 > /proc/sys/vm/drop_caches'",
        "sudo sh -c 'sync; echo 3 > /proc/sys/vm/drop_caches';",
    ] {
        assert_eq!(actions(command), both, "{command}");
    }
    for other in [
        "",
        "rm -rf $d",
        "sync; umount /mnt",
        "sync &",
        "sync > log",
        "echo 4 > /proc/sys/vm/drop_caches",
        "echo 3 >> stats.txt",
        "echo 3 | sudo tee stats.txt",
        "echo 3 > /proc/sys/vm/drop_caches > log",
        "sysctl vm.swappiness=0 vm.drop_caches=3",
        "sudo -u nobody sync",
    ] {
        let command = other.replace("$d", "/srv/x");
        let at = Position { line: 2, column: 1 };
        assert_eq!(actions(other), [Action::Command { command, at }], "{other}");
    }
}
