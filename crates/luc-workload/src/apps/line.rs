//! The lines that a script prints.

use std::str::FromStr;

/// A line of a script.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// `begin`: the program is ready, and the measurement begins.
    Begin,
    /// `end`: the measurement ends.
    End,
    /// `missing PROGRAM PACKAGE`: the program is not installed.
    Missing { program: String, package: String },
    /// `failed WHY`: the script gives up.
    Failed(String),
    /// `NAME VALUE`: a measure.
    Measure { name: String, value: f64 },
}

impl FromStr for Line {
    /// The line, for the message.
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let bad = || format!("{line:?} is not `NAME VALUE`");
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "begin" if rest.is_empty() => Ok(Self::Begin),
            "end" if rest.is_empty() => Ok(Self::End),
            "missing" => {
                let (program, package) = rest.split_once(' ').ok_or_else(bad)?;
                Ok(Self::Missing {
                    program: program.to_owned(),
                    package: package.to_owned(),
                })
            }
            "failed" if !rest.is_empty() => Ok(Self::Failed(rest.to_owned())),
            name => {
                let value: f64 = rest.parse().map_err(|_| bad())?;
                if !value.is_finite() || value < 0.0 {
                    return Err(bad());
                }
                Ok(Self::Measure {
                    name: name.to_owned(),
                    value,
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let measure = |name: &str, value| Line::Measure {
            name: name.into(),
            value,
        };
        for (text, line) in [
            ("begin", Line::Begin),
            ("end", Line::End),
            ("puts_per_s 12.5", measure("puts_per_s", 12.5)),
            (
                "failed no answer: port 1",
                Line::Failed("no answer: port 1".into()),
            ),
            (
                "missing ab apache2-utils",
                Line::Missing {
                    program: "ab".into(),
                    package: "apache2-utils".into(),
                },
            ),
        ] {
            assert_eq!(text.parse(), Ok(line));
        }
    }

    #[test]
    fn nonsense_is_shown() {
        for text in [
            "",
            "hello",
            "puts_per_s",
            "puts_per_s many",
            "a NaN",
            "a inf",
            "a -1",
            "failed",
        ] {
            let error = text.parse::<Line>().unwrap_err();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
