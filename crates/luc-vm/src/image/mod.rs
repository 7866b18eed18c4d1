//! The guest image: an initramfs with LUC's programs, of which luc-lab is process 1,
//! busybox, the ext file system tools of this machine, kernel modules and the
//! plan. Equal inputs give equal bytes.

pub(crate) mod cpio;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use luc_base::Programs;

use crate::error::{LabError, Result};
use crate::plan::PLAN_PATH;
use crate::tools::capture;
use cpio::{Archive, MODE_DIR, MODE_FILE, MODE_LINK};

/// Programs of the package e2fsprogs that are taken from this machine with the libraries they need.
const EXT_TOOLS: &str = "mke2fs e2fsck tune2fs debugfs dumpe2fs resize2fs";
const HOST_TOOL_DIRS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
/// Path of LUC's module in the guest, the same for every kernel release.
pub const LUC_MODULE_PATH: &str = "/lib/luc/luc.ko";

/// A file that a run adds to the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestFile {
    /// Absolute path in the guest.
    pub guest_path: String,
    /// Where its content comes from.
    pub content: Content,
}

impl GuestFile {
    pub fn new(guest_path: impl Into<String>, content: Content) -> Self {
        Self {
            guest_path: guest_path.into(),
            content,
        }
    }
}

/// Content of a [`GuestFile`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Copied from the host with its permission bits.
    Host(PathBuf),
    /// A program of the host, copied with the shared libraries it needs.
    Program(PathBuf),
    /// A folder of the host with all regular files, links and folders below it.
    Folder(PathBuf),
    /// These bytes; executable or not.
    Bytes {
        data: Vec<u8>,
        /// Whether it may be run.
        executable: bool,
    },
}

/// Folders of the root that are links to those of `usr`.
const LINKS: [&str; 3] = ["bin", "sbin", "lib64"];

/// Collects members by path, so that the archive is sorted and folders come
/// before their content.
#[derive(Debug, Default)]
pub struct Image {
    members: BTreeMap<String, (u32, Vec<u8>)>,
}

impl Image {
    /// An image with the usual folders.
    pub fn new() -> Self {
        let mut image = Self::default();
        let dirs = "dev etc lib/luc mnt out proc root run sys tmp usr/bin usr/lib usr/lib64 usr/sbin \
                    var/tmp";
        for dir in dirs.split(' ') {
            image.dir(dir);
        }
        for link in LINKS {
            image.link(link, &format!("usr/{link}"));
        }
        let passwd = b"root:x:0:0:root:/root:/bin/sh\n";
        image.file("etc/passwd", 0o644, passwd.to_vec());
        image.file("etc/group", 0o644, b"root:x:0:\n".to_vec());
        // mke2fs without this file knows neither ext3 nor ext4.
        image.file("etc/mke2fs.conf", 0o644, MKE2FS_CONF.as_bytes().to_vec());
        image
    }

    fn dir(&mut self, path: &str) {
        let ends = path.match_indices('/').map(|(end, _)| end);
        for end in ends.chain([path.len()]) {
            let member = self.members.entry(path[..end].into());
            member.or_insert((MODE_DIR | 0o755, Vec::new()));
        }
    }

    /// Resolves a path that lies below a link made by [`Image::new`].
    fn place(path: &str) -> String {
        let path = path.trim_start_matches('/');
        for link in LINKS {
            if let Some(rest) = path.strip_prefix(link)
                && rest.starts_with('/')
            {
                return format!("usr/{link}{rest}");
            }
        }
        path.to_owned()
    }

    fn put(&mut self, path: &str, mode: u32, data: Vec<u8>) {
        let path = Self::place(path);
        if let Some((parent, _)) = path.rsplit_once('/') {
            self.dir(parent);
        }
        self.members.insert(path, (mode, data));
    }

    /// Adds or replaces a file.
    pub fn file(&mut self, path: &str, permissions: u32, data: Vec<u8>) {
        self.put(path, MODE_FILE | permissions, data);
    }

