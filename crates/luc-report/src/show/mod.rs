//! A report as a document, and the forms that a document takes.

pub mod document;
pub mod html;
pub mod number;
pub mod svg;
pub mod text;
