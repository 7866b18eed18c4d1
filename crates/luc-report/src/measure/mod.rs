//! The lab that measures, and the records that it leaves.

pub mod lab;
pub mod modelled;
pub mod origin;
pub mod place;
pub(crate) mod pool;
pub mod record;
