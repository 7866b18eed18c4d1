//! Random variables.

use super::Resolver;
use super::values::{Given, Locals, Val};
use crate::ast::{Attribute, Randvar, Spanned, Table};
use crate::diagnostic::{one_of, quoted};
use crate::plan::{self, Distribution, Position, Random, RandomId, RandomSource, TableRow};

/// Most random variables of a workload.
const RANDOMS_MAX: usize = 4096;

/// Largest parameter of a random variable: a number of bytes or files, exact as a float.
const PARAMETER_MAX: u64 = 1 << 53;

/// Shape of a gamma distribution where the file gives none, thousandths.
const GAMMA_DEFAULT_MILLI: u64 = 1500;

impl Resolver<'_, '_> {
    fn random(&mut self, name: &str, at: Position, distribution: Distribution) -> Option<Val> {
        if self.plan.randoms.len() == RANDOMS_MAX {
            self.messages
                .at(at, format!("there may be {RANDOMS_MAX} random variables"));
            return None;
        }
        let id = RandomId(self.plan.randoms.len());
        self.plan.randoms.push(Random {
            name: name.into(),
            distribution,
        });
        Some(Val::Random(id))
    }

    /// `randvar(...)`.
    pub(super) fn randvar(&mut self, name: &str, randvar: &Spanned<Randvar>) -> Option<Val> {
        let at = randvar.at;
        let locals = Locals::default();
        let given = Given {
            attributes: &randvar.value.attributes,
            locals: &locals,
        };
        let before = self.messages.len();
        let kind = given.find("type").map(|_| self.text(&given, "type"));
        let table = randvar.value.table.as_ref();
        let kind = match kind {
            None if table.is_some() => "tabular".into(),
            None => "gamma".into(),
            Some(kind) => kind?,
        };
        let range = 0..=PARAMETER_MAX;
        let min = self.fixed(&given, "min", &range, 0) as f64;
        let source = self.random_source(&given);
        let shape_milli = self.fixed(&given, "gamma", &(1..=1_000_000), GAMMA_DEFAULT_MILLI) as f64;
        let mean = given
            .find("mean")
            .map(|_| self.fixed(&given, "mean", &range, 0) as f64);
        let round = self.fixed(&given, "round", &range, 0) as f64;
        let common = |mean| plan::Randvar {
            mean,
            min,
            round,
            source,
        };
        if kind != "tabular" && table.is_some() {
            self.messages
                .at(at, "a `randtable` needs `type=tabular`, found another type");
        }
        if mean.is_some_and(|mean| mean < min) && kind != "tabular" {
            let place = given.place("mean").unwrap_or(at);
            self.messages.at(
                place,
                format!("`mean` must not be below `min`, which is {min}"),
            );
        }
        let distribution = match kind.as_str() {
            "uniform" => {
                if mean.is_none() {
                    self.messages.at(at, "a uniform randvar needs `mean=`");
                }
                Distribution::Uniform(common(mean.unwrap_or(0.0)))
            }
            "gamma" => {
                let shape = shape_milli / 1000.0;
                Distribution::Gamma {
                    randvar: common(mean.unwrap_or(shape)),
                    shape,
                }
            }
            "tabular" => {
                let Some(table) = table else {
                    self.messages.at(
                        at,
                        "a tabular randvar needs `randtable={{percent, from, to}, ...}`",
                    );
                    return None;
                };
                Distribution::Table {
                    randvar: common(mean.unwrap_or(0.0)),
                    rows: self.rows(table, &locals)?,
                }
            }
            other => {
                let place = given.place("type").unwrap_or(at);
                self.messages.at(
                    place,
                    format!(
                        "expected `uniform`, `gamma` or `tabular` as type of a randvar, found {}",
                        quoted(other)
                    ),
                );
                return None;
            }
        };
        if self.messages.len() > before {
            return None;
        }
        self.random(name, at, distribution)
    }

    fn random_source(&mut self, given: &Given<'_>) -> RandomSource {
        let seed = self.fixed(given, "seed", &(0..=u64::MAX), 0);
        if given.find("randsrc").is_none() {
            return RandomSource::Rand48 { seed };
        }
        match self.text(given, "randsrc").as_deref() {
            Some("urandom") => RandomSource::Run,
            Some("rand48") | None => RandomSource::Rand48 { seed },
            Some(other) => {
                if let Some(place) = given.place("randsrc") {
                    self.messages.at(
                        place,
                        format!("expected `urandom` or `rand48`, found {}", quoted(other)),
                    );
                }
                RandomSource::Run
            }
        }
    }

