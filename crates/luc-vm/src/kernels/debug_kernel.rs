//! Kernels built from a source package of the distribution, in the cache, once for each version,
//! configuration and set of patches. Most have the kernel's own checks switched on and find faults
//! that a stock kernel does not show: memory used after it was freed, locks taken in a wrong order,
//! data races, leaks. One has the patches of upstream/ and serves to measure them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::cache::{Cache, remove_tree, write_atomic};
use crate::error::{LabError, Result};
use crate::kernels::archive::{Archive, Package};
use crate::kernels::list::{KernelSpec, KernelTree};
use crate::progress::Progress;
use crate::tools::{self, capture, digest, in_path, jobs, without_outer_make};

/// A patch of upstream/, or of a folder there: its name and its text.
macro_rules! patch {
    ($folder:literal, $name:literal) => {
        (
            $name,
            include_str!(concat!("../../../../upstream/", $folder, $name)),
        )
    };
}

/// A file of lab/debug: its name and its text.
macro_rules! config {
    ($name:literal) => {
        (
            $name,
            include_str!(concat!("../../../../lab/debug/", $name, ".config")),
        )
    };
}

/// Parts of configurations, by the names that the list of kernels uses.
const CONFIGS: [(&str, &str); 6] = [
    config!("guest"),
    config!("checks"),
    config!("crc32c"),
    config!("kasan"),
    config!("kcsan"),
    config!("upstream"),
];
/// Sets of patches by the folder they lie in, in the order they apply.
const PATCHES: [(&str, &[(&str, &str)]); 1] = [("upstream", &UPSTREAM)];
/// The patch series, and the patch that is to follow it.
const UPSTREAM: [(&str, &str); 4] = [
    patch!(
        "",
        "0001-jbd2-add-a-tracepoint-for-waits-on-shadowed-buffers.patch"
    ),
    patch!(
        "",
        "0002-jbd2-ext4-journal-copies-of-contended-metadata.patch"
    ),
    patch!(
        "",
        "0003-jbd2-ext4-let-commits-wait-for-returning-sync-calls.patch"
    ),
    patch!(
        "later/",
        "0001-jbd2-let-BPF-decide-when-commits-start.patch"
    ),
];
/// Programs of a kernel build that build-essential does not contain, with their packages.
const TOOLS: [(&str, &str); 6] = [
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("xz", "xz-utils"),
    ("zstd", "zstd"),
];
/// Folders of the sources that neither a module's build nor a reader needs.
const NOT_KEPT: [&str; 5] = ["Documentation", "drivers", "net", "samples", "sound"];

/// The latest build of a kernel of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Built {
    release: String,
    version: String,
}

/// Finds the built kernel.
///
/// # Errors
/// [`LabError::NotBuilt`] with the command that builds it.
pub fn find(cache: &Cache, spec: &KernelSpec) -> Result<KernelTree> {
    let wanted = Wanted::from_spec(spec)?;
    let not_built = || LabError::NotBuilt {
        name: spec.name.clone(),
    };
    let record = fs::read(wanted.record(cache)).map_err(|_| not_built())?;
    let built: Built = serde_json::from_slice(&record).map_err(|_| not_built())?;
    let root = cache.path(&wanted.key(&built.version));
    if !root.exists() {
        return Err(not_built());
    }
    Ok(KernelTree {
        // Other configurations of this version have files of their own.
        version: format!("{}+{}", built.version, wanted.digest),
        release: built.release,
        image_root: root.clone(),
        headers_root: root,
    })
}

/// Builds the kernel if it is missing, which takes a quarter of an hour on two processors.
///
/// # Errors
/// A stock kernel, missing tools or packages, no disk space, or an error of the compiler.
pub fn build(cache: &Cache, spec: &KernelSpec, progress: &mut dyn Progress) -> Result<KernelTree> {
    let wanted = Wanted::from_spec(spec)?;
    let _lock = cache.lock(&format!("build-{}", spec.name))?;
    if let Ok(tree) = find(cache, spec) {
        return Ok(tree);
    }
    for (program, package) in wanted.tools(&spec.compiler) {
        if !in_path(program) {
            return Err(LabError::missing(program, package));
        }
    }
    let archive = Archive::open(cache, &spec.suites)?;
    archive.update()?;
    let package = archive.package(wanted.source, spec.verified.as_deref())?;
    let log = cache.path(&format!("kernels/{}.build.log", spec.name));
    let root = cache.entry(&wanted.key(&package.version), |root| {
        progress.stage(&format!(
            "fetching the sources of kernel {}",
            package.version
        ));
        unpack(&archive, &package, root)?;
        apply(wanted.patches, &root.join("linux"))?;
        let mut make = Make {
            sources: &root.join("linux"),
            compiler: &spec.compiler,
            log: &log,
        };
        progress.stage(&format!(
            "building kernel {}: a quarter of an hour on two processors, once; see {}",
            spec.name,
            log.display()
        ));
        let release = make.kernel(&wanted.config)?;
        make.install(&release, root)
    })?;
    let built = Built {
        release: installed_release(&root)?,
        version: package.version,
    };
    let json = serde_json::to_vec(&built).map_err(|e| LabError::KernelList(e.to_string()))?;
    write_atomic(&wanted.record(cache), &json)?;
    find(cache, spec)
}

