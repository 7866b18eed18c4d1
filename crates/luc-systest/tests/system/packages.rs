//! The packages, as an administrator uses them: a Debian server with systemd installs them,
//! reboots, runs into faults, upgrades them and its kernel, meets a kernel that demands signatures,
//! enrols its key in a firmware with Secure Boot, and purges them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use libtest_mimic::Trial;
use luc_systest::{Outcome, Trouble, check, failed, guest_source, root, test, verdict};
use luc_vm::server::{Boot, Server};
use luc_vm::{AllowList, KernelList, Silent, log};

/// Compilers run at a twentieth of their speed there.
const LIMIT: Duration = Duration::from_secs(1500);
const KERNEL: &str = "6.1";
const LATER: &str = "6.12";

/// `MokManager` asks for it, so that nobody else enrols a key.
const PASSWORD: &str = "luc enrols this";
const NEXT_LINE: &str = "\x1b[B\r";

pub fn tests() -> Vec<Trial> {
    vec![test("a_server_installs_upgrades_and_purges", life).with_ignored_flag(true)]
}

/// The package that `make deb` built.
fn package(name: &str) -> Result<PathBuf, Trouble> {
    let out = root().join("out");
    let begin = format!("{name}_");
    let files = fs::read_dir(&out).into_iter().flatten().flatten();
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&begin) && path.extension().is_some_and(|ending| ending == "deb")
    };
    let missing = || Trouble::Skip(format!("no package {name} in out/; `make deb` builds it"));
    files
        .map(|file| file.path())
        .find(is_it)
        .ok_or_else(missing)
}

fn life() -> Outcome {
    let (luc, dkms, lab) = (package("luc")?, package("luc-dkms")?, package("luc-lab")?);
    let list = KernelList::builtin()?;
    let server = Server::new(&list, KERNEL, LATER, &mut Silent)?;
    let dir = tempfile::tempdir().map_err(failed)?;
    let later = list.get(LATER)?;
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).map_err(failed)?;
        Ok::<_, Trouble>(path)
    };
    let suite = write("suite", later.suites.first().map_or("", String::as_str))?;
    let kernel = write("kernel", &format!("{} {}", later.image, later.headers))?;
    let password = write("password", PASSWORD)?;
    let step = |name: &str, boot: Boot<'_>| {
        let script = guest_source(&format!("packages/{name}.sh"));
        let (lib, more) = (guest_source("lib.sh"), guest_source("packages/lib.sh"));
        let files = [
            ("step.sh", &*script),
            ("lib.sh", &lib),
            ("server.sh", &more),
            ("luc.deb", &luc),
            ("luc-dkms.deb", &dkms),
            ("luc-lab.deb", &lab),
            ("suite", &suite),
            ("kernel", &kernel),
            ("password", &password),
        ];
        let said = server.boot(&files, boot, LIMIT)?;
        if let Some(dir) = std::env::var_os("LUC_TEST_OUT") {
            let _ = fs::write(
                PathBuf::from(dir).join(format!("packages-{name}.log")),
                &said,
            );
        }
        let mut wrong = verdict(name, &said);
        let problems = log::problems(&said, &AllowList::default());
        wrong.extend(
            problems
                .into_iter()
                .map(|it| format!("{name}: kernel log: {}", it.line)),
        );
        for line in said.lines().filter_map(|line| line.strip_prefix("tell ")) {
            println!("  {name}: {line}");
        }
        check(wrong.is_empty(), format!("\n  {}", wrong.join("\n  ")))
    };
    step("install", Boot::Plain(""))?;
    step("days", Boot::Plain(""))?;
    step("upgrade", Boot::Plain(""))?;
    // A kernel sets the second one itself if Secure Boot is on.
    step("unsigned", Boot::Plain("module.sig_enforce=1"))?;
    step("unsigned", Boot::Plain("lockdown=integrity"))?;
    step("import", Boot::Secure(&[]))?;
    // MokManager's prompts, and an administrator's answers.
    let password = format!("{PASSWORD}\r");
    let enrolment = [
        ("Press any key", "\r"),
        ("Enroll MOK", NEXT_LINE),
        ("View key 0", NEXT_LINE),
        ("Enroll the key(s)?", NEXT_LINE),
        ("Password:", &password),
        ("Reboot", "\r"),
    ];
    server.boot(&[], Boot::Secure(&enrolment), LIMIT)?;
    step("enrolled", Boot::Secure(&[]))?;
    step("purge", Boot::Plain(""))
}
