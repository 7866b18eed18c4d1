//! Builds the project's kernel modules against the headers of a lab kernel, in
//! the cache, once for each state of the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::{Cache, write_atomic};
use crate::error::{LabError, Result};
use crate::kernels::list::{KernelList, KernelSpec, KernelTree};
use crate::kernels::obtain;
use crate::kernels::tree::Tree;
use crate::progress::Progress;
use crate::tools::{self, digest, files_below, in_path, jobs, without_outer_make};

/// A module that is built from sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleSource {
    /// Source folders, placed as in the repository.
    dirs: &'static [&'static str],
    /// Folder of the Makefile and of the result.
    dir: &'static str,
    file: &'static str,
}

/// luc.ko.
const LUC: ModuleSource = ModuleSource {
    dirs: &["kmod", "control", "abi"],
    dir: "kmod",
    file: "luc.ko",
};
/// lucdisk.ko, the lab's disk.
pub const DISK_MODULE: ModuleSource = ModuleSource {
    dirs: &["lab/disk", "abi"],
    dir: "lab/disk/kmod",
    file: "lucdisk.ko",
};
/// Endings of files that a compiler leaves behind in a source folder.
const PRODUCTS: [&str; 10] = [
    "o", "ko", "mod", "cmd", "symvers", "order", "a", "d", "su", "gcno",
];

/// Builds `src_root/kmod` (with `control/` and `abi/` beside it) for a kernel and returns the path
/// of luc.ko in the cache.
///
/// # Errors
/// [`LabError::ModuleBuild`] holds the compiler's messages; other errors name what this machine
/// lacks.
pub fn build_module(
    list: &KernelList,
    kernel: &str,
    src_root: &Path,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    build_module_of(list, kernel, src_root, &LUC, progress)
}

/// Builds a module from its folders below `src_root` and returns its path in the cache.
///
/// # Errors
/// As [`build_module`].
pub fn build_module_of(
    list: &KernelList,
    kernel: &str,
    src_root: &Path,
    module: &ModuleSource,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let sources = read_sources(src_root, module)?;
    build(list, kernel, &sources, module, progress)
}

/// Digest of the sources of luc.ko below `src_root`, 16 hexadecimal digits.
///
/// # Errors
/// They are missing or cannot be read.
pub fn module_digest(src_root: &Path) -> Result<String> {
    let sources = read_sources(src_root, &LUC)?;
    let texts = sources.iter().flat_map(|(path, text)| {
        let path = path.as_os_str().as_encoded_bytes();
        [path, text.as_slice()]
    });
    Ok(digest(texts))
}

/// Builds the lab's disk from the sources that this program carries and returns the path of
/// lucdisk.ko in the cache.
///
/// # Errors
/// As [`build_module`].
pub fn build_disk_module(
    list: &KernelList,
    kernel: &str,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let sources: Vec<_> = luc_disk::SOURCES
        .iter()
        .map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec()))
        .collect();
    check_makefile(&sources, &DISK_MODULE, "of this program")?;
    build(list, kernel, &sources, &DISK_MODULE, progress)
}

fn build(
    list: &KernelList,
    kernel: &str,
    sources: &[(PathBuf, Vec<u8>)],
    module: &ModuleSource,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let spec = list.get(kernel)?;
    let cache = Cache::open()?;
    let tree = obtain::kernel(&cache, spec, progress)?;
    let key = format!("modules/{}-{}", tree.release, key(sources, spec, &tree));
    let entry = cache.entry(&key, |build| {
        progress.stage(&format!("building the module for kernel {}", tree.release));
        for (path, data) in sources {
            write_atomic(&build.join(path), data)?;
        }
        compile(&cache, spec, &tree, module, build, progress)
    })?;
    Ok(entry.join(module.dir).join(module.file))
}

/// Source files by path relative to the repository, sorted.
fn read_sources(src_root: &Path, module: &ModuleSource) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    let dirs = module.dirs.iter().map(|dir| src_root.join(dir));
    for dir in dirs.filter(|dir| dir.exists()) {
        for path in files_below(&dir)? {
            let name = path.strip_prefix(src_root).unwrap_or(&path);
            if is_source(name) {
                let data = fs::read(&path).map_err(LabError::io("read", &path))?;
                files.push((name.to_owned(), data));
            }
        }
    }
    files.sort();
    check_makefile(&files, module, &src_root.display().to_string())?;
    Ok(files)
}

fn check_makefile(files: &[(PathBuf, Vec<u8>)], module: &ModuleSource, whose: &str) -> Result<()> {
    let makefiles = ["Makefile", "Kbuild"].map(|name| Path::new(module.dir).join(name));
    if files.iter().any(|(path, _)| makefiles.contains(path)) {
        return Ok(());
    }
    Err(LabError::bad_input(
        format!("source folder {whose}"),
        format!("it must contain {0}/Makefile or {0}/Kbuild", module.dir),
    ))
}

/// Whether a file is a source: neither hidden nor left behind by a compiler.
fn is_source(path: &Path) -> bool {
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    let hidden = parts.any(|part| part.starts_with('.'));
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let product = PRODUCTS.contains(&&*ending) || path.to_string_lossy().ends_with(".mod.c");
    !hidden && !product
}

fn key(sources: &[(PathBuf, Vec<u8>)], spec: &KernelSpec, tree: &KernelTree) -> String {
    let head = [tree.version.as_bytes(), spec.compiler.as_bytes()];
    let files = sources
        .iter()
        .flat_map(|(path, data)| [path.as_os_str().as_encoded_bytes(), data]);
    digest(head.into_iter().chain(files))
}