    /// Adds or replaces a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.put(path, MODE_LINK | 0o777, target.into());
    }

    /// Adds or replaces a file with the content of a file of this machine.
    fn copy(&mut self, path: &str, permissions: u32, host: &Path) -> Result<()> {
        let data = fs::read(host).map_err(LabError::io("read", host))?;
        self.file(path, permissions, data);
        Ok(())
    }

    /// Adds or replaces a kernel module, without its debug information.
    ///
    /// # Errors
    /// The module cannot be read.
    pub fn add_module(&mut self, path: &str, host: &Path) -> Result<()> {
        let data = fs::read(host).map_err(LabError::io("read", host))?;
        self.file(path, 0o644, without_debug_info(host, data));
        Ok(())
    }

    /// Adds LUC's programs to `/usr/bin`; `luc-lab` is process 1.
    ///
    /// # Errors
    /// A program cannot be read or is not statically linked.
    pub fn add_luc(&mut self, programs: &Programs) -> Result<()> {
        self.add_static("usr/bin/luc", &programs.luc)?;
        self.add_static("usr/bin/luc-lab", &programs.luc_lab)?;
        self.link("init", "usr/bin/luc-lab");
        Ok(())
    }

    fn add_static(&mut self, guest_path: &str, path: &Path) -> Result<()> {
        let data = fs::read(path).map_err(LabError::io("read", path))?;
        if !libraries(path)?.is_empty() {
            return Err(LabError::bad_input(
                format!("program {}", path.display()),
                "it must be statically linked to run in the guest; build it with -C target-feature=+crt-static",
            ));
        }
        self.file(guest_path, 0o755, without_debug_info(path, data));
        Ok(())
    }

    /// Adds busybox with a link for each of its applets that no other tool provides.
    ///
    /// # Errors
    /// The program cannot be read or does not run here.
    pub fn add_busybox(&mut self, path: &Path) -> Result<()> {
        let applets = capture(Command::new(path).arg("--list"), "busybox-static")?;
        self.copy("usr/bin/busybox", 0o755, path)?;
        for applet in applets.lines() {
            let at = |dir| self.members.contains_key(&format!("{dir}{applet}"));
            if !["usr/bin/", "usr/sbin/"].into_iter().any(at) {
                self.link(&format!("usr/bin/{applet}"), "/usr/bin/busybox");
            }
        }
        Ok(())
    }

    /// Adds a program of this machine.
    ///
    /// # Errors
    /// [`LabError::MissingTool`] if it is not installed.
    pub fn add_host_tool(&mut self, tool: &str, package: &str) -> Result<()> {
        let mut paths = HOST_TOOL_DIRS.iter().map(|dir| Path::new(dir).join(tool));
        let path = paths
            .find(|path| path.exists())
            .ok_or_else(|| LabError::missing(tool, package))?;
        self.add_program(&format!("usr/sbin/{tool}"), &path)
    }

    /// Adds the ext file system tools of this machine.
    ///
    /// # Errors
    /// [`LabError::MissingTool`] if one is not installed.
    pub fn add_ext_tools(&mut self) -> Result<()> {
        for tool in EXT_TOOLS.split(' ') {
            self.add_host_tool(tool, "e2fsprogs")?;
        }
        for (link, target) in [
            ("mkfs.ext4", "mke2fs"),
            ("mkfs.ext3", "mke2fs"),
            ("fsck.ext4", "e2fsck"),
        ] {
            self.link(&format!("usr/sbin/{link}"), target);
        }
        Ok(())
    }

    /// Adds a program and its shared libraries.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn add_program(&mut self, guest_path: &str, host_path: &Path) -> Result<()> {
        for library in libraries(host_path)? {
            self.copy(&library.display().to_string(), 0o755, &library)?;
        }
        self.copy(guest_path, 0o755, host_path)
    }

    fn add_folder(&mut self, guest_path: &str, host: &Path) -> Result<()> {
        self.dir(&Self::place(guest_path));
        for entry in fs::read_dir(host).map_err(LabError::io("list", host))? {
            let path = entry.map_err(LabError::io("list", host))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let at = format!("{guest_path}/{name}");
            let meta = fs::symlink_metadata(&path).map_err(LabError::io("read", &path))?;
            if meta.is_dir() {
                self.add_folder(&at, &path)?;
            } else if meta.is_symlink() {
                let target = fs::read_link(&path).map_err(LabError::io("read", &path))?;
                self.link(&at, &target.to_string_lossy());
            } else if meta.is_file() {
                self.copy(&at, meta.permissions().mode() & 0o777, &path)?;
            }
        }
        Ok(())
    }

    /// Adds a caller's file.
    ///
    /// # Errors
    /// The file cannot be read or its guest path is not absolute.
    pub fn add_guest_file(&mut self, file: &GuestFile) -> Result<()> {
        let path = Path::new(&file.guest_path);
        let plain = path
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if !path.is_absolute() || !plain || path.file_name().is_none() {
            return Err(LabError::bad_input(
                format!("guest path {:?}", file.guest_path),
                "it must be an absolute path of a file, without '..'",
            ));
        }
        match &file.content {
            Content::Host(host) => {
                let meta = fs::metadata(host).map_err(LabError::io("read", host))?;
                self.copy(&file.guest_path, meta.permissions().mode() & 0o777, host)?;
            }
            Content::Program(host) => self.add_program(&file.guest_path, host)?,
            Content::Folder(host) => self.add_folder(&file.guest_path, host)?,
            Content::Bytes { data, executable } => {
                let mode = if *executable { 0o755 } else { 0o644 };
                self.file(&file.guest_path, mode, data.clone());
            }
        }
        Ok(())
    }

    /// Adds the plan.
    pub fn add_plan(&mut self, json: Vec<u8>) {
        self.file(PLAN_PATH, 0o644, json);
    }

    /// Packs the archive.
    ///
    /// # Errors
    /// A member is 4 GiB or longer.
    pub fn pack(&self) -> Result<Vec<u8>> {
        let mut archive = Archive::default();
        for (path, (mode, data)) in &self.members {
            let added = archive.add(path, *mode, data);
            added.map_err(LabError::io("pack", path))?;
        }
        archive
            .finish()
            .map_err(LabError::io("pack", "guest image"))
    }
}

