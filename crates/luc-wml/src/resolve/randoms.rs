//! Resolves random variables.

use super::Resolver;
use super::values::{Given, NO_LOCALS, Val};
use crate::ast::{Attribute, RandTable, Randvar, Spanned};
use crate::diagnostic::{one_of, quoted};
use crate::plan::{self, Bounds, Distribution, Position, Random, RandomId, RandomSource, TableRow};

/// Most random variables of a workload.
const RANDOMS_MAX: usize = 4096;

/// Largest parameter of a random variable: a number of bytes or files, exact as a float.
const PARAMETER_MAX: u64 = 1 << 53;

/// Shape of a gamma distribution if the file gives none, thousandths.
const GAMMA_DEFAULT_MILLI: u64 = 1500;

impl Resolver<'_, '_> {
    fn random(
        &mut self,
        name: &str,
        at: Position,
        kind: &'static str,
        distribution: Distribution,
    ) -> Option<Val> {
        if self.plan.randoms.len() == RANDOMS_MAX {
            return self.complain(
                at,
                format!("there may be at most {RANDOMS_MAX} random variables"),
            );
        }
        let id = RandomId(self.plan.randoms.len());
        self.plan.randoms.push(Random {
            name: name.into(),
            kind,
            distribution,
        });
        Some(Val::Random(id))
    }

    /// Returns a parameter that is the same at every use, if it is given.
    fn parameter(&mut self, given: &Given<'_>, name: &str) -> Option<f64> {
        let range = 0..=PARAMETER_MAX;
        given
            .has(name)
            .then(|| self.fixed(given, name, &range, 0) as f64)
    }

