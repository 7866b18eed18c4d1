//! Small Debian systems in the cache: build trees of another suite, for headers
//! whose compiler and tools this machine does not have, and programs for the guest.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::Cache;
use crate::error::Result;
use crate::kernels::list::{GuestTools, KernelSpec};
use crate::kernels::mirror;
use crate::progress::Progress;
use crate::tools::{capture, digest};

/// Enters the tree in namespaces of its own, so that the mounts vanish with
/// the build. Arguments: tree, headers, build folder, then the command.
const ENTER: &str = r#"
tree=$1; headers=$2; build=$3; shift 3
mount -t proc proc "$tree/proc" &&
mount --bind "$headers" "$tree/mnt/headers" &&
mount --bind "$build" "$tree/mnt/build" &&
exec chroot "$tree" "$@"
"#;

/// A tree in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// Where the kernel headers' root appears inside.
    pub const HEADERS: &'static str = "/mnt/headers";
    /// Where the build folder appears inside.
    pub const BUILD: &'static str = "/mnt/build";

    /// The tree for a kernel's compiler, made at first use.
    ///
    /// # Errors
    /// No mirror, no `mmdebstrap`, or an error of that program.
    pub fn open(cache: &Cache, spec: &KernelSpec, progress: &mut dyn Progress) -> Result<Self> {
        let key = format!("trees/{}-{}", spec.tree_suite, spec.compiler);
        let path = cache.entry(&key, |side| {
            progress.stage(&format!(
                "making a build tree of {} with {} (once)",
                spec.tree_suite, spec.compiler
            ));
            make(spec, &side.join("root"))
        })?;
        Ok(Self {
            root: path.join("root"),
        })
    }

    /// A command that runs `program` inside the tree.
    pub fn command(&self, headers: &Path, build: &Path, program: &str) -> Command {
        let mut command = as_root(ENTER);
        command.arg(&self.root).arg(headers).arg(build).arg(program);
        command.env_clear();
        command
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("LC_ALL", "C.UTF-8");
        command
    }
}

/// A command that runs a shell script as root, or as the root of a namespace of its own.
pub(crate) fn as_root(script: &str) -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--map-root-user", "--map-auto"]);
    }
    command.args(["--mount", "--pid", "--fork", "--kill-child"]);
    command.args(["sh", "-c", script, "sh"]);
    command
}

/// Settings of this machine's apt that the tree's apt must share to reach the same mirror: proxies,
/// and whether a stale mirror is accepted.
const APT_SETTINGS: [&str; 6] = [
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
    "Acquire::http::Proxy-Auto-Detect",
    "Acquire::https::CAInfo",
    "Acquire::Check-Valid-Until",
    "Acquire::Check-Date",
];

fn apt_options() -> Vec<String> {
    let mut options = vec![
        "Acquire::Languages \"none\"".to_owned(),
        "Acquire::Retries \"3\"".to_owned(),
    ];
    for name in APT_SETTINGS {
        let dump = capture(Command::new("apt-config").args(["dump", name]), "apt");
        // Lines read `Name "value";`. A setting that is absent prints nothing.
        options.extend(
            dump.unwrap_or_default()
                .lines()
                .filter_map(|line| line.strip_suffix(';'))
                .filter(|line| line.starts_with(name) && !line.ends_with("\"\""))
                .map(str::to_owned),
        );
    }
    options
}

/// Unpacks packages of the guest's suite with all that they depend on, at first use, and returns
/// the folder to change the root to. None of their scripts has run. `unwanted` are patterns of
/// paths to leave out, as dpkg's path-exclude takes them.
///
/// # Errors
/// As [`Tree::open`].
pub fn programs(
    cache: &Cache,
    tools: &GuestTools,
    packages: &[&str],
    unwanted: &[&str],
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let key = format!("programs/{}-{}", packages.join("+"), digest(unwanted));
    let path = cache.entry(&key, |side| {
        progress.stage(&format!("fetching {} (once)", packages.join(", ")));
        let suite = tools.suites.first().map_or("stable", String::as_str);
        let system = Debian {
            variant: "extract",
            suites: &[suite],
            packages,
            unwanted,
            ..Debian::default()
        };
        let root = side.join("root");
        system.make(&root)?;
        // Servers refuse root, and look up their users and their address.
        for (file, lines) in [("passwd", PASSWD), ("group", GROUP), ("hosts", HOSTS)] {
            let path = root.join("etc").join(file);
            std::fs::write(&path, lines).map_err(crate::LabError::io("write", path))?;
        }
        Ok(())
    })?;
    Ok(path.join("root"))
}

/// Users of a folder of programs. Packages whose scripts run would make Postfix's.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n\
    postfix:x:100:101:postfix:/:/bin/sh\n";
const GROUP: &str = "root:x:0:\nnogroup:x:65534:\npostfix:x:101:\npostdrop:x:102:\n";
const HOSTS: &str = "127.0.0.1 localhost\n";

/// Paths that neither a compiler nor a guest reads.
const UNREAD: [&str; 3] = [
    "/usr/share/doc/*",
    "/usr/share/man/*",
    "/usr/share/locale/*",
];

/// A system that mmdebstrap makes.
#[derive(Debug, Default)]
pub(crate) struct Debian<'a> {
    /// A variant that mmdebstrap knows.
    pub variant: &'a str,
    /// Suites; the first one is installed. Those of the security archive need a known mirror of it.
    pub suites: &'a [&'a str],
    pub packages: &'a [&'a str],
    /// Patterns of paths that are left out.
    pub unwanted: &'a [&'a str],
    /// Shell commands that run at its end; `$1` is its root.
    pub hooks: &'a [String],
}

impl Debian<'_> {
    /// Makes it in a folder, or as an archive if the name ends in `.tar`.
    pub(crate) fn make(&self, target: &Path) -> Result<()> {
        let mirror = mirror::find()?;
        let is_archive = target.extension().is_some_and(|ending| ending == "tar");
        let format = if is_archive { "tar" } else { "directory" };
        let mut command = Command::new("mmdebstrap");
        command.args(["--quiet", "--architectures=amd64"]);
        command.arg(format!("--format={format}"));
        command.arg(format!("--variant={}", self.variant));
        command.arg(format!("--include={}", self.packages.join(",")));
        for option in apt_options() {
            command.arg(format!("--aptopt={option}"));
        }
        for pattern in UNREAD.iter().chain(self.unwanted) {
            command.arg(format!("--dpkgopt=path-exclude={pattern}"));
        }
        if !self.hooks.is_empty() {
            // Hooks may fetch packages that the system installs later.
            command.arg("--skip=cleanup/apt");
        }
        for hook in self.hooks {
            command.arg(format!("--customize-hook={hook}"));
        }
        command.args(self.suites.first()).arg(target);
        command.args(self.suites.iter().filter_map(|suite| mirror.source(suite)));
        capture(&mut command, "mmdebstrap")?;
        Ok(())
    }
}

fn make(spec: &KernelSpec, root: &Path) -> Result<()> {
    let mut packages = vec![spec.compiler.as_str()];
    packages.extend(spec.tree_packages.iter().map(String::as_str));
    let system = Debian {
        variant: "essential",
        suites: &[&spec.tree_suite],
        packages: &packages,
        ..Debian::default()
    };
    system.make(root)?;
    for dir in [Tree::HEADERS, Tree::BUILD] {
        let path = root.join(dir.trim_start_matches('/'));
        std::fs::create_dir_all(&path).map_err(crate::LabError::io("create", path))?;
    }
    Ok(())
}
