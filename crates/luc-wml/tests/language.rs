//! Every statement of the language, and its result in a plan.

mod common;

use common::{flowop, plan, plan_with, script, thread_of};
use luc_wml::plan::{
    Action, FilesetId, Op, OpenFlags, Plan, Quit, RandomId, Target, Transfer, Value,
};

type Makes<T> = fn(T) -> Op;

/// Returns the two elements of a list, which must have exactly two.
fn two<T: std::fmt::Debug>(list: &[T]) -> &[T; 2] {
    list.try_into().expect("two")
}

#[test]
fn variables_of_every_kind() {
    let text = "
        set $n=3          # plain
        set $k=2k
        set $m=2m
        set $g=2g
        set $yes=true
        set $word=some/path-1.x
        set $quoted=\"with blanks, and ${n}\"
        set $copy=$k
        define fileset name=a,path=$quoted,entries=$n,size=$k,dirwidth=$m,dirgamma=$copy,reuse=$yes
        define fileset name=b,path=${word},entries=1,size=$g
        create files
    ";
    let plan = plan(text);
    let [a, b] = two(&plan.filesets);
    assert_eq!(a.path, "with blanks, and 3");
    assert_eq!(a.entries, Value::Fixed(3));
    assert_eq!(a.size, Value::Fixed(2048));
    assert_eq!(a.dir_width, Value::Fixed(2 << 20));
    assert_eq!(a.dir_gamma, Value::Fixed(2048));
    assert!(a.reuse);
    assert_eq!(b.path, "some/path-1.x");
    assert_eq!(b.size, Value::Fixed(2 << 30));
    assert_eq!(plan.actions, [Action::CreateFiles]);
}

#[test]
fn attributes_refer_to_variables_and_not_to_their_values() {
    let text = "
        define fileset name=late,path=/d,entries=$n
        define fileset name=early,path=/d,entries=1,size=$size
        set $n=1
        set $size=1k
        create files
        set $n=2
        set $size=2k
        define process name=p { thread name=t {
            flowop read name=r,filename=late,iosize=$size
        } }
        set $size=3k
        run $n
        set $n=4
    ";
    let plan = plan(text);
    assert_eq!(plan.filesets[0].entries, Value::Fixed(1), "made early");
    assert_eq!(plan.filesets[1].size, Value::Fixed(1024), "made early");
    let read = &plan.processes[0].threads[0].flowops[0];
    let transfer = read.op.transfer().expect("a transfer");
    assert_eq!(transfer.io_bytes, Value::Fixed(3072), "as the run finds it");
    assert_eq!(plan.actions.last(), Some(&Action::Run { seconds: Some(2) }));
}

#[test]
fn filesets_have_filebenchs_defaults() {
    let plan = plan("define fileset name=a,path=/d,entries=5\ncreate files");
    let a = &plan.filesets[0];
    assert_eq!(a.size, Value::Fixed(1024));
    assert_eq!(a.prealloc_percent, Value::Fixed(0));
    assert_eq!(a.dir_gamma, Value::Fixed(1500));
    assert_eq!(a.dir_width, Value::Fixed(0));
    assert_eq!(a.leaf_dirs, Value::Fixed(0));
    assert_eq!(a.dir_depth, None);
    assert!(!a.single_file && !a.parallel_alloc && !a.reuse);
    assert!(!a.trust_tree && !a.read_only && !a.write_only);
}

#[test]
fn filesets_take_every_attribute() {
    let plan = plan(
        "set $depth=randvar(type=uniform,mean=3)
         define fileset name=a, path=/d, entries=5, filesize=4k, prealloc, paralloc, reuse=false,
            trusttree, readonly, dirwidth=7, dirdepthrv=$depth, dirgamma=0, leafdirs=9
         define file name=b,path=/e,prealloc=50,writeonly,size=0
         create fileset",
    );
    let [a, b] = two(&plan.filesets);
    assert_eq!(a.size, Value::Fixed(4096));
    assert_eq!(a.prealloc_percent, Value::Fixed(100));
    assert!(a.parallel_alloc && a.trust_tree && a.read_only && !a.reuse && !a.write_only);
    assert_eq!(a.dir_width, Value::Fixed(7));
    assert_eq!(a.dir_depth, Some(Value::Random(RandomId(0))));
    assert_eq!(a.dir_gamma, Value::Fixed(0));
    assert_eq!(a.leaf_dirs, Value::Fixed(9));
    assert!(b.single_file && b.write_only);
    assert_eq!((b.entries, b.size), (Value::Fixed(1), Value::Fixed(0)));
    assert_eq!(b.prealloc_percent, Value::Fixed(50));
}

