//! Errors in a file are reported at their position, with the expectation.

use std::fmt::Write as _;

use insta::assert_snapshot;
use luc_wml::{load, parse};

/// Returns all messages of a file.
fn refused(text: &str) -> String {
    let result = parse("x.f", text).and_then(|script| script.plan(&[]));
    match result {
        Ok(plan) => panic!("accepted: {text}\n{plan:#?}"),
        Err(refused) => refused.to_string(),
    }
}

/// Returns texts, each followed by the messages of the file that `file` makes of it.
fn all_in(file: impl Fn(&str) -> String, texts: &[&str]) -> String {
    let mut said = String::new();
    for text in texts {
        let messages = refused(&file(text)).replace('\n', "\n    ");
        let _ = writeln!(said, "{}\n    {messages}", text.trim());
    }
    said
}

/// Returns whole files, each followed by its messages.
fn all(files: &[&str]) -> String {
    all_in(str::to_owned, files)
}

/// Returns a file with these flowops in a thread, a fileset and a single file.
fn thread(flowops: &str) -> String {
    format!(
        "define fileset name=set,path=/d,entries=10,size=64k\n\
         define file name=one,path=/d,size=1m\n\
         define process name=p {{ thread name=t,memsize=1m {{\n{flowops}\n}} }}\n\
         run 1"
    )
}

#[test]
fn characters() {
    assert_snapshot!(all(&[
        "set $n=10K",
        "set $n=1.5",
        "set $n=10x",
        "set $n=99999999999999999999",
        "set $n=9000000000g",
        "set $=1",
        "set $1=1",
        "set ${n=1",
        "set $dir=\"/tmp",
        "echo \"a\nb\"",
        "set $dir=~/x",
        "set $n=$a * $b",
        "sét $n=1",
    ]));
}

#[test]
fn statements() {
    assert_snapshot!(all(&[
        "",
        "# nothing\n",
        "let $n=1",
        "set n=1",
        "set $n",
        "set $n=",
        "set $n=-1",
        "set $n=(1)",
        "set $n=1 2\n",
        "set mode fast",
        "set mode quit never",
        "create processes",
        "create",
        "enable multi master=a,client=b",
        "enable",
        "domultisync value=1",
        "system sync",
        "echo hello",
        "sleep\nrun 1",
        "sleep -1",
        "eventgen speed=1",
        "list",
        "debug",
        "run 1",
        "quit",
        "define set name=a",
        "set $s=x\nsleep $s\ncreate files",
        "set $s=true\ndefine process name=p { thread name=t { flowop delay name=d } }\nrun $s",
        "sleep 99999999999\ncreate files",
        "define fileset name=a,path=/d,entries=1\n  size=4k\ncreate files",
    ]));
}

#[test]
fn several_at_once() {
    assert_snapshot!(refused(
        "set $n=1K
set dir=/tmp
define fileset name=a,path=/d,entrys=5
define process name=p
{
  thread name=t
  {
    flowop read name=r,filename=a,iosize=1k,fd
    flowop reed name=s
    flowop write name=w filename=a
    flowop hog name=h,iosize=4
  }
  thread name=u
  {
    flowop delay name=d,value=x,speed=4
  }
  what
}
run 5 seconds
psrun"
    ));
    assert_snapshot!(refused(
        "define fileset name=a,path=/d,entries=$missing,prealloc=101
define fileset name=a,path=$missing
define process name=p,instances=0
{
  thread name=t,instances=$also
  {
    flowop read name=r,filename=b,iosize=1k
    flowop read name=s,filename=a,iosize=text
  }
}
run 5"
    ));
}

#[test]
fn braces() {
    assert_snapshot!(all(&[
        "define process name=p",
        "define process name=p {",
        "define process name=p { }",
        "define process name=p { thread name=t { } }",
        "define process name=p { thread name=t { flowop hog name=h }",
        "define process name=p { flowop hog name=h }",
        "define process name=p\n{\nthread name=t {\nflowop hog name=h\nthread name=u {\nflowop hog name=i\n}\n}\nrun 1",
        "define process name=p { thread name=t { flowop hog name=h } } }\nrun 1",
        "define flowop name=f",
        "define flowop name=f { }",
        "define flowop name=f { flowop f name=g }",
    ]));
}

