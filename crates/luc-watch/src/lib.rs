//! Watches file systems of this machine, and tries LUC on them, for the verbs of `luc`.
//!
//! The verbs of `luc` parse arguments and print; this crate acts in between. It reads the machine
//! through `luc_host` and the tracer, leaves decisions to the pure crates (`luc_model` judges,
//! `luc_guard` tries, `luc_service` keeps), and returns values, lines, or a [`WatchError`]. It
//! knows no argument, no output stream and no exit code. [`sample`] takes the numbers of `luc top`,
//! [`blame`] whom its processes wait for,
//! [`recording`] writes `luc trace record`, [`examination`] gathers what `luc doctor` judges,
//! [`trial`] is LUC against stock, [`clock`] a lower clock against the highest, [`status`] and
//! [`mounted`] are the state of file systems.

pub mod blame;
pub mod clock;
pub mod during;
mod error;
pub mod examination;
mod losses;
pub mod mounted;
pub mod recording;
pub mod sample;
pub mod status;
pub mod time;
pub mod trial;

pub use error::WatchError;
pub use losses::LossCauses;
