//! Draws values: fixed numbers and random variables.

use std::sync::Arc;

use luc_wml::plan::{Bounds, Distribution, Plan, RandomSource, Randvar, TableRow, Value};

use super::random::{Generator, Lcg48, floor};

/// A thread's generator with the state of the random variables that have their own.
pub struct Draws {
    /// The thread's generator.
    pub generator: Generator,
    plan: Arc<Plan>,
    own: Vec<Lcg48>,
}

impl Draws {
    /// `thread` separates the streams of variables that have their own seed: thread 0, which
    /// prepares, uses the seed as given.
    pub fn new(generator: Generator, plan: &Arc<Plan>, thread: u64) -> Self {
        let randoms = plan.randoms.iter();
        let own = randoms.map(|random| Lcg48(seed_of(&random.distribution).wrapping_add(thread)));
        Self {
            generator,
            plan: Arc::clone(plan),
            own: own.collect(),
        }
    }

    /// Draws a whole number; fractions are cut off.
    pub fn whole(&mut self, value: Value) -> u64 {
        match value {
            Value::Fixed(value) => value,
            Value::Random(_) => floor(self.real(value)),
        }
    }

    /// Draws a number with its fraction.
    pub fn real(&mut self, value: Value) -> f64 {
        match value {
            Value::Fixed(value) => value as f64,
            Value::Random(id) => {
                let distribution = &self.plan.randoms[id.0].distribution;
                draw(distribution, &mut self.generator, &mut self.own[id.0])
            }
        }
    }

    /// Returns the mean that a random variable was defined with; a fixed number is its own mean.
    pub fn mean(&self, value: Value) -> f64 {
        match value {
            Value::Fixed(value) => value as f64,
            Value::Random(id) => {
                let randvar = randvar(&self.plan.randoms[id.0].distribution);
                randvar.map_or(0.0, |randvar| randvar.mean)
            }
        }
    }

    /// Draws a random variable of `define randvar` with `mean` instead of its own mean.
    pub fn real_with_mean(&mut self, value: Value, mean: f64) -> f64 {
        let Value::Random(id) = value else {
            return mean;
        };
        let mut distribution = self.plan.randoms[id.0].distribution.clone();
        match &mut distribution {
            Distribution::Uniform(randvar)
            | Distribution::Gamma { randvar, .. }
            | Distribution::Table { randvar, .. } => randvar.mean = mean,
            _ => {}
        }
        draw(&distribution, &mut self.generator, &mut self.own[id.0])
    }
}

fn randvar(distribution: &Distribution) -> Option<&Randvar> {
    match distribution {
        Distribution::Uniform(randvar)
        | Distribution::Gamma { randvar, .. }
        | Distribution::Table { randvar, .. } => Some(randvar),
        _ => None,
    }
}

fn seed_of(distribution: &Distribution) -> u64 {
    match randvar(distribution).map(|randvar| randvar.source) {
        Some(RandomSource::Rand48 { seed }) => seed,
        _ => 0,
    }
}

fn draw(distribution: &Distribution, generator: &mut Generator, own: &mut Lcg48) -> f64 {
    use Distribution as D;
    let (value, bounds) = match distribution {
        D::Uniform(v) => {
            let unit = source(v, generator, own);
            return rounded(unit * (2.0 * (v.mean - v.min)) + v.min, v.round);
        }
        D::Gamma { randvar: v, shape } => {
            let scale = (v.mean - v.min) / shape;
            let value = gamma(*shape, scale, || source(v, generator, own));
            return rounded(value + v.min, v.round);
        }
        D::Table { randvar: v, rows } => {
            let unit = source(v, generator, own);
            return rounded(table(v, rows, unit), v.round);
        }
        D::CvarUniform {
            lower,
            upper,
            bounds,
        } => (lower + generator.unit32() * (upper - lower), bounds),
        D::CvarGamma {
            mean,
            shape,
            bounds,
        } => {
            let value = gamma(*shape, mean / shape, || generator.unit48());
            (value, bounds)
        }
        D::CvarNormal {
            mean,
            sigma,
            bounds,
        } => (normal(generator, *mean, *sigma), bounds),
        D::CvarLognormal {
            shape,
            scale,
            bounds,
        } => (normal(generator, *scale, *shape).exp(), bounds),
        D::CvarExponential { mean, bounds } => (-mean * above_zero(generator).ln(), bounds),
        D::CvarErlang {
            shape,
            mean,
            bounds,
        } => {
            let order = (*shape).max(1);
            let product: f64 = (0..order).map(|_| above_zero(generator)).product();
            (-mean * product.ln() / f64::from(order), bounds)
        }
        D::CvarTriangular {
            lower,
            upper,
            mode,
            bounds,
        } => {
            let peak = (mode - lower) / (upper - lower);
            let unit = generator.unit32();
            let place = if unit <= peak {
                (peak * unit).sqrt()
            } else {
                1.0 - ((1.0 - peak) * (1.0 - unit)).sqrt()
            };
            (lower + (upper - lower) * place, bounds)
        }
        D::CvarWeibull {
            shape,
            scale,
            bounds,
        } => {
            let value = scale * ((-above_zero(generator).ln()).ln() / shape).exp();
            (value, bounds)
        }
    };
    clamped(value, *bounds)
}