    pub(super) fn randvar(&mut self, name: &str, randvar: &Spanned<Randvar>) -> Option<Val> {
        let at = randvar.at;
        let given = Given::new("a randvar", at, &randvar.value.attributes);
        let before = self.messages.len();
        let table = randvar.value.table.as_ref();
        let kind = if given.has("type") {
            self.text(&given, "type")?
        } else {
            (if table.is_some() { "tabular" } else { "gamma" }).into()
        };
        let min = self.parameter(&given, "min").unwrap_or(0.0);
        let source = self.random_source(&given);
        let shape_milli = self.fixed(&given, "gamma", &(1..=1_000_000), GAMMA_DEFAULT_MILLI) as f64;
        let mean = self.parameter(&given, "mean");
        let round = self.parameter(&given, "round").unwrap_or(0.0);
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
            let message = format!("`mean` must not be below `min`, which is {min}");
            self.messages.at(given.place("mean"), message);
        }
        let (kind, distribution) = match kind.as_str() {
            "uniform" => {
                if mean.is_none() {
                    self.messages.at(at, "a uniform randvar needs `mean=`");
                }
                let randvar = common(mean.unwrap_or(0.0));
                ("uniform", Distribution::Uniform(randvar))
            }
            "gamma" => {
                let shape = shape_milli / 1000.0;
                let randvar = common(mean.unwrap_or(shape));
                ("gamma", Distribution::Gamma { randvar, shape })
            }
            "tabular" => {
                let Some(table) = table else {
                    let message = "a tabular randvar needs `randtable={{percent, from, to}, ...}`";
                    return self.complain(at, message);
                };
                let randvar = common(mean.unwrap_or(0.0));
                let rows = self.rows(table)?;
                ("tabular", Distribution::Table { randvar, rows })
            }
            other => {
                let message = format!(
                    "expected `uniform`, `gamma` or `tabular` as the type of a randvar, found {}",
                    quoted(other)
                );
                return self.complain(given.place("type"), message);
            }
        };
        if self.messages.len() > before {
            return None;
        }
        self.random(name, at, kind, distribution)
    }

    fn random_source(&mut self, given: &Given<'_>) -> RandomSource {
        let seed = self.fixed(given, "seed", &(0..=u64::MAX), 0);
        match self.text(given, "randsrc").as_deref() {
            Some("urandom") => RandomSource::Run,
            Some("rand48") | None => RandomSource::Rand48 { seed },
            Some(other) => {
                let message = format!("expected `urandom` or `rand48`, found {}", quoted(other));
                self.messages.at(given.place("randsrc"), message);
                RandomSource::Run
            }
        }
    }

    fn rows(&mut self, table: &RandTable) -> Option<Vec<TableRow>> {
        let mut rows = Vec::new();
        let mut percent_sum = 0;
        for row in &table.value {
            let mut numbers = [0; 3];
            for (number, cell) in numbers.iter_mut().zip(&row.cells) {
                *number = match self.evaluate(cell, &NO_LOCALS)? {
                    Val::Int(value) if value <= PARAMETER_MAX => value,
                    other => {
                        let found = Self::describe(&other);
                        let expected = format!("a fixed number of at most {PARAMETER_MAX}");
                        return self
                            .complain(cell.at, format!("expected {expected}, found {found}"));
                    }
                };
            }
            let [percent, min, max] = numbers;
            if min > max {
                let message = format!("the row ends at {max}, below its start at {min}");
                return self.complain(row.at, message);
            }
            percent_sum += percent.min(1000);
            rows.push(TableRow {
                percent: u32::try_from(percent).unwrap_or(u32::MAX),
                min,
                max,
            });
        }
        if percent_sum != 100 {
            let message =
                format!("the percentages of the table must add up to 100, found {percent_sum}");
            return self.complain(table.at, message);
        }
        Some(rows)
    }

    pub(super) fn cvar(&mut self, name: &str, cvar: &Spanned<Vec<Attribute>>) -> Option<Val> {
        let at = cvar.at;
        let given = Given::new("a cvar", at, &cvar.value);
        let before = self.messages.len();
        let kind = self.needed(&given, "type");
        let text = self.text(&given, "parameters").unwrap_or_default();
        let bounds = Bounds {
            round: self.parameter(&given, "round").unwrap_or(0.0),
            min: self.parameter(&given, "min").unwrap_or(f64::MIN_POSITIVE),
            max: self.parameter(&given, "max").unwrap_or(f64::MAX),
        };
        if self.messages.len() > before {
            return None;
        }
        if bounds.min > bounds.max {
            self.messages
                .at(given.place("max"), "`max` must not be below `min`");
        }
        let Some(kind) = KINDS.into_iter().find(|known| *known == kind) else {
            let expected = one_of(&KINDS);
            let message = format!(
                "expected {expected} as the type of a cvar, found {}",
                quoted(&kind)
            );
            return self.complain(given.place("type"), message);
        };
        match Parameters::parse(&text).and_then(|it| it.distribution(kind, bounds)) {
            Ok(_) if self.messages.len() > before => None,
            Ok(distribution) => self.random(name, at, kind, distribution),
            Err(why) => {
                let message = format!("parameters of {kind}: {why}");
                self.complain(given.place("parameters"), message)
            }
        }
    }
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

/// The parameters `name:number;name:number`, taken one by one. Errors say what is wrong with them.
struct Parameters {
    left: Vec<(String, f64)>,
    /// Names that the distribution takes.
    known: Vec<&'static str>,
}

impl Parameters {
    fn parse(text: &str) -> Result<Self, String> {
        let mut left: Vec<(String, f64)> = Vec::new();
        for part in text.split(';').filter(|part| !part.is_empty()) {
            let wrong = || format!("expected name:number;name:number, found {}", quoted(part));
            let (name, number) = part.split_once(':').ok_or_else(wrong)?;
            let number: f64 = number.trim().parse().map_err(|_| wrong())?;
            let name = name.trim().to_owned();
            if !number.is_finite() || name.is_empty() {
                return Err(wrong());
            }
            if left.iter().any(|(other, _)| *other == name) {
                return Err(format!("{} is given twice", quoted(&name)));
            }
            left.push((name, number));
        }
        Ok(Self {
            left,
            known: Vec::new(),
        })
    }