#[test]
fn filesets() {
    let made = |define: &str| format!("{define}\ncreate files");
    assert_snapshot!(all_in(
        made,
        &[
            "define fileset name=a,entries=1",
            "define fileset path=/d,entries=1",
            "define fileset name=a,path=/d",
            "define fileset name=a,path=/d,entries=0,leafdirs=0",
            "define fileset name=a,path=/d,entries=10m",
            "define fileset name=a,path=/d,entries",
            "define fileset name=a,path=/d,entries=many",
            "define fileset name=5,path=/d,entries=1",
            "define fileset name=a/b,path=/d,entries=1",
            "define fileset name=..,path=/d,entries=1",
            "define fileset name=\"\",path=/d,entries=1",
            "define fileset name=a,path=/d,entries=1,prealloc=120",
            "define fileset name=a,path=/d,entries=1,reuse=maybe",
            "define fileset name=a,path=/d,entries=1,readonly,writeonly",
            "define fileset name=a,path=/d,entries=1,cached=false",
            "define fileset name=a,path=/d,entries=1,iosize=4k",
            "define fileset name=a path=/d",
            "define fileset name=a,path=/d,entries=1,",
            "define file name=a,path=/d,entries=4",
            "define file name=a,path=/d\ndefine file name=a,path=/e",
        ]
    ));
}

#[test]
fn processes() {
    let run = |head: &str| format!("{head} {{ thread name=t {{ flowop hog name=h }} }}\nrun 1");
    assert_snapshot!(all_in(
        run,
        &[
            "define process instances=4",
            "define process name=p,instances=0",
            "define process name=p,instances=40000",
            "set $r=randvar(mean=4)\ndefine process name=p,instances=$r",
            "define process name=p,nice=20",
            "define process name=p { thread name=t { flowop hog name=h } }\ndefine process name=p",
        ]
    ));
    let in_thread = |thread: &str| {
        format!("define process name=p {{\nthread {thread} {{ flowop hog name=h }} }}\nrun 1")
    };
    assert_snapshot!(all_in(
        in_thread,
        &[
            "instances=4",
            "name=t,instances=0",
            "name=t,memsize=lots",
            "name=t,ioprio=8",
            "name=t,nice=1",
            "name=t { flowop hog name=h }\nthread name=t",
        ]
    ));
    assert_snapshot!(all(&[
        "define process name=p,instances=300 { thread name=t,instances=300 { flowop hog name=h } }\nrun 1",
    ]));
}

#[test]
fn flowops_one_by_one() {
    assert_snapshot!(all_in(
        thread,
        &[
            "flowop",
            "flowop read",
            "flowop read filename=set,iosize=1k",
            "flowop readfile name=r",
            "flowop print name=p",
            "flowop testrandvar name=p",
            "flowop read name=r,filename=nowhere,iosize=1k",
            "flowop read name=r,filename=7,iosize=1k",
            "flowop read name=r,filename=set",
            "flowop read name=r,filename=set,iosize=0",
            "flowop read name=r,filename=set,iosize=big",
            "flowop read name=r,filename=set,iosize=2m",
            "flowop read name=r,filename=set,iosize=1m,directio",
            "flowop read name=r,filename=set,iosize=65k,random",
            "flowop read name=r,filename=set,iosize=2k,random,workingset=1k",
            "flowop read name=r,filename=set,iosize=1k,random=often",
            "flowop read name=r,filename=set,iosize=1k,fd=129",
            "flowop read name=r,filename=set,iosize=1k,fd=first",
            "flowop read name=r,iosize=1k,fd=3",
            "flowop read name=r,filename=set,iosize=1k,iters=-1",
            "flowop read name=r,filename=set,iosize=1k,$x=3",
            "flowop openfile name=o,fd=1",
            "flowop closefile name=c,fd=1",
            "flowop fsync name=f,fd=2",
            "flowop deletefile name=d",
            "flowop makedir name=m",
            "flowop writewholefile name=w,filename=set,fd=1,srcfd=2",
            "flowop hog name=h,value",
            "flowop finishoncount name=f",
            "flowop finishoncount name=f,value=3,target=g",
            "flowop finishonbytes name=f,value=3,target=f",
            "flowop bwlimit name=l,target=l",
            "flowop sempost name=s,value=1",
            "flowop sempost name=s,value=1,target=s",
            "flowop wakeup name=w,target=nobody",
            "flowop semblock name=s,highwater=many",
            "flowop hog name=x\nflowop delay name=x",
        ]
    ));
    let with_random = |line: &str| format!("set $r=randvar(mean=4)\n{}", thread(line));
    assert_snapshot!(all_in(
        with_random,
        &["flowop semblock name=s,highwater=$r"]
    ));
}