/// A kernel to build, from a row of the list.
struct Wanted<'a> {
    name: &'a str,
    source: &'a str,
    version: &'a str,
    config: String,
    patches: &'static [(&'static str, &'static str)],
    digest: String,
}

impl<'a> Wanted<'a> {
    fn from_spec(spec: &'a KernelSpec) -> Result<Self> {
        let Some(source) = &spec.source else {
            return Err(LabError::bad_input(
                format!("kernel {}", spec.name),
                "it is a stock kernel, which is installed from packages, not built",
            ));
        };
        let config = config(&spec.config)?;
        let patches = patches(&spec.patches)?;
        let texts = [source.as_str(), &spec.compiler, &config].into_iter();
        let digest = digest(texts.chain(patches.iter().map(|(_, text)| *text)));
        Ok(Self {
            name: &spec.name,
            source,
            version: spec.verified.as_deref().unwrap_or("newest"),
            config,
            patches,
            digest: digest[..8].to_owned(),
        })
    }

    /// Programs that the build calls, with their packages.
    fn tools<'b>(&self, compiler: &'b str) -> impl Iterator<Item = (&'b str, &'b str)> {
        let types = self.config.contains("CONFIG_DEBUG_INFO_BTF=y");
        TOOLS
            .into_iter()
            .chain([(compiler, compiler)])
            .chain(types.then_some(("pahole", "dwarves")))
            .chain((!self.patches.is_empty()).then_some(("patch", "patch")))
    }

    fn key(&self, version: &str) -> String {
        format!("kernels/{}-{version}+{}", self.name, self.digest)
    }

    fn record(&self, cache: &Cache) -> PathBuf {
        cache.path(&format!("{}.json", self.key(self.version)))
    }
}

/// Joins the parts of a configuration.
fn config(names: &[String]) -> Result<String> {
    let text = |name: &String| {
        CONFIGS
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, text)| *text)
            .ok_or_else(|| LabError::KernelList(format!("there is no lab/debug/{name}.config")))
    };
    names.iter().map(text).collect()
}

/// The set of patches with that name; an empty name means no patches.
fn patches(name: &str) -> Result<&'static [(&'static str, &'static str)]> {
    if name.is_empty() {
        return Ok(&[]);
    }
    PATCHES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, patches)| *patches)
        .ok_or_else(|| LabError::KernelList(format!("there are no patches named {name}")))
}

/// Applies patches to sources, with offsets if need be. A patch that does not apply, or only in
/// part, is an error.
fn apply(patches: &[(&str, &str)], sources: &Path) -> Result<()> {
    for (name, text) in patches {
        let file = sources.join(name);
        write_atomic(&file, text.as_bytes())?;
        let mut command = Command::new("patch");
        command.args([
            "--strip=1",
            "--silent",
            "--force",
            "--no-backup-if-mismatch",
        ]);
        command.arg("--directory").arg(sources);
        command.arg("--input").arg(&file);
        capture(&mut command, "patch")?;
    }
    Ok(())
}

/// Unpacks the package and the archive inside it to `root/linux`.
fn unpack(archive: &Archive, package: &Package, root: &Path) -> Result<()> {
    let parcel = root.join("parcel");
    archive.unpack(std::slice::from_ref(package), &parcel)?;
    let dir = parcel.join("usr/src");
    let tar = fs::read_dir(&dir)
        .map_err(LabError::io("list", &dir))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(".tar.xz"))
        .ok_or_else(|| LabError::NoPackage {
            package: format!("{} with a .tar.xz in usr/src", package.name),
            suite: "the archive".to_owned(),
        })?;
    let sources = root.join("linux");
    fs::create_dir_all(&sources).map_err(LabError::io("create", &sources))?;
    let mut command = Command::new("tar");
    command.args(["-x", "--strip-components=1", "-f"]).arg(tar);
    command.arg("-C").arg(&sources);
    capture(&mut command, "tar")?;
    remove_tree(&parcel)
}

