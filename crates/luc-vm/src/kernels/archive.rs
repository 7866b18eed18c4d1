//! A distribution's archive: a private apt configuration per set of suites, resolution of one
//! kernel to exact packages, download and unpacking. Nothing is installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::cache::{Cache, write_atomic};
use crate::error::{LabError, Result};
use crate::kernels::list::KernelSpec;
use crate::kernels::mirror;
use crate::tools::capture;

/// Package lists older than this are fetched again before they are searched.
const LISTS_AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// A kernel resolved to exact packages; recorded so that later runs repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resolution {
    pub(crate) release: String,
    pub(crate) version: String,
    pub(crate) image: Vec<Package>,
    pub(crate) headers: Vec<Package>,
}

/// One package in an exact version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// One package as the archive describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stanza {
    package: Package,
    depends: Vec<Dependency>,
}

/// The first alternative of a dependency, with its version if that is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Dependency {
    name: String,
    exact: Option<String>,
}

/// Suites seen through apt, with a private state.
pub(crate) struct Archive {
    dir: PathBuf,
    suites: String,
    lock: PathBuf,
    cache: Cache,
}

impl Archive {
    pub(crate) fn open(cache: &Cache, suites: &[String]) -> Result<Self> {
        let mirror = mirror::find()?;
        let lines = suites.iter().filter_map(|suite| mirror.source(suite));
        let lines: String = lines.map(|line| line + "\n").collect();
        let name = format!("apt/{}", suites.join("+"));
        let dir = cache.path(&name);
        for part in ["lists/partial", "archives/partial"] {
            let path = dir.join(part);
            fs::create_dir_all(&path).map_err(LabError::io("create", path))?;
        }
        let list = dir.join("sources.list");
        if fs::read_to_string(&list).ok().as_deref() != Some(&lines) {
            let _ = fs::remove_file(dir.join("updated"));
            write_atomic(&list, lines.as_bytes())?;
        }
        Ok(Self {
            suites: suites.join(" "),
            lock: PathBuf::from(name),
            cache: cache.clone(),
            dir,
        })
    }

    fn apt(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let dir = self.dir.display();
        for option in [
            format!("Dir::State::Lists={dir}/lists"),
            format!("Dir::Etc::SourceList={dir}/sources.list"),
            format!("Dir::Cache={dir}"),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            "Dir::Etc::Preferences=/dev/null".to_owned(),
            "Dir::Etc::PreferencesParts=/dev/null".to_owned(),
            "Dir::State::status=/dev/null".to_owned(),
            // The private folders need not be readable by apt's own user.
            "APT::Sandbox::User=root".to_owned(),
            "APT::Architecture=amd64".to_owned(),
            "APT::Architectures=amd64".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Acquire::Retries=3".to_owned(),
        ] {
            command.arg("-o").arg(option);
        }
        command.env("LC_ALL", "C");
        command
    }

    pub(crate) fn update(&self) -> Result<()> {
        let _lock = self.cache.lock(&self.lock.display().to_string())?;
        let stamp = self.dir.join("updated");
        let age = fs::metadata(&stamp)
            .and_then(|m| m.modified())
            .ok()
            .and_then(|time| SystemTime::now().duration_since(time).ok());
        if age.is_some_and(|age| age < LISTS_AGE_MAX) {
            return Ok(());
        }
        // Without this option apt reports success although a mirror does not answer.
        let mut command = self.apt("apt-get");
        command.args(["-o", "APT::Update::Error-Mode=any", "-q", "update"]);
        capture(&mut command, "apt")?;
        write_atomic(&stamp, b"")
    }

    fn show(&self, package: &str) -> Vec<Stanza> {
        let mut command = self.apt("apt-cache");
        command.args(["show", package]);
        // apt-cache fails for a package it does not know: that is an answer.
        let text = capture(&mut command, "apt").unwrap_or_default();
        text.split("\n\n")
            .filter_map(parse_stanza)
            .filter(|stanza| stanza.package.name == package)
            .collect()
    }

    fn newest(&self, package: &str) -> Result<Stanza> {
        // apt-cache prints the newest version of a package first.
        self.show(package)
            .into_iter()
            .next()
            .ok_or_else(|| self.no_package(package))
    }

    fn exactly(&self, package: &str, version: &str) -> Result<Stanza> {
        self.show(package)
            .into_iter()
            .find(|stanza| stanza.package.version == version)
            .ok_or_else(|| self.no_package(&format!("{package} {version}")))
    }

    fn no_package(&self, package: &str) -> LabError {
        LabError::NoPackage {
            package: package.to_owned(),
            suite: self.suites.clone(),
        }
    }

    /// A package, in this version if the archive has it, else in the newest.
    pub(crate) fn package(&self, name: &str, version: Option<&str>) -> Result<Package> {
        let wanted = version.and_then(|version| self.exactly(name, version).ok());
        let stanza = wanted.map_or_else(|| self.newest(name), Ok)?;
        Ok(stanza.package)
    }

    /// Resolves a kernel to one release, with image and headers of the same version.
    pub(crate) fn resolve(&self, spec: &KernelSpec) -> Result<Resolution> {
        if let (Some(version), Some(release)) = (&spec.verified, &spec.release)
            && let Ok(resolution) = self.pin(release, version)
        {
            return Ok(resolution);
        }
        let image = self.newest(&spec.image)?;
        let headers = self.exactly(&spec.headers, &image.package.version)?;
        let release_of = |stanza: &Stanza, prefix: &str| {
            stanza
                .depends
                .iter()
                .find_map(|d| d.name.strip_prefix(prefix).map(str::to_owned))
                .ok_or_else(|| self.no_package(&format!("{prefix}* for {}", stanza.package.name)))
        };
        let release = release_of(&image, "linux-image-")?;
        let headers_release = release_of(&headers, "linux-headers-")?;
        if release != headers_release {
            return Err(self.no_package(&format!("linux-headers-{release}")));
        }
        self.pin(&release, &image.package.version)
    }

