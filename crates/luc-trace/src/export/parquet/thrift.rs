//! Thrift's compact protocol, as far as Parquet's headers and footer need it.

/// A struct that is being written: fields by rising number, each as the distance from the last.
pub(super) struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

// Numbers of the protocol for types of fields.
const BYTE: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A struct that stands for itself.
pub(super) fn message(fill: impl FnOnce(&mut Struct<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, fill);
    out
}

fn write(out: &mut Vec<u8>, fill: impl FnOnce(&mut Struct<'_>)) {
    let mut fields = Struct { out, last: 0 };
    fill(&mut fields);
    fields.out.push(0);
}

/// Seven bits a byte, the lowest first.
pub(super) fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "the low seven bits")]
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    #[expect(clippy::cast_possible_truncation, reason = "less than 0x80")]
    out.push(number as u8);
}

/// Small numbers of either sign become small numbers without.
fn zigzag(number: i64) -> u64 {
    (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned()
}

impl Struct<'_> {
    fn field(&mut self, number: u8, of_type: u8) {
        let distance = number - self.last;
        debug_assert!((1..16).contains(&distance), "{number} after {}", self.last);
        self.out.push(distance << 4 | of_type);
        self.last = number;
    }

    pub fn bool(&mut self, number: u8, value: bool) -> &mut Self {
        self.field(number, if value { 1 } else { 2 });
        self
    }

    pub fn byte(&mut self, number: u8, value: u8) -> &mut Self {
        self.field(number, BYTE);
        self.out.push(value);
        self
    }

    pub fn i32(&mut self, number: u8, value: i32) -> &mut Self {
        self.field(number, I32);
        varint(self.out, zigzag(value.into()));
        self
    }

    pub fn i64(&mut self, number: u8, value: i64) -> &mut Self {
        self.field(number, I64);
        varint(self.out, zigzag(value));
        self
    }

    pub fn text(&mut self, number: u8, value: &str) -> &mut Self {
        self.field(number, BINARY);
        binary(self.out, value);
        self
    }

    pub fn nested(&mut self, number: u8, fill: impl FnOnce(&mut Struct<'_>)) -> &mut Self {
        self.field(number, STRUCT);
        write(self.out, fill);
        self
    }

    pub fn numbers(&mut self, number: u8, values: &[i32]) -> &mut Self {
        self.list(number, I32, values, |out, value| {
            varint(out, zigzag((*value).into()));
        })
    }

    pub fn texts(&mut self, number: u8, values: &[&str]) -> &mut Self {
        self.list(number, BINARY, values, |out, value| binary(out, value))
    }

    pub fn structs<T>(
        &mut self,
        number: u8,
        items: &[T],
        fill: impl Fn(&mut Struct<'_>, &T),
    ) -> &mut Self {
        self.list(number, STRUCT, items, |out, item| {
            write(out, |fields| fill(fields, item));
        })
    }

    fn list<T>(
        &mut self,
        number: u8,
        of_type: u8,
        items: &[T],
        put: impl Fn(&mut Vec<u8>, &T),
    ) -> &mut Self {
        self.field(number, LIST);
        if let Ok(few @ 0..15) = u8::try_from(items.len()) {
            self.out.push(few << 4 | of_type);
        } else {
            self.out.push(0xf0 | of_type);
            varint(self.out, items.len() as u64);
        }
        for item in items {
            put(self.out, item);
        }
        self
    }
}

fn binary(out: &mut Vec<u8>, text: &str) {
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_either_sign() {
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
        assert_eq!(zigzag(i64::MIN), u64::MAX);
        let mut out = Vec::new();
        varint(&mut out, 300);
        assert_eq!(out, [0xac, 0x02]);
    }

    #[test]
    fn a_struct_by_hand() {
        let bytes = message(|fields| {
            fields.i32(1, -3).text(4, "ab").bool(5, true);
            fields.nested(6, |inner| {
                inner.byte(1, 7);
            });
            fields.numbers(7, &[1, 2]);
        });
        assert_eq!(
            bytes,
            [
                0x15, 5, 0x38, 2, b'a', b'b', 0x11, 0x1c, 0x13, 7, 0, 0x19, 0x25, 2, 4, 0
            ]
        );
    }
}