#[test]
fn processes_and_threads() {
    let plan = plan(
        "set $n=4
         set mode quit alldone
         set mode nousestats
         define process name=p,instances=2,nice=5
         {
           thread name=a,instances=$n,memsize=10m,useism,ioprio=3
           { flowop hog name=h,value=7 }
           thread name=b { flowop hog name=h,iters=3 }
         }
         define process name=q { thread name=a { flowop eventlimit name=e } }
         eventgen rate = 50
         enable lathist
         run",
    );
    assert_eq!(plan.quit, Quit::AllDone);
    assert!(plan.latency_histograms);
    assert_eq!(plan.event_rate_per_s, Some(Value::Fixed(50)));
    let [p, q] = two(&plan.processes);
    assert_eq!((p.instances, p.nice, q.instances, q.nice), (2, 5, 1, 0));
    let [a, b] = two(&p.threads);
    assert_eq!((a.instances, b.instances), (4, 1));
    assert_eq!(a.memory_bytes, Value::Fixed(10 << 20));
    assert_eq!(b.memory_bytes, Value::Fixed(0));
    // Best effort is class 2, in the bits above the thirteen of the level.
    assert_eq!((a.io_priority, b.io_priority), (Some(0x4003), None));
    assert_eq!(a.flowops[0].iters, Value::Fixed(1));
    assert_eq!(b.flowops[0].iters, Value::Fixed(3));
    let hog = |value| Op::Hog {
        value: Value::Fixed(value),
    };
    assert_eq!((&a.flowops[0].op, &b.flowops[0].op), (&hog(7), &hog(0)));
    assert_eq!(plan.actions, [Action::Run { seconds: None }]);
}

#[test]
fn transfers_take_every_attribute() {
    let all = "name=x,filesetname=set,indexed=3,fd=5,rotatefd,iosize=4k,random,workingset=8k,\
               dsync,directio=1,noreadahead=true";
    let transfer = Transfer {
        target: Target {
            fileset: Some(FilesetId(0)),
            index: Some(Value::Fixed(3)),
            fd: 5,
            rotate: true,
            flags: OpenFlags {
                dsync: true,
                direct_io: true,
                no_read_ahead: true,
            },
        },
        io_bytes: Value::Fixed(4096),
        random: true,
        working_set_bytes: Value::Fixed(8192),
    };
    let moves: [(&str, Makes<Transfer>); 3] = [
        ("read", Op::Read),
        ("write", Op::Write),
        ("aiowrite", Op::AioWrite),
    ];
    for (kind, op) in moves {
        assert_eq!(flowop(&format!("{kind} {all}")).op, op(transfer));
    }
    let plain = Transfer {
        target: Target {
            fileset: Some(FilesetId(1)),
            ..Target::default()
        },
        io_bytes: Value::Fixed(1),
        random: false,
        working_set_bytes: Value::Fixed(0),
    };
    let least = "name=x,filename=one,iosize=1,directio=0,dsync=false";
    let wholes: [(&str, Makes<Transfer>); 4] = [
        ("appendfile", Op::AppendFile),
        ("appendfilerand", Op::AppendFileRand),
        ("readwholefile", Op::ReadWholeFile),
        ("writewholefile", |transfer| Op::WriteWholeFile {
            transfer,
            source_fd: None,
        }),
    ];
    for (kind, op) in wholes {
        assert_eq!(flowop(&format!("{kind} {least}")).op, op(plain));
    }
    let zero = flowop(&format!("writewholefile {least},srcfd=0"));
    assert_eq!(zero.op, wholes[3].1(plain));
}