    fn take(&mut self, name: &'static str, default: f64) -> f64 {
        self.known.push(name);
        let index = self.left.iter().position(|(other, _)| other == name);
        index.map_or(default, |index| self.left.swap_remove(index).1)
    }

    /// Like [`Self::take`], for numbers that must be above zero.
    fn positive(&mut self, name: &'static str, default: f64) -> Result<f64, String> {
        let value = self.take(name, default);
        if value > 0.0 {
            return Ok(value);
        }
        Err(format!("{} must be above 0, found {value}", quoted(name)))
    }

    /// Like [`Self::take`], for the lower and upper end of a range.
    fn ends(&mut self) -> (f64, f64) {
        (self.take("lower", 0.0), self.take("upper", 1.0))
    }

    /// Returns the distribution of one of [`KINDS`], with defaults for omitted parameters.
    fn distribution(mut self, kind: &str, bounds: Bounds) -> Result<Distribution, String> {
        let distribution = match kind {
            "cvar-uniform" => {
                let (lower, upper) = self.ends();
                ordered(&[("lower", lower), ("upper", upper)])?;
                Distribution::CvarUniform {
                    lower,
                    upper,
                    bounds,
                }
            }
            "cvar-gamma" => Distribution::CvarGamma {
                mean: self.positive("mean", 4096.0)?,
                shape: self.positive("gamma", 1.5)?,
                bounds,
            },
            "cvar-normal" => Distribution::CvarNormal {
                mean: self.take("mean", 0.0),
                sigma: self.positive("sigma", 1.0)?,
                bounds,
            },
            "cvar-lognormal" => Distribution::CvarLognormal {
                shape: self.positive("shape", 1.0)?,
                scale: self.positive("scale", 1.0)?,
                bounds,
            },
            "cvar-exponential" => Distribution::CvarExponential {
                mean: self.positive("mean", 1.0)?,
                bounds,
            },
            "cvar-erlang" => Distribution::CvarErlang {
                shape: stages(self.positive("shape", 1.0)?)?,
                mean: self.positive("rate", 1.0)?,
                bounds,
            },
            "cvar-triangular" => {
                let (lower, upper) = self.ends();
                let mode = self.take("mode", 0.5);
                ordered(&[("lower", lower), ("mode", mode), ("upper", upper)])?;
                Distribution::CvarTriangular {
                    lower,
                    upper,
                    mode,
                    bounds,
                }
            }
            _ => Distribution::CvarWeibull {
                shape: self.positive("shape", 1.0)?,
                scale: self.positive("scale", 1.0)?,
                bounds,
            },
        };
        match self.left.first() {
            None => Ok(distribution),
            Some((name, _)) => {
                let expected = one_of(&self.known);
                Err(format!("expected {expected}, found {}", quoted(name)))
            }
        }
    }
}

/// Checks that no parameter is below the one before.
fn ordered(parameters: &[(&str, f64)]) -> Result<(), String> {
    for pair in parameters.windows(2) {
        let [(low_name, low), (high_name, high)] = pair else {
            continue;
        };
        if low > high {
            let (low_name, high_name) = (quoted(low_name), quoted(high_name));
            return Err(format!("{high_name} ({high}) is below {low_name} ({low})"));
        }
    }
    Ok(())
}

/// Returns the shape of an Erlang distribution: its number of exponential stages.
fn stages(shape: f64) -> Result<u32, String> {
    const STAGES_MAX: u32 = 1000;
    let stages = (1..=STAGES_MAX).find(|stages| f64::from(*stages) >= shape);
    stages.filter(|_| shape.fract() == 0.0).ok_or_else(|| {
        format!("`shape` must be a whole number from 1 to {STAGES_MAX}, found {shape}")
    })
}