/// Draws a random number in [0, 1) for a `randvar`.
fn source(randvar: &Randvar, generator: &mut Generator, own: &mut Lcg48) -> f64 {
    match randvar.source {
        RandomSource::Rand48 { .. } => own.unit(),
        RandomSource::Run => generator.bits() as f64 / 18_446_744_073_709_551_616.0,
    }
}

fn above_zero(generator: &mut Generator) -> f64 {
    loop {
        let unit = generator.unit32();
        if unit > 0.0 {
            return unit;
        }
    }
}

/// Rounds to the nearest multiple, as `randvar` does.
fn rounded(value: f64, round: f64) -> f64 {
    if round == 0.0 {
        value
    } else {
        (value / round).round() * round
    }
}

/// Rounds as `cvar` does: the whole part to the nearest multiple, the lower of two equally near;
/// then applies the bounds.
fn clamped(value: f64, Bounds { round, min, max }: Bounds) -> f64 {
    let step = floor(round);
    let value = if step == 0 {
        value
    } else {
        let whole = floor(value);
        let lower = whole - whole % step;
        let up = whole - lower > step - (whole - lower);
        (if up {
            lower.saturating_add(step)
        } else {
            lower
        }) as f64
    };
    value.max(min).min(max)
}

/// Returns the inverse of the table's distribution at `unit`, scaled to the variable's mean and
/// minimum.
fn table(randvar: &Randvar, rows: &[TableRow], unit: f64) -> f64 {
    let share = unit * 100.0;
    let mean: f64 = rows
        .iter()
        .map(|row| f64::midpoint(row.min as f64, row.max as f64) * f64::from(row.percent) / 100.0)
        .sum();
    let lowest = rows.iter().map(|row| row.min).min().unwrap_or(0) as f64;
    let wanted = if randvar.mean == 0.0 {
        mean
    } else {
        randvar.mean
    };
    let spread = mean - lowest;
    if spread == 0.0 {
        return randvar.min;
    }
    let mut upto = 0;
    let row = rows.iter().find(|row| {
        upto += row.percent;
        share < f64::from(upto)
    });
    let Some(row) = row.or(rows.last()) else {
        return randvar.min;
    };
    let within = share - share.floor();
    let value = row.min as f64 + (row.max as f64 - row.min as f64) * within;
    (value - lowest) / spread * (wanted - randvar.min) + randvar.min
}

fn normal(generator: &mut Generator, mean: f64, sigma: f64) -> f64 {
    // The polar method; its second value is not used.
    loop {
        let x = 2.0 * generator.unit32() - 1.0;
        let y = 2.0 * generator.unit32() - 1.0;
        let size = x * x + y * y;
        if size > 0.0 && size <= 1.0 {
            return mean + sigma * x * ((-2.0 * size.ln()) / size).sqrt();
        }
    }
}

/// Draws from the gamma distribution of this shape, times `scale`: by Knuth's algorithm A (The Art
/// of Computer Programming 2, 3.4.1) for a shape above one, else by his algorithm G (exercise 16).
pub fn gamma(shape: f64, scale: f64, mut unit: impl FnMut() -> f64) -> f64 {
    use std::f64::consts::{E, PI};
    if shape <= 1.0 {
        let share = E / (shape + E);
        loop {
            let side = unit();
            let v = loop {
                let v = unit();
                if v != 0.0 {
                    break v;
                }
            };
            let (x, bound) = if side < share {
                let x = v.powf(1.0 / shape);
                (x, (-x).exp())
            } else {
                let x = 1.0 - v.ln();
                (x, x.powf(shape - 1.0))
            };
            if unit() < bound {
                return scale * x;
            }
        }
    }
    let width = (2.0 * shape - 1.0).sqrt();
    loop {
        let y = (PI * unit()).tan();
        let x = width * y + shape - 1.0;
        if x <= 0.0 {
            continue;
        }
        let bound = (1.0 + y * y) * ((shape - 1.0) * (x / (shape - 1.0)).ln() - width * y).exp();
        if unit() <= bound {
            return scale * x;
        }
    }
}