/// Runs the kernel's own makefile.
struct Make<'a> {
    sources: &'a Path,
    compiler: &'a str,
    log: &'a Path,
}

impl Make<'_> {
    fn run(&mut self, args: &[&str]) -> Result<()> {
        let log = File::options().create(true).append(true).open(self.log);
        let log = log.map_err(LabError::io("open", self.log))?;
        let errors = log.try_clone().map_err(LabError::io("share", self.log))?;
        let mut command = Command::new("make");
        command.arg("-C").arg(self.sources);
        for variable in ["CC", "HOSTCC"] {
            command.arg(format!("{variable}={}", self.compiler));
        }
        // Equal sources give equal kernels.
        command.env("KBUILD_BUILD_TIMESTAMP", "2024-01-01");
        command.args(args).stdin(Stdio::null());
        let status = without_outer_make(&mut command)
            .stdout(log)
            .stderr(errors)
            .status()
            .map_err(LabError::io("run", "make"))?;
        if status.success() {
            return Ok(());
        }
        let text = fs::read(self.log).unwrap_or_default();
        Err(LabError::Tool {
            program: format!("make {}", args.join(" ")),
            status: format!("{status}, see {}", self.log.display()),
            detail: tools::tail(&String::from_utf8_lossy(&text), 5),
        })
    }

    /// Configures and builds; returns the kernel's release.
    fn kernel(&mut self, config: &str) -> Result<String> {
        write_atomic(self.log, b"")?;
        let wish = self.sources.join("luc.config");
        write_atomic(&wish, config.as_bytes())?;
        let wish = format!("KCONFIG_ALLCONFIG={}", wish.display());
        self.run(&[&wish, "allnoconfig"])?;
        let path = self.sources.join(".config");
        let got = fs::read_to_string(&path).map_err(LabError::io("read", &path))?;
        if let Some(line) = missing(config, &got).next() {
            return Err(LabError::KernelList(format!(
                "this kernel's configuration did not accept {line}"
            )));
        }
        self.run(&[&jobs(), "bzImage", "modules"])?;
        let path = self.sources.join("include/config/kernel.release");
        let release = fs::read_to_string(&path).map_err(LabError::io("read", &path))?;
        Ok(release.trim().to_owned())
    }

    /// Puts the results where packages put theirs, and removes the rest.
    fn install(&mut self, release: &str, root: &Path) -> Result<()> {
        let to = format!("INSTALL_MOD_PATH={}", root.display());
        self.run(&[&to, "DEPMOD=true", "modules_install"])?;
        let modules = root.join("lib/modules").join(release);
        // The link points to the sources' current place, but they are moved below.
        let _ = fs::remove_file(modules.join("build"));
        let boot = root.join("boot");
        fs::create_dir_all(&boot).map_err(LabError::io("create", &boot))?;
        let image = self.sources.join("arch/x86/boot/bzImage");
        fs::copy(&image, boot.join(format!("vmlinuz-{release}")))
            .map_err(LabError::io("copy", &image))?;
        for dir in NOT_KEPT {
            remove_tree(&self.sources.join(dir))?;
        }
        remove_objects(self.sources)?;
        let headers = root.join("usr/src");
        fs::create_dir_all(&headers).map_err(LabError::io("create", &headers))?;
        fs::rename(
            self.sources,
            headers.join(format!("linux-headers-{release}")),
        )
        .map_err(LabError::io("move", self.sources))
    }
}

/// Requested lines that a configuration does not have. For `X=n` it has `X is not set`, or leaves X
/// out if the kernel cannot have it.
fn missing<'a>(wish: &'a str, got: &'a str) -> impl Iterator<Item = &'a str> {
    let got: std::collections::HashSet<&str> = got.lines().collect();
    wish.lines()
        .filter(|line| line.starts_with("CONFIG_"))
        .filter(move |line| match line.strip_suffix("=n") {
            Some(name) => ["y", "m"]
                .iter()
                .any(|value| got.contains(format!("{name}={value}").as_str())),
            None => !got.contains(line),
        })
}

