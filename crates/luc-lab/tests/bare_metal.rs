//! A campaign on this machine itself, on a loop device: what it changes, and that it restores all.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{METAL, luc_lab};
use luc_test::command::{assert_begins, assert_ends, assert_holds, run};
use rustix::process::{Pid, Signal, kill_process};

const WRITEBACK: &str = "/proc/sys/vm/dirty_writeback_centisecs";

/// A load that fits the device, and the shortest comparison of file systems under it.
const LOAD: &str = "set $dir=/tmp\n\
    define fileset name=files,path=$dir,size=4k,entries=64,dirwidth=8\n\
    define process name=writer {\n\
      thread name=writing {\n\
        flowop createfile name=create,filesetname=files,fd=1\n\
        flowop writewholefile name=write,fd=1\n\
        flowop fsync name=sync,fd=1\n\
        flowop closefile name=close,fd=1\n\
        flowop deletefile name=delete,filesetname=files\n\
      }\n\
    }\n";
const RECOMMEND: [&str; 12] = [
    "--set",
    "fs=ext4,ext2",
    "--set",
    "mode=ordered",
    "--set",
    "atime=relatime",
    "--set",
    "seconds=1",
    "--set",
    "warmup=0",
    "--repeats",
    "1",
];

/// A loop device over a file, detached when dropped.
struct Loop {
    device: String,
}

impl Loop {
    fn new(dir: &Path) -> Result<Self, String> {
        let image = dir.join("image");
        let file = fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(64 << 20).map_err(|error| error.to_string())?;
        let output = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(&image)
            .output()
            .map_err(|error| format!("losetup does not run: {error}"))?;
        if !output.status.success() {
            let why = String::from_utf8_lossy(&output.stderr);
            return Err(format!("no loop device: {}", why.trim()));
        }
        Ok(Self {
            device: String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.device]).status();
    }
}

fn begun(dir: &Path, device: &str) -> Child {
    let program = assert_cmd::cargo::cargo_bin("luc-lab");
    let said = dir.join("said");
    let mut child = Command::new(program)
        .args([
            "campaign",
            "run",
            "long.toml",
            "-o",
            "long",
            "--device",
            device,
            "--erase",
        ])
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(fs::File::create(&said).expect("a file"))
        .spawn()
        .expect("the program runs");
    let begun = Instant::now();
    while !is_mounted(device) {
        let ended = child.try_wait().expect("its state");
        assert!(
            ended.is_none() && begun.elapsed() < Duration::from_secs(60),
            "nothing is mounted: {ended:?} {}",
            fs::read_to_string(&said).unwrap_or_default()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn is_mounted(device: &str) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").expect("the mounts");
    table
        .lines()
        .any(|line| line.contains(&format!(" {device} ")))
}

fn end(child: &mut Child, signal: Signal) {
    let number = i32::try_from(child.id()).expect("a number");
    let pid = Pid::from_raw(number).expect("a process");
    kill_process(pid, signal).expect("a signal");
    child.wait().expect("it ends");
}

#[test]
fn a_campaign_on_a_loop_device() {
    let test = "a_campaign_on_a_loop_device";
    if !rustix::process::geteuid().is_root() {
        return luc_test::skip(test, "needs root");
    }
    let dir = tempfile::tempdir().expect("a folder");
    let disk = match Loop::new(dir.path()) {
        Ok(disk) => disk,
        Err(why) => return luc_test::skip_expected(test, &why),
    };
    let device = disk.device.as_str();
    let before = fs::read_to_string(WRITEBACK).expect("writeback");
    let as_before = |how: &str| {
        assert_eq!(
            fs::read_to_string(WRITEBACK).expect("writeback"),
            before,
            "{how}"
        );
        assert!(!is_mounted(device), "{how}");
    };
    fs::write(dir.path().join("metal.toml"), METAL).expect("written");
    let long = METAL.replace("0.2", "30");
    fs::write(dir.path().join("long.toml"), long).expect("written");
    let wrong = METAL.replace("--threads 2", "--threads 0");
    fs::write(dir.path().join("wrong.toml"), wrong).expect("written");
    let campaign = |words: &[&str]| {
        let mut command = luc_lab();
        run(command.current_dir(dir.path()).arg("campaign").args(words))
    };
    let erase = ["--device", device, "--erase"];

    let said = campaign(&[&["run", "metal.toml", "-o", "out"], &erase[..]].concat());
    assert_holds(&said, "2 cells.");
    assert_ends(&said, "[exit 0]\n");
    as_before("success");
    let said = campaign(&["status", "metal.toml", "-o", "out"]);
    assert!(
        said.contains("2 done, 0 known to be missing"),
        "without the device: {said}"
    );

    let said = campaign(&[&["run", "wrong.toml", "-o", "wrong"], &erase[..]].concat());
    assert_holds(&said, "2 cells failed");
    assert_ends(&said, "[exit 20]\n");
    assert_holds(&said, "arm stock: luc-lab bench create-fsync --threads 0");
    as_before("failure");

    let mut child = begun(dir.path(), device);
    let now = fs::read_to_string(WRITEBACK).expect("writeback");
    assert_eq!(now.trim(), "0", "while it runs");
    end(&mut child, Signal::INT);
    as_before("Ctrl-C");

    end(&mut begun(dir.path(), device), Signal::HUP);
    as_before("the end of a session");

    end(&mut begun(dir.path(), device), Signal::KILL);
    assert!(is_mounted(device), "nobody could unmount it");
    let said = campaign(&["restore"]);
    assert_begins(
        &said,
        "restored after a killed run: the scratch device was unmounted",
    );
    as_before("kill -9, then restore");

    end(&mut begun(dir.path(), device), Signal::KILL);
    let said = campaign(&[&["run", "metal.toml", "-o", "again"], &erase[..]].concat());
    assert_holds(&said, "note: restored after a killed run");
    assert_ends(&said, "[exit 0]\n");
    as_before("kill -9, then a run");
    assert!(campaign(&["restore"]).starts_with("nothing is left to restore"));

    fs::write(dir.path().join("load.f"), LOAD).expect("written");
    let mut recommend = luc_lab();
    recommend
        .current_dir(dir.path())
        .args(["recommend", "load.f"]);
    recommend.args(erase).args(RECOMMEND);
    let said = run(&mut recommend);
    for choice in ["ext4 ", "ext2 "] {
        assert!(said.lines().any(|line| line.contains(choice)), "{said}");
    }
    assert_ends(&said, "[exit 0]\n");
    as_before("a recommendation");
}
