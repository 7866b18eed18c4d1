//! Reads the kernel's text, and puts kprobes at its instructions.

use crate::sites::{Extent, Place};
use libbpf_rs::{AsRawLibbpf as _, Link, MapCore, MapFlags, ProgramInput, ProgramMut};
use std::ffi::CString;
use std::ptr::NonNull;

/// `LUC_TEXT_BYTES` of `abi/luc_tracer.h`. A piece that begins at a multiple of this lies within
/// one page.
const PIECE_BYTES: u64 = 512;
/// No function that is read is longer than this.
const MOST_BYTES: u64 = 16 * 1024;

/// Reads the kernel's text in `extent`, by a program that copies a piece of it to a map.
pub(crate) fn read(reader: &ProgramMut<'_>, map: &impl MapCore, extent: Extent) -> Option<Vec<u8>> {
    let end = extent.address.checked_add(extent.bytes.min(MOST_BYTES))?;
    let first = extent.address - extent.address % PIECE_BYTES;
    let mut text = Vec::new();
    for address in (first..end).step_by(usize::try_from(PIECE_BYTES).ok()?) {
        let mut request = address.to_ne_bytes();
        let input = ProgramInput {
            context_in: Some(&mut request),
            ..ProgramInput::default()
        };
        let output = reader.test_run(input).ok()?;
        if output.return_value != 0 {
            return None;
        }
        text.extend(map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??);
    }
    let skip = usize::try_from(extent.address - first).ok()?;
    let length = usize::try_from(end - extent.address).ok()?;
    Some(text.get(skip..skip + length)?.to_vec())
}

/// Attaches a program to this instruction.
pub(crate) fn attach(program: &ProgramMut<'_>, place: Place) -> Result<Link, String> {
    let function = CString::new(place.function).map_err(|error| error.to_string())?;
    let options = libbpf_sys::bpf_kprobe_opts {
        sz: size_of::<libbpf_sys::bpf_kprobe_opts>() as _,
        offset: place.offset,
        ..Default::default()
    };
    // SAFETY: the program is loaded and outlives the call, as do the name and the options.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_kprobe_opts(
            program.as_libbpf_object().as_ptr(),
            function.as_ptr(),
            &raw const options,
        )
    };
    let Some(link) = NonNull::new(link) else {
        let error = std::io::Error::last_os_error();
        return Err(format!("{}+{}: {error}", place.function, place.offset));
    };
    // SAFETY: libbpf made the link, and its caller owns it.
    Ok(unsafe { Link::from_ptr(link) })
}

#[cfg(test)]
mod tests {
    #[test]
    fn pieces_are_as_long_as_the_programs_make_them() {
        let header = include_str!("../../../abi/luc_tracer.h");
        let value = header.lines().find_map(|line| {
            let rest = line.strip_prefix("#define LUC_TEXT_BYTES ")?;
            rest.split_whitespace().next()?.parse().ok()
        });
        assert_eq!(value, Some(super::PIECE_BYTES));
    }
}