    fn pin(&self, release: &str, version: &str) -> Result<Resolution> {
        Ok(Resolution {
            release: release.to_owned(),
            version: version.to_owned(),
            image: self.closure(&format!("linux-image-{release}"), version)?,
            headers: self.closure(&format!("linux-headers-{release}"), version)?,
        })
    }

    /// A package and those of its dependencies that contain parts of the kernel.
    fn closure(&self, root: &str, version: &str) -> Result<Vec<Package>> {
        let mut found: Vec<Package> = Vec::new();
        let mut queue = vec![self.exactly(root, version)?];
        while let Some(stanza) = queue.pop() {
            let parts = stanza.depends.iter();
            for dependency in parts.filter(|d| is_kernel_part(&d.name, root)) {
                if found.iter().any(|p| p.name == dependency.name) {
                    continue;
                }
                queue.push(match &dependency.exact {
                    Some(exact) => self.exactly(&dependency.name, exact)?,
                    None => self.newest(&dependency.name)?,
                });
            }
            if !found.contains(&stanza.package) {
                found.push(stanza.package);
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    pub(crate) fn unpack(&self, packages: &[Package], root: &Path) -> Result<()> {
        let lock = self.cache.lock(&self.lock.display().to_string())?;
        let debs = tempfile::tempdir_in(&self.dir)
            .map_err(LabError::io("create a folder in", &self.dir))?;
        let mut command = self.apt("apt-get");
        command.args(["-q", "download"]).current_dir(debs.path());
        command.args(packages.iter().map(|p| format!("{}={}", p.name, p.version)));
        if capture(&mut command, "apt").is_err() {
            // The lists may be older than the archive: fetch them and try once more.
            let _ = fs::remove_file(self.dir.join("updated"));
            drop(lock);
            self.update()?;
            capture(&mut command, "apt")?;
        }
        let mut unpacked = 0;
        for entry in fs::read_dir(debs.path()).map_err(LabError::io("list", debs.path()))? {
            let path = entry.map_err(LabError::io("list", debs.path()))?.path();
            let mut command = Command::new("dpkg-deb");
            command.arg("-x").arg(&path).arg(root);
            capture(&mut command, "dpkg")?;
            unpacked += 1;
        }
        if unpacked == packages.len() {
            return Ok(());
        }
        let names: Vec<_> = packages.iter().map(|p| p.name.as_str()).collect();
        Err(self.no_package(&names.join(" ")))
    }
}

/// Parts of the kernel itself, as opposed to tools that a real installation needs.
fn is_kernel_part(name: &str, root: &str) -> bool {
    let versioned = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let parts = if root.starts_with("linux-image-") {
        ["linux-base-", "linux-binary-", "linux-modules-"]
    } else {
        ["linux-headers-", "linux-kbuild-", "linux-base-"]
    };
    parts.into_iter().any(versioned)
}

fn parse_stanza(text: &str) -> Option<Stanza> {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
            .map(str::trim)
    };
    let depends = [field("Pre-Depends"), field("Depends")]
        .into_iter()
        .flatten()
        .flat_map(|list| list.split(','))
        .filter_map(|alternatives| parse_dependency(alternatives.split('|').next()?))
        .collect();
    let package = Package {
        name: field("Package")?.to_owned(),
        version: field("Version")?.to_owned(),
    };
    Some(Stanza { package, depends })
}

fn parse_dependency(text: &str) -> Option<Dependency> {
    let text = text.trim();
    let name = text
        .split([' ', '(', ':'])
        .next()
        .filter(|n| !n.is_empty())?;
    let exact = text
        .split_once("(= ")
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .map(|version| version.trim().to_owned());
    Some(Dependency {
        name: name.to_owned(),
        exact,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stanzas_give_exact_dependencies() {
        let stanza = parse_stanza(
            "Package: linux-image-7.2.13+deb14-cloud-amd64\nVersion: 7.2.13-1\n\
             Pre-Depends: linux-base (>= 4.17~)\n\
             Depends: dracut | initramfs-tools (>= 0.120), linux-base-7.2.13+deb14-cloud-amd64 (= 7.2.13-1), \
             linux-binary-7.2.13+deb14-cloud-amd64 (= 7.2.13-1)\nSize: 5\n",
        )
        .unwrap();
        let parts: Vec<_> = stanza
            .depends
            .iter()
            .filter(|d| is_kernel_part(&d.name, "linux-image-7"))
            .collect();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].name, "linux-base-7.2.13+deb14-cloud-amd64");
        assert_eq!(parts[0].exact.as_deref(), Some("7.2.13-1"));
        assert!(parse_stanza("nonsense").is_none());
    }

    #[test]
    fn compilers_are_no_kernel_parts() {
        let names = "gcc-12 linux-compiler-gcc-12-x86 linux-base pahole";
        for name in names.split(' ') {
            assert!(!is_kernel_part(name, "linux-headers-6.1"), "{name}");
        }
        assert!(is_kernel_part("linux-kbuild-6.1", "linux-headers-6.1"));
        assert!(!is_kernel_part("linux-image-6.12", "linux-headers-6.12"));
    }
}
