//! Values of factors as a campaign's file names them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A value of a factor, as text: `4ms:1`, `16`, `0.5`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Value(pub String);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: serde::Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected a text, a number, or true or false")]
        enum Scalar {
            Text(String),
            Whole(i64),
            Number(f64),
            Truth(bool),
        }
        Ok(Self(match Scalar::deserialize(deserializer)? {
            Scalar::Text(text) => text,
            Scalar::Whole(number) => number.to_string(),
            Scalar::Number(number) => number.to_string(),
            Scalar::Truth(truth) => truth.to_string(),
        }))
    }
}

/// One value, or several.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected a value, or a list of values")]
pub enum Values {
    One(Value),
    Many(Vec<Value>),
}

impl Values {
    pub fn all(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }
}

/// A condition: each named factor must have one of the given values.
pub type Where = BTreeMap<String, Values>;
