//! Measured energy: a meter, samples of it, and the energy between two of them.
//!
//! A meter counts within one [`Boundary`], and every reading names it. Counters of different
//! boundaries are never added: the domain `core` is inside its package, `psys` contains all.
//!
//! Counters of processors wrap, batteries and external meters move in steps. A thread looks at the
//! source often enough that a wrap is certain, and a reading that cannot be certain is unknown,
//! with its reason.
//!
//! The library powercap 0.3.5 does not serve here: it hides the names of zones, so `psys` looks
//! like a package; its sums add what is contained; and it knows no wraps.

mod battery;
mod counter;
mod error;
mod external;
mod find;
mod reading;
mod source;
mod sysfs;
mod watch;

pub use error::MeterError;
pub use external::External;
pub use reading::{Boundary, Energy, Reading};
pub use watch::{Meter, Sample, Spent};

/// Whether a battery feeds the machine whose root folder this is.
pub fn on_battery(root: &std::path::Path) -> bool {
    battery::Batteries::discharging(&root.join("sys/class/power_supply")).is_some()
}
