//! Modules of an unpacked kernel: finding, decompressing and ordering them without `depmod`, which
//! is not run for packages that are only unpacked.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::{LabError, Result};
use crate::tools::files_below;

/// All modules of one kernel.
#[derive(Debug)]
pub struct Modules {
    release: String,
    files: BTreeMap<String, PathBuf>,
    builtin: BTreeSet<String>,
}

/// A module ready for the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Name with underscores.
    pub name: String,
    /// Uncompressed object.
    pub data: Vec<u8>,
}

impl Modules {
    /// Lists the modules below `root`, where packages were unpacked.
    ///
    /// # Errors
    /// When there is no module folder for `release`.
    pub fn open(root: &Path, release: &str) -> Result<Self> {
        let dir = ["lib/modules", "usr/lib/modules"]
            .iter()
            .map(|dir| root.join(dir).join(release))
            .find(|dir| dir.join("kernel").is_dir())
            .ok_or_else(|| LabError::NoModule {
                kernel: release.to_owned(),
                module: "(any)".to_owned(),
            })?;
        let files = files_below(&dir.join("kernel"))?.into_iter();
        let files = files.filter_map(|path| Some((module_name(&path)?, path)));
        let builtin = fs::read_to_string(dir.join("modules.builtin")).unwrap_or_default();
        let builtin = builtin
            .lines()
            .filter_map(|line| module_name(Path::new(line)))
            .collect();
        Ok(Self {
            release: release.to_owned(),
            files: files.collect(),
            builtin,
        })
    }

    /// Whether the kernel has this module, as a file or built in.
    pub fn has(&self, name: &str) -> bool {
        let name = normal(name);
        self.files.contains_key(&name) || self.builtin.contains(&name)
    }

    /// The named modules and all their dependencies, each after its dependencies; built-in modules
    /// are left out.
    ///
    /// # Errors
    /// [`LabError::NoModule`] for a name this kernel does not have.
    pub fn in_load_order(&self, names: &[String]) -> Result<Vec<Module>> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for name in names {
            self.visit(&normal(name), true, &mut seen, &mut order)?;
        }
        Ok(order)
    }

    fn visit(
        &self,
        name: &str,
        required: bool,
        seen: &mut BTreeSet<String>,
        order: &mut Vec<Module>,
    ) -> Result<()> {
        if self.builtin.contains(name) || !seen.insert(name.to_owned()) {
            return Ok(());
        }
        let Some(path) = self.files.get(name) else {
            if !required {
                return Ok(());
            }
            return Err(LabError::NoModule {
                kernel: self.release.clone(),
                module: name.to_owned(),
            });
        };
        let data = decompress(path)?;
        let info = ModInfo::parse(&data);
        for needed in &info.depends {
            self.visit(needed, true, seen, order)?;
        }
        for wished in &info.soft_before {
            // A soft dependency may name an alias, such as a crypto algorithm.
            for candidate in [wished.clone(), format!("{wished}_generic")] {
                self.visit(&candidate, false, seen, order)?;
            }
        }
        order.push(Module {
            name: name.to_owned(),
            data,
        });
        Ok(())
    }
}

/// Returns the module's name: `crc32c-intel.ko.xz` is the module `crc32c_intel`.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let stem = [".ko", ".ko.xz", ".ko.zst"]
        .iter()
        .find_map(|end| file.strip_suffix(end))?;
    Some(normal(stem))
}

fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// A module's own statements about its dependencies.
#[derive(Debug, Default, PartialEq, Eq)]
struct ModInfo {
    depends: Vec<String>,
    soft_before: Vec<String>,
}

impl ModInfo {
    /// Reads the NUL-separated `key=value` strings of the `.modinfo` section. Searches the whole
    /// file: the same text elsewhere would at worst name one more module, which is then missing or
    /// loaded needlessly.
    fn parse(data: &[u8]) -> Self {
        let mut info = Self::default();
        for text in data.split(|&b| b == 0) {
            if let Some(list) = text.strip_prefix(b"depends=") {
                let list = String::from_utf8_lossy(list);
                info.depends
                    .extend(list.split(',').filter(|n| !n.is_empty()).map(normal));
            } else if let Some(list) = text.strip_prefix(b"softdep=") {
                let list = String::from_utf8_lossy(list);
                let before = list.split_once("pre:").map_or("", |(_, names)| names);
                let before = before.split("post:").next().unwrap_or_default();
                info.soft_before
                    .extend(before.split_whitespace().map(normal));
            }
        }
        info
    }
}

/// Reads a file, decompressing by its ending.
///
/// # Errors
/// The file cannot be read or is damaged.
fn decompress(path: &Path) -> Result<Vec<u8>> {
    let data = fs::read(path).map_err(LabError::io("read", path))?;
    let whole = match path.extension().and_then(|e| e.to_str()) {
        Some("xz") => unxz(&data),
        Some("zst") => unzstd(&data),
        _ => return Ok(data),
    };
    whole.map_err(LabError::io("decompress", path))
}

/// Decompresses one xz stream; bytes after it are ignored.
pub(crate) fn unxz(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    liblzma::bufread::XzDecoder::new(data).read_to_end(&mut out)?;
    Ok(out)
}

/// Decompresses one zstd frame; bytes after it are ignored.
pub(crate) fn unzstd(data: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(data)
        .map_err(io::Error::other)?
        .read_to_end(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(info: &str) -> Vec<u8> {
        let mut data = b"\x7fELF\0\0".to_vec();
        data.extend(info.replace('|', "\0").bytes());
        data.push(0);
        data
    }

    fn tree() -> (tempfile::TempDir, Modules) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("lib/modules/1.0");
        let fs_dir = base.join("kernel/fs");
        fs::create_dir_all(&fs_dir).unwrap();
        fs::write(base.join("modules.builtin"), "kernel/lib/crc16.ko\n").unwrap();
        for (file, info) in [
            (
                "ext4.ko",
                "license=GPL|depends=jbd2,crc16,mb-cache|softdep=pre: crc32c post: late",
            ),
            ("jbd2.ko", "depends="),
            ("mb-cache.ko", "depends="),
            ("crc32c_generic.ko", "depends="),
            ("late.ko", "depends="),
        ] {
            fs::write(fs_dir.join(file), module(info)).unwrap();
        }
        let modules = Modules::open(dir.path(), "1.0").unwrap();
        (dir, modules)
    }

    #[test]
    fn needed_modules_come_first() {
        let (_dir, modules) = tree();
        let order = modules
            .in_load_order(&["ext4".into(), "jbd2".into(), "crc16".into()])
            .unwrap();
        let names: Vec<_> = order.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, ["jbd2", "mb_cache", "crc32c_generic", "ext4"]);
        assert!(modules.has("mb-cache") && modules.has("crc16") && !modules.has("xfs"));
    }

    #[test]
    fn a_missing_module_is_named() {
        let (_dir, modules) = tree();
        let error = modules
            .in_load_order(&["xfs".into()])
            .unwrap_err()
            .to_string();
        assert!(error.contains("xfs") && error.contains("1.0"), "{error}");
    }

    #[test]
    fn damaged_compression_is_an_error() {
        assert!(unxz(b"\xfd7zXZ\0broken").is_err());
        assert!(unzstd(b"\x28\xb5\x2f\xfd").is_err());
    }
}
