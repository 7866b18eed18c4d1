//! A report as a document, and the formats that it is rendered in.

pub mod document;
pub mod html;
pub mod number;
pub mod svg;
pub mod text;
