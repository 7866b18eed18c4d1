//! A page: the values of a column over some rows.

use super::super::columns::{Column, Type, Value};
use super::thrift;
use crate::span::Span;
use crate::trace::Trace;
use flate2::{Compression, write::GzEncoder};
use std::io::{self, Write};

/// Number of gzip among the compressions of the format.
pub(super) const GZIP: i32 = 2;
/// Number of the encoding of values: one behind the other.
pub(super) const PLAIN: i32 = 0;
/// Number of the encoding that tells where values are missing: by runs.
pub(super) const RUNS: i32 = 3;

/// A page with its header.
pub(super) struct Page {
    pub bytes: Vec<u8>,
    /// As long as it would be without compression.
    pub plain_bytes: usize,
}

/// The page of a column over these rows.
pub(super) fn page(trace: &Trace, column: &Column, rows: &[Span]) -> io::Result<Page> {
    let mut runs = Runs::default();
    let mut values = Values::default();
    for span in rows {
        let value = (column.value)(trace, span);
        runs.add(value.is_some());
        if let Some(value) = &value {
            values.add(value)?;
        }
    }
    let runs = runs.finish();
    let runs_bytes = u32::try_from(runs.len()).map_err(io::Error::other)?;
    let mut plain = runs_bytes.to_le_bytes().to_vec();
    plain.extend(runs);
    plain.extend(values.finish(column.of_type));

    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&plain)?;
    let packed = packed.finish()?;
    let size = |bytes: usize| i32::try_from(bytes).map_err(io::Error::other);
    let (plain_size, packed_size, count) = (size(plain.len())?, size(packed.len())?, rows.len());
    let count = size(count)?;
    let mut bytes = thrift::message(|header| {
        header
            .i32(1, 0) // a page of data
            .i32(2, plain_size)
            .i32(3, packed_size)
            .nested(5, |data| {
                data.i32(1, count).i32(2, PLAIN).i32(3, RUNS).i32(4, RUNS);
            });
    });
    let plain_bytes = bytes.len() + plain.len();
    bytes.extend(packed);
    Ok(Page { bytes, plain_bytes })
}

/// Where values are and where none, as runs of equal answers.
#[derive(Default)]
struct Runs {
    out: Vec<u8>,
    present: bool,
    length: u64,
}

impl Runs {
    fn add(&mut self, present: bool) {
        if present != self.present {
            self.end();
            self.present = present;
        }
        self.length += 1;
    }

    fn end(&mut self) {
        if self.length > 0 {
            // The low bit tells runs from packed bits.
            thrift::varint(&mut self.out, self.length << 1);
            self.out.push(self.present.into());
        }
        self.length = 0;
    }

    fn finish(mut self) -> Vec<u8> {
        self.end();
        self.out
    }
}

/// Values one behind the other, flags eight a byte.
#[derive(Default)]
struct Values {
    out: Vec<u8>,
    flags: Vec<bool>,
}

impl Values {
    fn add(&mut self, value: &Value) -> io::Result<()> {
        match value {
            Value::Text(text) => {
                let length = u32::try_from(text.len()).map_err(io::Error::other)?;
                self.out.extend(length.to_le_bytes());
                self.out.extend(text.as_bytes());
            }
            Value::U64(number) => self.out.extend(number.to_le_bytes()),
            Value::I64(number) => self.out.extend(number.to_le_bytes()),
            Value::U32(number) => self.out.extend(number.to_le_bytes()),
            Value::I32(number) => self.out.extend(number.to_le_bytes()),
            Value::Flag(flag) => self.flags.push(*flag),
        }
        Ok(())
    }

    fn finish(self, of_type: Type) -> Vec<u8> {
        if of_type != Type::Flag {
            return self.out;
        }
        let byte = |flags: &[bool]| {
            let bits = flags.iter().rev();
            bits.fold(0, |byte, flag| byte << 1 | u8::from(*flag))
        };
        self.flags.chunks(8).map(byte).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_flags_by_hand() {
        let mut runs = Runs::default();
        for present in [true, true, true, false] {
            runs.add(present);
        }
        assert_eq!(runs.finish(), [6, 1, 2, 0]);
        let mut values = Values::default();
        for flag in [true, false, true, false, false, false, false, false, true] {
            values.add(&Value::Flag(flag)).unwrap();
        }
        assert_eq!(values.finish(Type::Flag), [5, 1]);
    }
}