    fn rows(&mut self, table: &Table, locals: &Locals) -> Option<Vec<TableRow>> {
        let mut rows = Vec::new();
        let mut percent_sum = 0;
        for row in &table.value {
            let mut numbers = [0; 3];
            for (number, cell) in numbers.iter_mut().zip(&row.cells) {
                match self.evaluate(cell, locals)? {
                    Val::Int(value) if value <= PARAMETER_MAX => *number = value,
                    other => {
                        let found = Self::describe(&other);
                        self.messages.at(
                            cell.at,
                            format!(
                                "expected a fixed number of at most {PARAMETER_MAX}, found {found}"
                            ),
                        );
                        return None;
                    }
                }
            }
            let [percent, min, max] = numbers;
            if min > max {
                self.messages.at(
                    row.at,
                    format!("the row ends at {max}, below its beginning at {min}"),
                );
                return None;
            }
            percent_sum += percent.min(1000);
            rows.push(TableRow {
                percent: u32::try_from(percent).unwrap_or(u32::MAX),
                min,
                max,
            });
        }
        if percent_sum != 100 {
            self.messages.at(
                table.at,
                format!("the percentages of the table must add up to 100, found {percent_sum}"),
            );
            return None;
        }
        Some(rows)
    }

    /// `cvar(...)`.
    pub(super) fn cvar(&mut self, name: &str, cvar: &Spanned<Vec<Attribute>>) -> Option<Val> {
        let at = cvar.at;
        let locals = Locals::default();
        let given = Given {
            attributes: &cvar.value,
            locals: &locals,
        };
        let before = self.messages.len();
        let kind = self.needed(&given, "type", "a cvar", at);
        let text = given
            .find("parameters")
            .and_then(|_| self.text(&given, "parameters"));
        let bounds = Bounds {
            round: self.fixed(&given, "round", &(0..=PARAMETER_MAX), 0) as f64,
            min: if given.find("min").is_some() {
                self.fixed(&given, "min", &(0..=PARAMETER_MAX), 0) as f64
            } else {
                f64::MIN_POSITIVE
            },
            max: if given.find("max").is_some() {
                self.fixed(&given, "max", &(0..=PARAMETER_MAX), 0) as f64
            } else {
                f64::MAX
            },
        };
        if self.messages.len() > before {
            return None;
        }
        if bounds.min > bounds.max {
            let place = given.place("max").unwrap_or(at);
            self.messages.at(place, "`max` must not be below `min`");
        }
        let place = given.place("parameters").unwrap_or(at);
        let made = Parameters::parse(text.as_deref().unwrap_or_default())
            .and_then(|parameters| distribution(&kind, parameters, bounds));
        let distribution = match made {
            Ok(distribution) => distribution,
            Err(Wrong::Type) => {
                self.messages.at(
                    given.place("type").unwrap_or(at),
                    format!(
                        "expected {} as type of a cvar, found {}",
                        one_of(&KINDS),
                        quoted(&kind)
                    ),
                );
                return None;
            }
            Err(Wrong::Parameters(why)) => {
                self.messages
                    .at(place, format!("parameters of {kind}: {why}"));
                return None;
            }
        };
        if self.messages.len() > before {
            return None;
        }
        self.random(name, at, distribution)
    }
}

#[derive(Clone, Copy)]
struct Bounds {
    round: f64,
    min: f64,
    max: f64,
}

enum Wrong {
    Type,
    Parameters(String),
}

const KINDS: [&str; 8] = [
    "cvar-uniform",
    "cvar-gamma",
    "cvar-normal",
    "cvar-lognormal",
    "cvar-exponential",
    "cvar-erlang",
    "cvar-triangular",
    "cvar-weibull",
];

/// `name:number;name:number`, taken out one by one.
struct Parameters(Vec<(String, f64)>);