const MKE2FS_CONF: &str = "[defaults]
\tbase_features = sparse_super,large_file,filetype,resize_inode,dir_index,ext_attr
\tdefault_mntopts = acl,user_xattr
\tenable_periodic_fsck = 0
\tblocksize = 4096
\tinode_size = 256
\tinode_ratio = 16384
[fs_types]
\text3 = {
\t\tfeatures = has_journal
\t}
\text4 = {
\t\tfeatures = has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize,orphan_file
\t}
";

/// Shared libraries a program needs, with the loader; none if it is static.
fn libraries(program: &Path) -> Result<BTreeSet<PathBuf>> {
    let output = Command::new("ldd")
        .arg(program)
        .env("LC_ALL", "C")
        .output()
        .map_err(|_| LabError::missing("ldd", "libc-bin"))?;
    // ldd exits with 1 for a static program and says so on either stream.
    Ok(parse_ldd(&String::from_utf8_lossy(&output.stdout)))
}

/// Parses lines `name => /path (0x...)` or `/loader (0x...)`; the kernel's vdso has no path.
fn parse_ldd(text: &str) -> BTreeSet<PathBuf> {
    text.lines()
        .filter_map(|line| {
            let target = line.split_once("=>").map_or(line, |(_, target)| target);
            let path = target.split_once(" (0x")?.0.trim();
            path.starts_with('/').then(|| PathBuf::from(path))
        })
        .collect()
}

/// Strips debug information, which is most of a binary and which the guest does not need. Returns
/// the whole file if `objcopy` is missing.
fn without_debug_info(path: &Path, whole: Vec<u8>) -> Vec<u8> {
    let stripped = || -> Option<Vec<u8>> {
        let out = tempfile::NamedTempFile::new().ok()?;
        let mut command = Command::new("objcopy");
        command.arg("--strip-debug").arg(path).arg(out.path());
        capture(&mut command, "binutils").ok()?;
        fs::read(out.path()).ok().filter(|data| !data.is_empty())
    };
    stripped().unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ldd_output_is_understood() {
        let libraries = parse_ldd(
            "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibe2p.so.2 => /lib/x86_64-linux-gnu/libe2p.so.2 (0x00007f)\n\
             \tlibgone.so => not found\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n",
        );
        let names: Vec<_> = libraries.iter().map(|p| p.to_str().unwrap()).collect();
        assert_eq!(
            names,
            [
                "/lib/x86_64-linux-gnu/libe2p.so.2",
                "/lib64/ld-linux-x86-64.so.2"
            ]
        );
        assert!(parse_ldd("\tstatically linked\n").is_empty());
        assert!(parse_ldd("\tnot a dynamic executable\n").is_empty());
    }

    #[test]
    fn folders_come_before_their_files_and_links_are_followed() {
        let mut image = Image::new();
        image.file("/lib64/ld.so", 0o755, vec![1]);
        image.file("/opt/a/b", 0o644, vec![2]);
        let mut seen = BTreeSet::from([String::new()]);
        for (path, _) in cpio::read(&image.pack().unwrap()).unwrap() {
            let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
            assert!(seen.contains(parent), "{path} before its folder");
            seen.insert(path);
        }
        assert!(seen.contains("usr/lib64/ld.so") && !seen.contains("lib64/ld.so"));
        assert_eq!(image.pack().unwrap(), image.pack().unwrap());
    }

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let error = Image::new().add_host_tool("mkfs.no-such", "nosuchprogs");
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("mkfs.no-such") && error.contains("nosuchprogs"),
            "{error}"
        );
    }

    #[test]
    fn guest_paths_must_be_plain() {
        let mut image = Image::new();
        for path in ["", "a", "/", "/a/../b", "/.."] {
            let content = Content::Bytes {
                data: vec![],
                executable: false,
            };
            let file = GuestFile::new(path, content);
            assert!(image.add_guest_file(&file).is_err(), "{path:?}");
        }
    }
}