fn compile(
    cache: &Cache,
    spec: &KernelSpec,
    tree: &KernelTree,
    module: &ModuleSource,
    build: &Path,
    progress: &mut dyn Progress,
) -> Result<()> {
    let headers = Path::new("usr/src").join(format!("linux-headers-{}", tree.release));
    make_relocatable(&tree.headers_root.join(&headers))?;
    let on_host = in_path(&spec.compiler);
    let (mut command, headers, inside) = if on_host {
        if !in_path("make") {
            return Err(LabError::missing("make", "make"));
        }
        let headers = tree.headers_root.join(headers);
        (Command::new("make"), headers, build.to_path_buf())
    } else {
        let chroot = Tree::open(cache, spec, progress)?;
        progress.stage(&format!("building the module for kernel {}", tree.release));
        let command = chroot.command(&tree.headers_root, build, "make");
        let headers = Path::new(Tree::HEADERS).join(headers);
        (command, headers, PathBuf::from(Tree::BUILD))
    };
    command.arg("-C").arg(headers);
    command.arg(format!("M={}", inside.join(module.dir).display()));
    command.arg(jobs());
    if on_host && !in_path("pahole") {
        // Type information helps tracers, but nothing depends on it.
        command.arg("CONFIG_DEBUG_INFO_BTF_MODULES=");
    }
    command.arg("modules");
    let output = without_outer_make(&mut command)
        .stdin(Stdio::null())
        .output()
        .map_err(LabError::io("run", "make"))?;
    let made = build.join(module.dir).join(module.file).exists();
    if output.status.success() && made {
        return Ok(());
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).replace(&format!("{}/", inside.display()), "");
    Err(LabError::ModuleBuild {
        kernel: tree.release.clone(),
        output: if output.status.success() {
            format!("it did not produce {}/{}", module.dir, module.file)
        } else {
            messages(&text)
        },
    })
}

/// The compiler's errors with the lines it quotes, or the end of the output.
fn messages(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let mut kept = Vec::new();
    let words = ["error:", "undefined!", "ERROR:", "fatal"];
    for (index, line) in lines.iter().enumerate() {
        if words.iter().any(|word| line.contains(word)) {
            kept.push(*line);
            // The quoted source and the caret.
            let quoted = lines[index + 1..].iter().take(2);
            kept.extend(quoted.filter(|line| line.contains(" | ")));
        }
    }
    if kept.is_empty() {
        return tools::tail(text, 30);
    }
    kept.truncate(60);
    kept.join("\n")
}

/// Makes the headers' Makefile work wherever the packages are unpacked: it names itself and the
/// common Makefile by their installed paths.
fn make_relocatable(headers: &Path) -> Result<()> {
    let path = headers.join("Makefile");
    let text = fs::read_to_string(&path).map_err(LabError::io("read", &path))?;
    let fixed = relocatable(&text);
    if fixed == text {
        return Ok(());
    }
    write_atomic(&path, fixed.as_bytes())
}

fn relocatable(makefile: &str) -> String {
    let mut fixed = String::new();
    for line in makefile.lines() {
        if let Some(rest) = line.strip_prefix("include /usr/src/") {
            fixed.push_str("include $(dir $(lastword $(MAKEFILE_LIST)))../");
            fixed.push_str(rest);
        } else if line.starts_with("KBUILD_OUTPUT=/usr/src/") {
            // Always entered with `make -C`.
            fixed.push_str("KBUILD_OUTPUT:=$(CURDIR)");
        } else {
            fixed.push_str(line);
        }
        fixed.push('\n');
    }
    fixed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_exclude_products_and_follow_changes() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            write_atomic(&dir.path().join(path), text.as_bytes()).unwrap();
        };
        assert!(read_sources(dir.path(), &LUC).is_err());
        put("kmod/Kbuild", "obj-m := luc.o");
        put("kmod/luc.c", "int x;");
        put("kmod/luc.o", "object");
        put("kmod/luc.mod.c", "made");
        put("kmod/.luc.o.cmd", "made");
        put("control/pid.c", "int y;");
        let sources = read_sources(dir.path(), &LUC).unwrap();
        let names: Vec<_> = sources.iter().map(|(p, _)| p.to_str().unwrap()).collect();
        assert_eq!(names, ["control/pid.c", "kmod/Kbuild", "kmod/luc.c"]);
        let list = KernelList::builtin().unwrap();
        let tree = KernelTree {
            release: "1".into(),
            version: "1-1".into(),
            image_root: PathBuf::new(),
            headers_root: PathBuf::new(),
        };
        let before = key(&sources, &list.kernels[0], &tree);
        put("control/pid.c", "int z;");
        let sources = read_sources(dir.path(), &LUC).unwrap();
        assert_ne!(before, key(&sources, &list.kernels[0], &tree));
    }

    #[test]
    fn compiler_errors_are_picked_out() {
        let text = "  CC [M]  kmod/luc.o\nkmod/luc.c:3:1: error: unknown type name 'foo'\n    3 | foo x;\n      | ^~~\n\
                    make[2]: *** [x] Error 1\n";
        let kept = messages(text);
        assert!(kept.starts_with("kmod/luc.c:3:1: error") && kept.contains("foo x;"));
        assert!(!kept.contains("CC [M]"));
        assert_eq!(messages("make: *** No rule"), "make: *** No rule");
    }

    #[test]
    fn wrapper_makefile_becomes_relative() {
        let fixed = relocatable(
            "KBUILD_OUTPUT=/usr/src/linux-headers-7.2-amd64\ninclude /usr/src/linux-headers-7.2-common/Makefile\n",
        );
        assert_eq!(
            fixed,
            "KBUILD_OUTPUT:=$(CURDIR)\n\
             include $(dir $(lastword $(MAKEFILE_LIST)))../linux-headers-7.2-common/Makefile\n"
        );
        assert_eq!(relocatable(&fixed), fixed);
    }
}
