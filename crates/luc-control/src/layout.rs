//! The records of `abi/luc_decision.h` and the enums beside them.
//!
//! The fields are generated from the rows there, with their help texts as documentation.

use std::fmt;

/// One field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in trace lines, which ends in the unit.
    pub name: &'static str,
    /// Its meaning.
    pub help: &'static str,
}

macro_rules! record {
    ($doc:literal $record:ident $($help:literal $field:ident,)+) => {
        #[doc = $doc]
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $record {
            $(#[doc = $help] pub $field: i64,)+
        }

        impl $record {
            /// The fields, in the order of the record.
            pub const FIELDS: &'static [Field] =
                &[$(Field { name: stringify!($field), help: $help },)+];
            /// Number of fields.
            pub const LEN: usize = Self::FIELDS.len();

            /// Returns all values, in the order of [`Self::FIELDS`].
            pub fn values(&self) -> [i64; Self::LEN] {
                [$(self.$field,)+]
            }

            /// Creates a record from values in the order of [`Self::FIELDS`].
            pub fn from_values(values: [i64; Self::LEN]) -> Self {
                let [$($field,)+] = values;
                Self { $($field,)+ }
            }

            /// Returns the value of the field with this name; `None` if there is none.
            pub fn get(&self, name: &str) -> Option<i64> {
                match name {
                    $(stringify!($field) => Some(self.$field),)+
                    _ => None,
                }
            }

            /// Sets the field with this name; false if there is none. Controllers accept any value.
            pub fn set(&mut self, name: &str, value: i64) -> bool {
                match name {
                    $(stringify!($field) => self.$field = value,)+
                    _ => return false,
                }
                true
            }
        }
    };
}

macro_rules! enumeration {
    ($doc:literal $name:ident $($variant:ident $text:literal => $help:literal,)+) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i64)]
        pub enum $name {
            $(#[doc = $help] $variant,)+
        }

        impl $name {
            /// All variants, in the order of their values.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns its value in records.
            pub fn value(self) -> i64 {
                self as i64
            }

            /// Returns the variant with this value in records; `None` if there is none.
            pub fn from_value(value: i64) -> Option<Self> {
                usize::try_from(value).ok().and_then(|at| Self::ALL.get(at).copied())
            }

            /// Returns its name in sysfs and trace lines.
            pub fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// Returns the variant with this name; `None` if there is none.
            pub fn from_text(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.text() == text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.text())
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/records.rs"));

enumeration! { "`enum luc_step`: which step of a commit a record is about." Step
    Open "open" => "A commit was requested.",
    Poll "poll" => "The held commit is checked again.",
    Close "close" => "The batch is closed; the controller learns.",
    Copyout "copyout" => "The commit's writes are counted; copy-out decides.",
}

enumeration! { "`enum luc_trial_phase`: the state of the trial of holding against not holding." TrialPhase
    Off "off" => "Commits are held, and no trial has begun.",
    Free "free" => "A window of a trial without holding.",
    Held "held" => "A window of a trial with holding.",
    StayFree "stay-free" => "The verdict of a trial: commits are not held.",
    StayHeld "stay-held" => "The verdict of a trial: commits are held.",
}

// SAFETY: the declarations repeat those of `control/*.h`.
unsafe extern "C" {
    fn luc_state_init(state: *mut State);
    fn luc_params_init(params: *mut Params);
}

/// The defaults of the knob table.
impl Default for Params {
    fn default() -> Self {
        let mut params = Self::from_values([0; Self::LEN]);
        // SAFETY: Params has the size and layout of struct luc_params.
        unsafe { luc_params_init(&raw mut params) };
        params
    }
}

/// A controller that has seen nothing yet.
impl Default for State {
    fn default() -> Self {
        let mut state = Self::from_values([0; Self::LEN]);
        // SAFETY: State has the size and layout of struct luc_state.
        unsafe { luc_state_init(&raw mut state) };
        state
    }
}

/// All zeros: nothing is known, and no event has come.
impl Default for Input {
    fn default() -> Self {
        Self::from_values([0; Self::LEN])
    }
}

/// All zeros.
impl Default for Output {
    fn default() -> Self {
        Self::from_values([0; Self::LEN])
    }
}

/// `struct luc_decision`: all that one step saw, computed and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Decision {
    /// [`Step::value`]; not a [`Step`], because a record may hold any number.
    pub step: i64,
    /// The knobs.
    pub params: Params,
    /// The input.
    pub input: Input,
    /// The state before the step.
    pub state: State,
    /// The answer.
    pub out: Output,
}

impl Decision {
    /// Number of values.
    pub const LEN: usize = 1 + Params::LEN + Input::LEN + State::LEN + Output::LEN;

    /// Returns the fields in the order of trace lines: step, knobs, input, state, output.
    pub fn fields() -> impl Iterator<Item = Field> {
        let step = Field {
            name: "step",
            help: "enum luc_step: open, poll, close, copyout",
        };
        std::iter::once(step)
            .chain(Params::FIELDS.iter().copied())
            .chain(Input::FIELDS.iter().copied())
            .chain(State::FIELDS.iter().copied())
            .chain(Output::FIELDS.iter().copied())
    }

    /// Returns all values, in the order of [`Self::fields`].
    pub fn values(&self) -> impl Iterator<Item = i64> {
        std::iter::once(self.step)
            .chain(self.params.values())
            .chain(self.input.values())
            .chain(self.state.values())
            .chain(self.out.values())
    }

    /// Returns the value of the field with this name; `None` if there is none.
    pub fn get(&self, name: &str) -> Option<i64> {
        let mut fields = Self::fields().zip(self.values());
        fields.find_map(|(field, value)| (field.name == name).then_some(value))
    }

    /// Sets the field with this name; false if there is none.
    pub fn set(&mut self, name: &str, value: i64) -> bool {
        if name == "step" {
            self.step = value;
            return true;
        }
        self.params.set(name, value)
            || self.input.set(name, value)
            || self.state.set(name, value)
            || self.out.set(name, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    // SAFETY: the declaration repeats that of `shim/layout.c`, and no code writes to it.
    unsafe extern "C" {
        safe static luc_shim_record_bytes: [i64; 5];
    }

    #[test]
    fn layouts_agree_with_c() {
        let bytes = [
            size_of::<Params>(),
            size_of::<Input>(),
            size_of::<State>(),
            size_of::<Output>(),
            size_of::<Decision>(),
        ];
        let bytes = bytes.map(|bytes| i64::try_from(bytes).unwrap());
        assert_eq!(bytes, luc_shim_record_bytes);
    }

    #[test]
    fn field_names_are_unique_and_addressable() {
        let names: Vec<_> = Decision::fields().map(|field| field.name).collect();
        assert_eq!(names.len(), Decision::LEN);
        let unique: HashSet<_> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "trace lines are flat: {names:?}");
        for reserved in ["dev", "tid"] {
            assert!(!names.contains(&reserved));
        }
        let mut decision = Decision::default();
        for (value, name) in (1000..).zip(&names) {
            assert!(decision.set(name, value), "{name}");
            assert_eq!(decision.get(name), Some(value));
        }
        let expected: Vec<i64> = (1000..).take(names.len()).collect();
        assert_eq!(decision.values().collect::<Vec<_>>(), expected);
        assert!(!decision.set("no such field", 1));
        assert_eq!(decision.get("no such field"), None);
    }

    #[test]
    fn enumerations_round_trip() {
        for batching in Batching::ALL {
            assert_eq!(Batching::from_value(batching.value()), Some(*batching));
            assert_eq!(Batching::from_text(batching.text()), Some(*batching));
        }
        assert_eq!(Copyout::Contended.text(), "contended");
        assert_eq!(Mode::from_text("observe"), Some(Mode::Observe));
        assert_eq!(Reason::from_value(-1), None);
        assert_eq!(Reason::from_value(i64::MAX), None);
        for step in Step::ALL {
            assert_eq!(Step::from_value(step.value()), Some(*step));
        }
    }
}