/// Removes objects, which are most of a built tree. Modules need only those in scripts/ and tools/.
fn remove_objects(sources: &Path) -> Result<()> {
    let mut command = Command::new("find");
    command.arg(sources);
    command.args(["-type", "f", "(", "-name", "*.o", "-o", "-name", "*.a"]);
    command.args(["-o", "-name", "vmlinux*", "-o", "-name", "bzImage", ")"]);
    command.args(["-not", "-path", "*/scripts/*", "-not", "-path", "*/tools/*"]);
    command.arg("-delete");
    capture(&mut command, "findutils")?;
    Ok(())
}

fn installed_release(root: &Path) -> Result<String> {
    let dir = root.join("lib/modules");
    fs::read_dir(&dir)
        .map_err(LabError::io("list", &dir))?
        .flatten()
        .find_map(|entry| entry.file_name().into_string().ok())
        .ok_or_else(|| LabError::NoModule {
            kernel: root.display().to_string(),
            module: "(any)".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::list::KernelList;

    fn specs() -> Vec<KernelSpec> {
        let list = KernelList::builtin().unwrap();
        list.kernels
            .into_iter()
            .filter(|kernel| kernel.source.is_some())
            .collect()
    }

    #[test]
    fn a_kernel_that_is_not_built_says_how_to() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let specs = specs();
        assert!(!specs.is_empty());
        for spec in &specs {
            let error = find(&cache, spec).unwrap_err();
            assert!(error.is_missing_prerequisite());
            let text = error.to_string();
            let command = format!("luc-lab debug-kernel {}", spec.name);
            assert!(text.contains(&command) && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn a_built_kernel_is_found_until_its_configuration_changes() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let mut spec = specs().remove(0);
        let wanted = Wanted::from_spec(&spec).unwrap();
        let built = br#"{"release":"1.0-luc","version":"1.0-1"}"#;
        write_atomic(&wanted.record(&cache), built).unwrap();
        assert!(find(&cache, &spec).is_err(), "a record alone");
        fs::create_dir_all(cache.path(&wanted.key("1.0-1"))).unwrap();
        let tree = find(&cache, &spec).unwrap();
        assert_eq!(tree.release, "1.0-luc");
        assert!(tree.version.starts_with("1.0-1+"), "{}", tree.version);
        spec.config.pop();
        assert!(find(&cache, &spec).is_err(), "another configuration");
        spec.config.push("no-such".into());
        let error = find(&cache, &spec).unwrap_err().to_string();
        assert!(error.contains("no-such.config"), "{error}");
    }

    #[test]
    fn patches_are_part_of_the_key_and_apply_once() {
        let list = KernelList::builtin().unwrap();
        let mut spec = list.get("7.2-upstream").unwrap().clone();
        let patched = Wanted::from_spec(&spec).unwrap();
        assert_eq!(patched.patches.len(), 4);
        let tools: Vec<_> = patched.tools("cc").map(|(program, _)| program).collect();
        assert!(tools.contains(&"patch") && tools.contains(&"pahole"));
        let digest = patched.digest;
        spec.patches.clear();
        let plain = Wanted::from_spec(&spec).unwrap();
        assert!(plain.patches.is_empty() && plain.digest != digest);
        spec.patches = "no-such".into();
        assert!(Wanted::from_spec(&spec).is_err());

        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "old\n").unwrap();
        let patch = [("p.patch", "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new\n")];
        apply(&patch, dir.path()).unwrap();
        assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"new\n");
        assert!(apply(&patch, dir.path()).is_err(), "a second time");
    }

    #[test]
    fn stock_kernels_are_not_built() {
        let list = KernelList::builtin().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path()).unwrap();
        let error = build(
            &cache,
            list.get("6.12").unwrap(),
            &mut crate::progress::Silent,
        );
        assert!(error.unwrap_err().to_string().contains("stock"));
    }

    #[test]
    fn a_wish_that_was_not_granted_is_noticed() {
        let got = "CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D=\"x\"\n";
        let wish = "# words\nCONFIG_A=y\nCONFIG_C=n\nCONFIG_D=\"x\"\nCONFIG_E=n\n";
        assert_eq!(missing(wish, got).count(), 0);
        let wish = "CONFIG_A=m\nCONFIG_B=n\nCONFIG_F=y\n";
        let lines: Vec<_> = missing(wish, got).collect();
        assert_eq!(lines, ["CONFIG_A=m", "CONFIG_B=n", "CONFIG_F=y"]);
    }
}