#[test]
fn composites() {
    // The last line stands in a thread.
    let with = |text: &str| {
        let (define, usage) = text.rsplit_once('\n').unwrap_or(("", text));
        format!("{define}\ndefine process name=p {{ thread name=t {{\n{usage}\n}} }}\nrun 1")
    };
    assert_snapshot!(all_in(
        with,
        &[
            "define flowop name=f, $n { flowop hog name=h,value=$n }\nflowop f name=x",
            "define flowop name=f, $n { flowop hog name=h,value=$n }\nflowop f name=x,$m=1,$n=1",
            "define flowop name=f { flowop hog name=h }\nflowop f name=x,$m=1",
            "define flowop name=f, $n { flowop hog name=h,value=$n }\nflowop f name=x,$n",
            "define flowop name=f, $n, $n { flowop hog name=h,value=$n }\nflowop f name=x,$n=1",
            "define flowop name=hog { flowop delay name=h }\nflowop hog name=x",
            "define flowop name=f { flowop hog name=h }\ndefine flowop name=f { flowop hog name=h }\nflowop f name=x",
            "define flowop name=$f { flowop hog name=h }\nflowop hog name=x",
            "define flowop $f { flowop hog name=h }\nflowop hog name=x",
            "define flowop name=f { flowop hogg name=h }\nflowop f name=x",
            "flowop f name=x",
        ]
    ));
}

#[test]
fn random_variables() {
    let with = |value: &str| {
        format!("set $x={value}\ndefine fileset name=s,path=/d,entries=1,size=$x\ncreate files")
    };
    assert_snapshot!(all_in(
        with,
        &[
            "randvar()",
            "randvar(type=normal)",
            "randvar(type=uniform)",
            "randvar(type=uniform,mean=1k,min=2k)",
            "randvar(type=gamma,mean=1k,gamma=0)",
            "randvar(mean=$y)",
            "randvar(mean=4,randsrc=dice)",
            "randvar(mean=4,shape=2)",
            "randvar(type=tabular)",
            "randvar(type=gamma,randtable={{100,1,2}})",
            "randvar(type=tabular,randtable={{50,1,2},{49,1,2}})",
            "randvar(type=tabular,randtable={{100,2,1}})",
            "randvar(type=tabular,randtable={{100,1}})",
            "randvar(type=tabular,randtable={100,1,2})",
            "randvar(type=tabular,randtable={{100,1,x}})",
            "cvar(parameters=mean:4)",
            "cvar(type=cvar-beta)",
            "cvar(type=cvar-gamma,parameters=mean:x)",
            "cvar(type=cvar-gamma,parameters=mean)",
            "cvar(type=cvar-gamma,parameters=mean:1;mean:2)",
            "cvar(type=cvar-gamma,parameters=sigma:1)",
            "cvar(type=cvar-gamma,parameters=gamma:0)",
            "cvar(type=cvar-gamma,parameters=mean:inf)",
            "cvar(type=cvar-uniform,parameters=lower:2;upper:1)",
            "cvar(type=cvar-erlang,parameters=shape:1.5)",
            "cvar(type=cvar-gamma,min=5,max=4)",
            "cvar(type=cvar-gamma",
            "randvar(mean=4",
        ]
    ));
    assert_snapshot!(all(&[
        "define randvar type=gamma",
        "define randvar name=x,type=gamma",
    ]));
}

#[test]
fn overrides() {
    let script = parse(
        "x.f",
        "set $n=1\nset $dir=/tmp\ndefine fileset name=s,path=$dir,entries=$n\ncreate files",
    )
    .expect("well written");
    let mut said = String::new();
    for (name, value) in [
        ("threads", "4"),
        ("n", "many"),
        ("n", "0"),
        ("n", "10K"),
        ("dir", "5"),
        ("dir", ""),
        ("n", "cvar(type=cvar-gamma,parameters=gamma:0)"),
        ("n", "cvar(type=cvar-gamma"),
        ("n", "randvar(mean=4) x"),
        ("n", "$unknown"),
    ] {
        let refused = script
            .plan(&[(name.into(), value.into())])
            .expect_err(value);
        let _ = writeln!(said, "{name}={value}\n    {refused}");
    }
    assert_snapshot!(said);
}

#[test]
fn files_that_cannot_be_read() {
    let dir = tempfile::tempdir().expect("temporary folder");
    let path = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("temporary file");
        path.to_str().expect("UTF-8").to_owned()
    };
    let said = |file: &str| {
        let error = load(file).expect_err(file).to_string();
        error.replace(dir.path().to_str().expect("UTF-8"), "DIR")
    };
    let latin = path("latin.f", b"set $n=1\nset $d=\xe9\n");
    let long = path("long.f", &vec![b'#'; luc_wml::SOURCE_BYTES_MAX + 1]);
    let bad = path("bad.f", b"sett $n=1\n");
    let folder = dir.path().to_str().expect("UTF-8");
    let lines = [
        said(&latin),
        said(&long),
        said(&bad),
        said(folder),
        said("varmial"),
    ];
    assert_snapshot!(lines.join("\n"));
    assert!(load("varmail").is_ok());
    assert!(load(&path("good.f", b"define file name=a,path=/d\ncreate files")).is_ok());
}
