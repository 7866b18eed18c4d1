//! Recordings in other programs' formats.

mod csv;
mod perfetto;

pub use csv::csv;
pub use perfetto::perfetto;