impl Parameters {
    fn parse(text: &str) -> Result<Self, Wrong> {
        let mut list: Vec<(String, f64)> = Vec::new();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let wrong = || {
                Wrong::Parameters(format!(
                    "expected name:number;name:number, found {}",
                    quoted(part)
                ))
            };
            let (name, number) = part.split_once(':').ok_or_else(wrong)?;
            let number: f64 = number.trim().parse().map_err(|_| wrong())?;
            if !number.is_finite() || name.trim().is_empty() {
                return Err(wrong());
            }
            let name = name.trim().to_owned();
            if list.iter().any(|(other, _)| *other == name) {
                return Err(Wrong::Parameters(format!(
                    "{} is given twice",
                    quoted(&name)
                )));
            }
            list.push((name, number));
        }
        Ok(Self(list))
    }

    fn take(&mut self, name: &str, default: f64) -> f64 {
        let index = self.0.iter().position(|(other, _)| other == name);
        index.map_or(default, |index| self.0.swap_remove(index).1)
    }

    /// As [`Self::take`], for numbers that must be above zero.
    fn take_positive(&mut self, name: &str, default: f64) -> Result<f64, Wrong> {
        let value = self.take(name, default);
        if value > 0.0 {
            return Ok(value);
        }
        Err(Wrong::Parameters(format!(
            "{} must be above 0, found {value}",
            quoted(name)
        )))
    }

    /// Nothing may be left.
    fn finish(self, known: &[&str]) -> Result<(), Wrong> {
        match self.0.first() {
            None => Ok(()),
            Some((name, _)) => Err(Wrong::Parameters(format!(
                "expected {}, found {}",
                one_of(known),
                quoted(name)
            ))),
        }
    }
}

/// The distribution with the parameters that are left out at their defaults.
fn distribution(
    kind: &str,
    mut parameters: Parameters,
    Bounds { round, min, max }: Bounds,
) -> Result<Distribution, Wrong> {
    let (distribution, known): (_, &[&str]) = match kind {
        "cvar-uniform" => {
            let lower = parameters.take("lower", 0.0);
            let upper = parameters.take("upper", 1.0);
            ordered(&[("lower", lower), ("upper", upper)])?;
            (
                Distribution::CvarUniform {
                    lower,
                    upper,
                    round,
                    min,
                    max,
                },
                &["lower", "upper"],
            )
        }
        "cvar-gamma" => (
            Distribution::CvarGamma {
                mean: parameters.take_positive("mean", 4096.0)?,
                shape: parameters.take_positive("gamma", 1.5)?,
                round,
                min,
                max,
            },
            &["mean", "gamma"],
        ),
        "cvar-normal" => (
            Distribution::CvarNormal {
                mean: parameters.take("mean", 0.0),
                sigma: parameters.take_positive("sigma", 1.0)?,
                round,
                min,
                max,
            },
            &["mean", "sigma"],
        ),
        "cvar-lognormal" => (
            Distribution::CvarLognormal {
                shape: parameters.take_positive("shape", 1.0)?,
                scale: parameters.take_positive("scale", 1.0)?,
                round,
                min,
                max,
            },
            &["shape", "scale"],
        ),
        "cvar-exponential" => (
            Distribution::CvarExponential {
                mean: parameters.take_positive("mean", 1.0)?,
                round,
                min,
                max,
            },
            &["mean"],
        ),
        "cvar-erlang" => (
            Distribution::CvarErlang {
                shape: stages(parameters.take_positive("shape", 1.0)?)?,
                mean: parameters.take_positive("rate", 1.0)?,
                round,
                min,
                max,
            },
            &["shape", "rate"],
        ),
        "cvar-triangular" => {
            let lower = parameters.take("lower", 0.0);
            let upper = parameters.take("upper", 1.0);
            let mode = parameters.take("mode", 0.5);
            ordered(&[("lower", lower), ("mode", mode), ("upper", upper)])?;
            (
                Distribution::CvarTriangular {
                    lower,
                    upper,
                    mode,
                    round,
                    min,
                    max,
                },
                &["lower", "upper", "mode"],
            )
        }
        "cvar-weibull" => (
            Distribution::CvarWeibull {
                shape: parameters.take_positive("shape", 1.0)?,
                scale: parameters.take_positive("scale", 1.0)?,
                round,
                min,
                max,
            },
            &["shape", "scale"],
        ),
        _ => return Err(Wrong::Type),
    };
    parameters.finish(known)?;
    Ok(distribution)
}

/// Each must not be below the one before.
fn ordered(parameters: &[(&str, f64)]) -> Result<(), Wrong> {
    for pair in parameters.windows(2) {
        let [(low_name, low), (high_name, high)] = pair else {
            continue;
        };
        if low > high {
            return Err(Wrong::Parameters(format!(
                "{} is {high}, below {} at {low}",
                quoted(high_name),
                quoted(low_name)
            )));
        }
    }
    Ok(())
}

/// The shape of an Erlang distribution: how many exponential stages it has.
fn stages(shape: f64) -> Result<u32, Wrong> {
    const STAGES_MAX: u32 = 1000;
    let stages = (1..=STAGES_MAX).find(|stages| f64::from(*stages) >= shape);
    stages.filter(|_| shape.fract() == 0.0).ok_or_else(|| {
        Wrong::Parameters(format!(
            "`shape` must be a whole number from 1 to {STAGES_MAX}, found {shape}"
        ))
    })
}