#[test]
fn flowops_on_files_and_directories() {
    let targets: [(&str, &str, Makes<Target>, _, _); 5] = [
        ("openfile", "filename=set,fd=128", Op::OpenFile, 128, 0),
        ("createfile", "filename=one", Op::CreateFile, 0, 1),
        ("deletefile", "filename=set", Op::DeleteFile, 0, 0),
        ("statfile", "filename=set", Op::StatFile, 0, 0),
        ("fsync", "filename=set,fd=2", Op::Fsync, 2, 0),
    ];
    for (kind, attributes, op, fd, fileset) in targets {
        let made = flowop(&format!("{kind} name=x,{attributes}"));
        let target = Target {
            fileset: Some(FilesetId(fileset)),
            fd,
            ..Target::default()
        };
        assert_eq!((made.kind, made.op), (kind, op(target)));
    }
    let others = [
        ("fsyncset name=x,filename=set", "FsyncSet(FilesetId(0))"),
        ("makedir name=x,filename=set", "MakeDir(FilesetId(0))"),
        ("removedir name=x,filename=set", "RemoveDir(FilesetId(0))"),
        ("listdir name=x,filename=one", "ListDir(FilesetId(1))"),
        ("aiowait name=x", "AioWait"),
        ("block name=x", "Block"),
        ("delay name=x,value=3", "Delay { seconds: Fixed(3) }"),
        (
            "semblock name=x,value=3,highwater=9",
            "SemBlock { value: Fixed(3), high_water: Fixed(9) }",
        ),
        (
            "semblock name=x",
            "SemBlock { value: Fixed(0), high_water: Fixed(1) }",
        ),
        ("bwlimit name=x", "BwLimit { target: None }"),
        ("iopslimit name=x", "IopsLimit { target: None }"),
        ("opslimit name=x", "OpsLimit { target: None }"),
        (
            "finishonbytes name=x,value=1g",
            "FinishOnBytes { bytes: Fixed(1073741824), target: None }",
        ),
    ];
    for (line, op) in others {
        let made = flowop(line);
        assert_eq!(format!("{:?}", made.op), op, "{line}");
        assert_eq!(line.split(' ').next(), Some(made.kind));
    }
    let plan = plan(&thread_of(
        "flowop openfile name=o,filename=set,fd=1
         flowop openfile name=o2,filename=set,fd=2
         flowop writewholefile name=w,fd=2,srcfd=1
         flowop fsync name=s,fd=2
         flowop closefile name=c,fd=1
         flowop closefile name=c2,fd=2
         flowop deletefile name=d,fd=1",
    ));
    let flowops = &plan.processes[0].threads[0].flowops;
    let Op::WriteWholeFile { source_fd, .. } = flowops[2].op else {
        panic!("{flowops:?}");
    };
    assert_eq!(source_fd, Some(1));
    let close = format!("{:?}", flowops[4].op);
    assert_eq!(close, "CloseFile { fd: 1, rotate: false }");
}

