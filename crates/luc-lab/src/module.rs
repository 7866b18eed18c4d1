//! Builds the project's kernel modules against the headers of a lab kernel, in
//! the cache, once for each state of the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};

use crate::cache::{Cache, write_atomic};
use crate::error::{LabError, Result};
use crate::kernels::{KernelList, KernelSpec, KernelTree};
use crate::log;
use crate::obtain;
use crate::progress::Progress;
use crate::tools::in_path;
use crate::tree::Tree;

/// A module that is built from sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleSource {
    /// Source folders it is made from, placed as in the repository.
    dirs: &'static [&'static str],
    /// Folder of its Makefile and of the result.
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
/// Endings of what a compiler leaves behind in a source folder.
const PRODUCTS: [&str; 10] = [
    "o", "ko", "mod", "cmd", "symvers", "order", "a", "d", "su", "gcno",
];

/// Builds `src_root/kmod` (with `control/` and `abi/` beside it) for a kernel
/// and gives the path of luc.ko in the cache.
///
/// # Errors
/// [`LabError::ModuleBuild`] holds the compiler's messages; else what is
/// missing on this machine.
pub fn build_module(
    list: &KernelList,
    kernel: &str,
    src_root: &Path,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    build_module_of(list, kernel, src_root, &LUC, progress)
}

/// Builds a module from its folders below `src_root` and gives its path in the
/// cache.
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

/// Builds the lab's disk from the sources that this program carries and gives
/// the path of lucdisk.ko in the cache.
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
    let key = format!("modules/{}-{}", tree.release, digest(sources, spec, &tree));
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
    for dir in module.dirs {
        collect(&src_root.join(dir), Path::new(dir), &mut files)?;
    }
    files.sort();
    check_makefile(&files, module, &src_root.display().to_string())?;
    Ok(files)
}

fn check_makefile(files: &[(PathBuf, Vec<u8>)], module: &ModuleSource, whose: &str) -> Result<()> {
    let has_makefile = ["Makefile", "Kbuild"].iter().any(|name| {
        files
            .iter()
            .any(|(path, _)| *path == Path::new(module.dir).join(name))
    });
    if has_makefile {
        return Ok(());
    }
    Err(LabError::bad_input(
        format!("source folder {whose}"),
        format!("it must hold {0}/Makefile or {0}/Kbuild", module.dir),
    ))
}

fn collect(dir: &Path, name: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(dir).map_err(LabError::io("list", dir))? {
        let path = entry.map_err(LabError::io("list", dir))?.path();
        let Some(file_name) = path.file_name() else {
            continue;
        };
        let hidden = file_name.to_string_lossy().starts_with('.');
        let product = path
            .extension()
            .is_some_and(|end| PRODUCTS.iter().any(|p| end == *p))
            || file_name.to_string_lossy().ends_with(".mod.c");
        if hidden || product {
            continue;
        }
        let name = name.join(file_name);
        if path.is_dir() {
            collect(&path, &name, files)?;
        } else {
            files.push((name, fs::read(&path).map_err(LabError::io("read", &path))?));
        }
    }
    Ok(())
}

fn digest(sources: &[(PathBuf, Vec<u8>)], spec: &KernelSpec, tree: &KernelTree) -> String {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    field(tree.version.as_bytes());
    field(spec.compiler.as_bytes());
    for (path, data) in sources {
        field(path.as_os_str().as_encoded_bytes());
        field(data);
    }
    let mut text = String::new();
    for byte in &hash.finalize()[..8] {
        use std::fmt::Write;
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
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
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let on_host = in_path(&spec.compiler);
    let (mut command, headers, inside) = if on_host {
        if !in_path("make") {
            return Err(LabError::MissingTool {
                program: "make".into(),
                package: "make".into(),
            });
        }
        (
            Command::new("make"),
            tree.headers_root.join(headers),
            build.to_path_buf(),
        )
    } else {
        let chroot = Tree::open(cache, spec, progress)?;
        progress.stage(&format!("building the module for kernel {}", tree.release));
        let command = chroot.command(&tree.headers_root, build, "make");
        (
            command,
            Path::new(Tree::HEADERS).join(headers),
            PathBuf::from(Tree::BUILD),
        )
    };
    command.arg("-C").arg(headers);
    command.arg(format!("M={}", inside.join(module.dir).display()));
    command.arg(format!("-j{jobs}"));
    if on_host && !in_path("pahole") {
        // Type information for tracers is welcome but nothing depends on it.
        command.arg("CONFIG_DEBUG_INFO_BTF_MODULES=");
    }
    command.arg("modules");
    // An outer make must not pass its options and job server on.
    for name in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"] {
        command.env_remove(name);
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(LabError::io("run", "make"))?;
    let made = build.join(module.dir).join(module.file).exists();
    if output.status.success() && made {
        return Ok(());
    }
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let text = text.replace(&format!("{}/", inside.display()), "");
    Err(LabError::ModuleBuild {
        kernel: tree.release.clone(),
        output: if output.status.success() {
            format!("it made no {}/{}", module.dir, module.file)
        } else {
            messages(&text)
        },
    })
}

/// The compiler's errors with the lines it quotes, or the end of the output.
fn messages(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let mut kept = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if ["error:", "undefined!", "ERROR:", "fatal"]
            .iter()
            .any(|word| line.contains(word))
        {
            kept.push(*line);
            // The quoted source and the caret.
            kept.extend(
                lines[index + 1..]
                    .iter()
                    .take(2)
                    .filter(|l| l.contains(" | ")),
            );
        }
    }
    if kept.is_empty() {
        return log::tail(text, 30);
    }
    kept.truncate(60);
    kept.join("\n")
}

/// The headers' Makefile names itself and the common one by their installed
/// paths; paths relative to itself work wherever the packages are unpacked.
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
        let before = digest(&sources, &list.kernels[0], &tree);
        put("control/pid.c", "int z;");
        let after = digest(
            &read_sources(dir.path(), &LUC).unwrap(),
            &list.kernels[0],
            &tree,
        );
        assert_ne!(before, after);
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
