//! Recordings in other programs' formats.

mod columns;
mod csv;
mod parquet;
mod perfetto;

pub use csv::csv;
pub use parquet::parquet;
pub use perfetto::perfetto;
