//! Plans of measurement: arguments, hosts, loads and the arms that are compared.

pub mod args;
pub mod arm;
pub mod host;
pub mod load;
