//! Marks that an emulator can see and a processor ignores.
//!
//! Around its measured calls a workload executes long no-ops. Their displacement, which a no-op
//! does not use, is the mark. `lab/lines/lines.c` counts the memory lines between two marks;
//! without it a mark costs a cycle.

#[derive(Clone, Copy, Debug)]
pub enum Mark {
    /// A measured call begins.
    Begin,
    /// A measured call has ended.
    End,
    /// The calls since the last such mark were one load under one condition.
    Group,
}

/// Executes the no-op of this mark: `nopl mark(%rax)`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn mark(mark: Mark) {
    macro_rules! nop {
        ($displacement:literal) => {{
            // SAFETY: seven bytes that every x86-64 processor decodes as one instruction, which
            // changes neither registers, flags nor memory. `nomem` is left out, so that the
            // compiler moves no access across it.
            unsafe {
                std::arch::asm!(
                    concat!(".byte 0x0f, 0x1f, 0x80\n.long ", $displacement),
                    options(nostack, preserves_flags)
                );
            }
        }};
    }
    match mark {
        Mark::Begin => nop!("0x4c554301"),
        Mark::End => nop!("0x4c554302"),
        Mark::Group => nop!("0x4c554303"),
    }
}

/// Does nothing: the emulated processors are x86-64.
#[cfg(not(target_arch = "x86_64"))]
pub fn mark(_: Mark) {}

#[cfg(test)]
mod tests {
    #[test]
    fn both_sides_mean_the_same_no_ops() {
        let counter = include_str!("../../../lab/lines/lines.c");
        let here = include_str!("marks.rs");
        for name in ["Begin", "End", "Group"] {
            let (_, rest) = here
                .split_once(&format!("Mark::{name} => nop!(\""))
                .expect("a mark");
            let (number, _) = rest.split_once('"').expect("its number");
            let there = format!("MARK_{} = {number},", name.to_uppercase());
            assert!(counter.contains(&there), "{there}");
        }
    }
}
