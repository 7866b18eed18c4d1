//! Stock kernels and the guest's busybox, from the distribution's packages.

use std::fs;
use std::path::PathBuf;

use crate::cache::{Cache, write_atomic};
use crate::error::{LabError, Result};
use crate::kernels::archive::{Archive, Package, Resolution};
use crate::kernels::list::{GuestTools, KernelSpec, KernelTree};
use crate::progress::Progress;

/// Makes sure a stock kernel is in the cache.
///
/// # Errors
/// No mirror, no such package, no network, no disk space: the message tells which.
pub fn kernel(cache: &Cache, spec: &KernelSpec, progress: &mut dyn Progress) -> Result<KernelTree> {
    let resolution = resolve(cache, spec, progress)?;
    if let Some(verified) = &spec.verified
        && *verified != resolution.version
    {
        progress.note(&format!(
            "kernel {}: using {}; the last verified version was {verified}",
            spec.name, resolution.version
        ));
    }
    let base = format!("kernels/{}-{}", resolution.release, resolution.version);
    let mut unpack = |what: &str, packages: &[Package]| {
        cache.entry(&format!("{base}/{what}"), |root| {
            progress.stage(&format!("fetching {what} of kernel {}", resolution.version));
            Archive::open(cache, &spec.suites)?.unpack(packages, root)
        })
    };
    Ok(KernelTree {
        image_root: unpack("image", &resolution.image)?,
        headers_root: unpack("headers", &resolution.headers)?,
        release: resolution.release,
        version: resolution.version,
    })
}

/// Makes sure the guest's busybox is in the cache; returns the program's path.
///
/// # Errors
/// As [`kernel`].
pub fn busybox(cache: &Cache, tools: &GuestTools, progress: &mut dyn Progress) -> Result<PathBuf> {
    let root = cache.entry(&format!("tools/{}", tools.busybox), |root| {
        progress.stage("fetching busybox");
        let archive = Archive::open(cache, &tools.suites)?;
        archive.update()?;
        archive.unpack(&[archive.package(&tools.busybox, None)?], root)
    })?;
    ["usr/bin/busybox", "bin/busybox"]
        .iter()
        .map(|path| root.join(path))
        .find(|path| path.exists())
        .ok_or_else(|| LabError::NoPackage {
            package: format!("{} with a busybox program", tools.busybox),
            suite: tools.suites.join(" "),
        })
}

/// The recorded resolution, else a new one. A recorded one stays in use until
/// the list of kernels names another proven version.
fn resolve(cache: &Cache, spec: &KernelSpec, progress: &mut dyn Progress) -> Result<Resolution> {
    let wanted = spec.verified.as_deref().unwrap_or("newest");
    let record = cache.path(&format!("kernels/{}-{wanted}.json", spec.name));
    let _lock = cache.lock(&format!("resolve-{}", spec.name))?;
    if let Ok(bytes) = fs::read(&record)
        && let Ok(resolution) = serde_json::from_slice(&bytes)
    {
        return Ok(resolution);
    }
    progress.stage(&format!("looking up kernel {}", spec.name));
    let archive = Archive::open(cache, &spec.suites)?;
    archive.update()?;
    let resolution = archive.resolve(spec)?;
    let json =
        serde_json::to_vec_pretty(&resolution).map_err(|e| LabError::KernelList(e.to_string()))?;
    write_atomic(&record, &json)?;
    Ok(resolution)
}