#[test]
fn targets_are_found_by_name_across_threads_or_within_one() {
    let plan = plan(
        "define fileset name=set,path=/d,entries=1
         define flowop name=inner { flowop read name=r,filename=set,iosize=1k }
         define flowop name=outer { flowop inner name=in,iters=2 }
         define process name=p {
           thread name=a { flowop semblock name=gate
                           flowop block name=bed }
           thread name=b { flowop outer name=out
                           flowop bwlimit name=l,target=r
                           flowop finishoncount name=f,value=5,target=out.in
                           flowop sempost name=post,value=2,target=gate,blocking
                           flowop wakeup name=w,target=bed }
         }
         run 1",
    );
    let flowops = &plan.processes[0].threads[1].flowops;
    let made: Vec<String> = flowops.iter().map(|it| format!("{:?}", it.op)).collect();
    assert_eq!(made[1], r#"BwLimit { target: Some("out.in.r") }"#);
    assert_eq!(
        made[2],
        r#"FinishOnCount { count: Fixed(5), target: Some("out.in") }"#
    );
    assert_eq!(
        made[3],
        r#"SemPost { value: Fixed(2), target: "gate", blocking: true }"#
    );
}

#[test]
fn composites_have_variables_of_their_own() {
    let plan = plan(
        "set $size=1k
         set $set=one
         define fileset name=one,path=/d,entries=1
         define fileset name=two,path=/d,entries=1
         define flowop name=touch, $set, $size=2k {
           flowop write name=w,filename=$set,iosize=$size
         }
         define flowop name=twice, $which {
           flowop touch name=t,$set=$which,iters=2
         }
         define process name=p { thread name=t {
           flowop touch name=a,$set=one,$size=4k
           flowop twice name=b,$which=two
           flowop write name=c,filename=$set,iosize=$size
         } }
         run 1",
    );
    let all = plan.processes[0].threads[0].all_flowops();
    let made: Vec<_> = all
        .iter()
        .map(|flowop| {
            let moved = flowop.op.transfer();
            let moved = moved.map(|it| (it.io_bytes, it.target.fileset));
            (flowop.name.as_str(), flowop.iters, moved)
        })
        .collect();
    let moved = |bytes, fileset| Some((Value::Fixed(bytes), Some(FilesetId(fileset))));
    let (once, twice) = (Value::Fixed(1), Value::Fixed(2));
    assert_eq!(
        made,
        [
            ("a", once, None),
            ("a.w", once, moved(4096, 0)),
            ("b", once, None),
            ("b.t", twice, None),
            ("b.t.w", once, moved(2048, 1)),
            ("c", once, moved(1024, 0)),
        ]
    );
}

#[test]
fn actions_in_their_order() {
    let plan = plan(
        r#"set $n=2
           echo "a $n, b $unknown, c 5$ \"q\" \$n\n"
           create files
           sleep 3
           sleep $n
           version
           debug 1
           list fileset
           define process name=p { thread name=t { flowop delay name=d,value=1 } }
           psrun -5 $n
           echo "never said""#,
    );
    assert_eq!(
        plan.actions,
        [
            Action::Echo("a 2, b $unknown, c 5$ \"q\" $n\n".into()),
            Action::CreateFiles,
            Action::Sleep(3),
            Action::Sleep(2),
            Action::Run { seconds: Some(2) },
        ]
    );
}

#[test]
fn runs_and_what_ends_them() {
    let process = "define process name=p { thread name=t { flowop delay name=d } }\n";
    let last = |tail: &str| {
        let plan = plan(&format!("{process}{tail}"));
        (plan.actions.last().cloned(), plan.quit)
    };
    for (tail, seconds, report_every_s) in [
        ("run 0", None, None),
        ("run\n", None, None),
        ("run 7", Some(7), None),
        ("psrun", None, Some(10)),
        ("psrun 3", None, Some(3)),
        ("psrun -3", None, Some(3)),
        ("psrun 3 9", Some(9), Some(3)),
        // The `run` is missing.
        ("", None, None),
    ] {
        assert_eq!(last(tail).0, Some(Action::Run { seconds }), "{tail}");
        let script = luc_wml::parse("test.f", &format!("{process}{tail}")).expect("a script");
        let every = report_every_s.map(|every_s| format!("none every {every_s} s"));
        let notes = script.notes();
        let said = notes.iter().find(|note| note.message.starts_with("psrun"));
        let told =
            said.is_some_and(|note| every.as_ref().is_some_and(|it| note.message.ends_with(it)));
        assert_eq!(told, every.is_some(), "{tail}: {notes:?}");
    }
    assert_eq!(last("set mode quit firstdone\nrun").1, Quit::FirstDone);
    assert_eq!(
        last("set mode quit alldone\nset mode quit timeout").1,
        Quit::Timeout
    );
    let quit = plan(&format!("create files\n{process}quit\nrun 5"));
    assert_eq!(quit.actions, [Action::CreateFiles]);
}

#[test]
fn notes_tell_what_is_ignored_and_added() {
    let notes = |text: &str| -> Vec<String> {
        let list = script(text).notes();
        list.into_iter().map(|note| note.message).collect()
    };
    let process = "define process name=p { thread name=t { flowop delay name=d } }\n";
    let said = notes(&format!("{process}run 1\nset $a=1\nset $b=2"));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("ignored, like everything after it"));
    let said = notes(&format!("debug 3\n{process}"));
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].starts_with("the file has no `run`"));
    for (name, text) in luc_wml::BUILTINS {
        assert!(notes(text).is_empty(), "{name}");
    }
}

#[test]
fn overrides_take_the_place_of_every_set() {
    let text = "set $n=1
                set $size=cvar(type=cvar-gamma)
                set $dir=/tmp
                set $n=2
                define fileset name=s,path=$dir,entries=$n,size=$size
                create files";
    let plan = plan_with(
        text,
        &[
            ("n", "5"),
            ("$size", "3k"),
            ("dir", "/mnt/a b, 1.5x"),
            ("n", "6"),
        ],
    );
    let set = &plan.filesets[0];
    assert_eq!(set.entries, Value::Fixed(6), "the last one counts");
    assert_eq!(set.size, Value::Fixed(3072));
    assert_eq!(set.path, "/mnt/a b, 1.5x");
    assert!(plan.randoms.is_empty());
    let plan = plan_with(
        text,
        &[("size", "cvar(type=cvar-uniform,parameters=lower:1;upper:2)")],
    );
    assert_eq!(plan.randoms[0].kind, "cvar-uniform");
    assert_eq!(plan.randoms[0].name, "size");
}

#[test]
fn line_ends_and_blanks_do_not_matter() {
    let one = thread_of("flowop openfile name=o,filename=set,fd=1 flowop closefile name=c,fd=1");
    let other = one
        .replace('\n', "\r\n")
        .replace(',', " ,\r\n\t ")
        .replace('=', " = ")
        .replace(" 1\r\n", " 1 # seconds\r\n");
    let strip = |mut plan: Plan| {
        for flowop in &mut plan.processes[0].threads[0].flowops {
            flowop.at.line = 0;
            flowop.at.column = 0;
        }
        plan
    };
    assert_eq!(strip(plan(&one)), strip(plan(&other)));
}
