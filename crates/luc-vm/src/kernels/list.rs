//! The list of kernels that the lab can boot (`kernels.toml`), and a kernel in the cache.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};

/// How far a kernel has been proven with this project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelStatus {
    /// Boots and runs the project's tests.
    Works,
    /// Not tried yet.
    Untested,
    /// Known not to work; the note says why.
    Broken,
}

/// All tags; `kernels.toml` defines them.
pub const TAGS: [&str; 3] = ["quick", "every", "look"];

/// One kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelSpec {
    /// Name on the command line.
    pub name: String,
    /// Tags by which tests and measurements choose kernels; see [`TAGS`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Debian suites to look in. A suite ending in `-security` comes from the security archive and
    /// is left out if this machine's apt sources name none.
    pub suites: Vec<String>,
    /// Package that depends on the newest image; empty if there is a source.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// Package that depends on the newest headers; empty if there is a source.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub headers: String,
    /// Package with the sources of a kernel that is built here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Parts of its configuration: names of files in lab/debug.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config: Vec<String>,
    /// Patches of its sources: a folder of the repository, such as upstream.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patches: String,
    /// Fixed part of its command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cmdline: String,
    /// Compiler the headers ask for.
    pub compiler: String,
    /// Suite of the build tree to compile in if this machine lacks the compiler.
    pub tree_suite: String,
    /// Packages of that tree in addition to the compiler.
    #[serde(default)]
    pub tree_packages: Vec<String>,
    /// Debian version last proven, preferred while the archive has it.
    #[serde(default)]
    pub verified: Option<String>,
    /// Kernel release (`uname -r`) of the proven version.
    #[serde(default)]
    pub release: Option<String>,
    /// How far the kernel has been proven.
    pub status: KernelStatus,
    /// Anything that a user should know.
    #[serde(default)]
    pub note: String,
}

/// A kernel unpacked in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelTree {
    /// Kernel release as `uname -r` prints it.
    pub release: String,
    /// Debian version.
    pub version: String,
    /// Root of the unpacked image packages (boot/, lib/modules/).
    pub image_root: PathBuf,
    /// Root of the unpacked headers packages (usr/src/).
    pub headers_root: PathBuf,
}

/// Where the guest's own tools come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestTools {
    /// Suites to look in.
    pub suites: Vec<String>,
    /// Package with a statically linked busybox.
    pub busybox: String,
}

/// All kernels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelList {
    /// Where the guest's own tools come from.
    pub guest: GuestTools,
    /// The kernels in order.
    #[serde(rename = "kernel")]
    pub kernels: Vec<KernelSpec>,
}

impl KernelList {
    /// The list this program was built with.
    ///
    /// # Errors
    /// The list is inconsistent, which a test excludes.
    pub fn builtin() -> Result<Self> {
        Self::parse(include_str!("../../../../kernels.toml"))
    }

    /// Reads a list from a file.
    ///
    /// # Errors
    /// The file cannot be read or is not a list.
    pub fn load(path: &Path) -> Result<Self> {
        Self::parse(&std::fs::read_to_string(path).map_err(LabError::io("read", path))?)
    }

    /// Parses a list.
    ///
    /// # Errors
    /// [`LabError::KernelList`] names the fault.
    pub fn parse(text: &str) -> Result<Self> {
        let list: Self = toml::from_str(text)
            .map_err(|e| LabError::KernelList(e.to_string().replace('\n', " ")))?;
        let mut names = std::collections::BTreeSet::new();
        for kernel in &list.kernels {
            let name = &kernel.name;
            let bad = |why: &str| Err(LabError::KernelList(format!("kernel {name:?}: {why}")));
            let legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if name.is_empty() || !name.chars().all(legal) {
                return bad("names may contain only letters, digits, '.', '_' and '-'");
            }
            if !names.insert(name) {
                return bad("the name is used twice");
            }
            if !kernel.tags.iter().all(|tag| TAGS.contains(&tag.as_str())) {
                return bad("unknown tag");
            }
            if kernel.suites.is_empty() {
                return bad("suites is empty");
            }
            let packages = [&kernel.image, &kernel.headers];
            let stock = packages.iter().all(|package| !package.is_empty());
            let own = packages.iter().all(|package| package.is_empty())
                && kernel.source.is_some()
                && !kernel.config.is_empty();
            let built =
                kernel.source.is_some() || !kernel.config.is_empty() || !kernel.patches.is_empty();
            if !own && (!stock || built) {
                return bad("either image and headers, or source and config, must be set");
            }
            if kernel.verified.is_some() != kernel.release.is_some() {
                return bad("verified and release must be set together");
            }
        }
        Ok(list)
    }

    /// The kernel with that name.
    ///
    /// # Errors
    /// [`LabError::UnknownKernel`] lists the known names.
    pub fn get(&self, name: &str) -> Result<&KernelSpec> {
        self.kernels
            .iter()
            .find(|k| k.name == name)
            .ok_or_else(|| LabError::UnknownKernel {
                name: name.to_owned(),
                known: self.names().join(", "),
            })
    }

    /// Kernels that everything is measured and tested on; none if the built-in list is damaged.
    pub fn every() -> Vec<String> {
        Self::builtin().map_or_else(|_| Vec::new(), |list| list.tagged("every"))
    }

    /// Names of the kernels with this tag, in order.
    pub fn tagged(&self, tag: &str) -> Vec<String> {
        let has = |kernel: &&KernelSpec| kernel.tags.iter().any(|it| it == tag);
        let found = self.kernels.iter().filter(has);
        found.map(|kernel| kernel.name.clone()).collect()
    }

    /// All names in order.
    pub fn names(&self) -> Vec<&str> {
        self.kernels.iter().map(|k| k.name.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_list_is_good() {
        let list = KernelList::builtin().unwrap();
        let names = "6.1 6.1-full 6.12 6.12-full 7.2 7.3 6.12-debug 6.12-races 7.2-upstream \
                     7.2-upstream-debug 7.2-upstream-races";
        for name in names.split(' ') {
            list.get(name).unwrap();
        }
    }

    #[test]
    fn unknown_names_list_the_known() {
        let error = KernelList::builtin()
            .unwrap()
            .get("5.10")
            .unwrap_err()
            .to_string();
        assert!(error.contains("6.12-full"), "{error}");
    }

    #[test]
    fn bad_lists_are_refused_in_one_line() {
        let good = include_str!("../../../../kernels.toml");
        let twice = format!("{good}\n{}", &good[good.find("[[kernel]]").unwrap()..]);
        let cases = [
            String::new(),
            "[[kernel]]\nname = 5\n".to_owned(),
            good.replacen("compiler = ", "compilor = ", 1),
            good.replacen("name = \"6.1\"", "name = \"../6.1\"", 1),
            good.replacen("image = ", "source = ", 1),
            good.replacen("config = ", "tree_packages = ", 1),
            good.replacen("\"quick\"", "\"quickly\"", 1),
            good.replacen("config = ", "image = \"i\"\nconfig = ", 1),
            twice,
        ];
        for text in cases {
            let error = KernelList::parse(&text).unwrap_err().to_string();
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
