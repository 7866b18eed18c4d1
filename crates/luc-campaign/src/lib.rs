//! Campaigns: experiments as data.
//!
//! A campaign's [`file`] names factors, and [`points`] builds all their combinations. Each point is
//! measured in [`cell`]s, which differ in their seed. A row of [`places`] measures one cell, a row
//! of [`backends`] runs many. [`store`] keeps each result in a file of its own, [`wave`] finds the
//! missing cells until the intervals of [`luc_stats`] are narrow, and [`show`] renders tables from
//! results alone. The results are the only state: whatever ends a run, the next one continues from
//! them.

pub mod arms;
pub mod backends;
pub mod campaigns;
pub mod cell;
mod check;
pub mod diff;
pub mod error;
pub mod exports;
mod figures;
pub mod file;
pub mod keys;
pub mod measure;
pub mod measures;
pub mod narrow;
pub mod places;
pub mod points;
pub mod reproduce;
pub mod result;
pub mod run;
pub mod sheets;
pub mod show;
mod steps;
pub mod store;
pub mod validate;
mod values;
pub mod wave;

pub use cell::Cell;
pub use check::cell_of_key;
pub use error::{CampaignError, Result};
pub use file::Campaign;
pub use narrow::Part;
pub use store::Store;
