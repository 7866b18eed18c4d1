//! The poles of the closed loop, and what they say of a set of gains.
//!
//! The plant is d(t+1) = d(t) + c u(t+1), the controller is the PID law of
//! `control/luc_pid.c`. Two closed loops follow from it, and they differ in
//! when an error can act:
//!
//! * *published*, the analysis of the dissertation's section 5.3.1: the error
//!   of a commit corrects that same commit. Its denominator
//!   (c(Kp+Ki+Kd)+1) z^2 - (c(Kp+2Kd)+2) z + (cKd+1) has its roots inside the
//!   unit circle for *every* positive Kp and Ki.
//! * *stepwise*, the loop that runs: a commit's error is known once its batch is
//!   closed and corrects the next one. With S = Kp+Ki+Kd the denominator is
//!   z^3 + (cS-2) z^2 + (1-c(Kp+2Kd)) z + cKd, and gains can be too large.
//!
//! A gain set is called stable only if both loops are. With Ki = 0 both denominators have a root at
//! 1 that the numerator has too: the unused sum of errors. It takes no part in the loop and is left
//! out.

use std::fmt;
use thiserror::Error;

/// Gains and plant gains beyond this are refused: the knobs end at 100.
pub const GAIN_MAX: f64 = 1e6;

/// A pole closer to the unit circle than this is called marginal. Double roots, as at c = 0, are
/// computed to about half the digits of a double.
const MARGIN: f64 = 1e-6;

/// Share of an error that is left when it counts as settled.
const SETTLED: f64 = 0.1;

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Complex {
    /// Real part.
    pub re: f64,
    /// Imaginary part.
    pub im: f64,
}

impl Complex {
    /// Distance from 0.
    pub fn modulus(self) -> f64 {
        self.re.hypot(self.im)
    }
}

/// Shown as `0.717+0.169i`; a precision in the format is obeyed.
impl fmt::Display for Complex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        if self.im == 0.0 {
            return write!(f, "{:.digits$}", self.re);
        }
        write!(f, "{:.digits$}{:+.digits$}i", self.re, self.im)
    }
}

/// The fate of an error, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    /// It dies out: every pole lies inside the unit circle.
    Stable,
    /// It stays: the outermost pole lies on the circle.
    Marginal,
    /// It grows: a pole lies outside.
    Unstable,
}

impl fmt::Display for Stability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Stable => "stable",
            Self::Marginal => "marginal",
            Self::Unstable => "unstable",
        })
    }
}

/// One closed loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// Roots of the denominator that take part in the loop, the largest modulus first.
    pub poles: Vec<Complex>,
    /// Whether Ki = 0: a pole at 1 was left out because a zero cancels it.
    pub cancelled: bool,
    /// Largest modulus of the poles.
    pub modulus: f64,
    /// The verdict on that modulus.
    pub stability: Stability,
    /// Commits until an error has shrunk to a tenth by the slowest pole's modulus; `None` unless
    /// stable.
    pub settling_commits: Option<u64>,
}

/// The result of [`poles`].
#[derive(Clone, Debug, PartialEq)]
pub struct Poles {
    /// The error of a commit corrects that same commit.
    pub published: Loop,
    /// The error of a commit corrects the next one.
    pub stepwise: Loop,
    /// The worse of the two.
    pub stability: Stability,
}

/// Why gains make no loop: the name of the first bad argument, and its value.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PolesError {
    /// NaN or infinite.
    #[error("{0} is {1}; give a finite number")]
    NotFinite(&'static str, f64),
    /// Below zero: it would drive the batch away from the set point.
    #[error("{0} is {1}; gains and c must not be negative")]
    Negative(&'static str, f64),
    /// Beyond [`GAIN_MAX`].
    #[error("{0} is {1}; gains and c must not exceed {GAIN_MAX}")]
    TooLarge(&'static str, f64),
}

/// Computes the poles of the closed loop with these gains (as factors, 0.8 and not 800) and plant
/// gain `c`, about 1 for this controller by construction.
///
/// # Errors
/// An argument is not finite, is negative, or is beyond [`GAIN_MAX`]. For all others the leading
/// coefficient c(Kp+Ki+Kd)+1 is at least 1.
pub fn poles(kp: f64, ki: f64, kd: f64, c: f64) -> Result<Poles, PolesError> {
    let [p, i, d] = loop_gains(kp, ki, kd, c)?;
    // The product of c > 0 and Ki > 0 may still underflow to 0: the same loop.
    let cancelled = i == 0.0;
    let (published, stepwise) = if cancelled {
        let pole = (d + 1.0) / (p + d + 1.0);
        (
            vec![Complex { re: pole, im: 0.0 }],
            quadratic(p + d - 1.0, -d).to_vec(),
        )
    } else {
        let lead = p + i + d + 1.0;
        (
            quadratic(-(p + 2.0 * d + 2.0) / lead, (d + 1.0) / lead).to_vec(),
            cubic(p + i + d - 2.0, 1.0 - (p + 2.0 * d), d).to_vec(),
        )
    };
    let published = describe(published, cancelled);
    let stepwise = describe(stepwise, cancelled);
    let stability = published.stability.max(stepwise.stability);
    Ok(Poles {
        published,
        stepwise,
        stability,
    })
}

/// Returns c Kp, c Ki and c Kd: the loop depends on the plant only by these products.
fn loop_gains(kp: f64, ki: f64, kd: f64, c: f64) -> Result<[f64; 3], PolesError> {
    for (name, value) in [("kp", kp), ("ki", ki), ("kd", kd), ("c", c)] {
        if !value.is_finite() {
            return Err(PolesError::NotFinite(name, value));
        }
        if value < 0.0 {
            return Err(PolesError::Negative(name, value));
        }
        if value > GAIN_MAX {
            return Err(PolesError::TooLarge(name, value));
        }
    }
    Ok([c * kp, c * ki, c * kd])
}

fn describe(mut poles: Vec<Complex>, cancelled: bool) -> Loop {
    poles.sort_by(|a, b| b.modulus().total_cmp(&a.modulus()));
    let modulus = poles.first().map_or(0.0, |pole| pole.modulus());
    let stability = if modulus < 1.0 - MARGIN {
        Stability::Stable
    } else if modulus <= 1.0 + MARGIN {
        Stability::Marginal
    } else {
        Stability::Unstable
    };
    Loop {
        poles,
        cancelled,
        modulus,
        stability,
        settling_commits: (stability == Stability::Stable).then(|| settling(modulus)),
    }
}

fn settling(modulus: f64) -> u64 {
    // If a commit leaves a tenth or less, one is enough; this also avoids ln(0).
    if modulus <= SETTLED {
        return 1;
    }
    // At most about 2.3 million, because the margin keeps the modulus below 1.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let commits = (SETTLED.ln() / modulus.ln()).ceil() as u64;
    commits
}

/// Computes the roots of z^2 + b z + c.
fn quadratic(b: f64, c: f64) -> [Complex; 2] {
    let half = -b / 2.0;
    let inside = half * half - c;
    if inside < 0.0 {
        let im = (-inside).sqrt();
        return [Complex { re: half, im }, Complex { re: half, im: -im }];
    }
    // Compute the larger root without cancellation, the other from their product c.
    let large = half + inside.sqrt().copysign(half);
    let small = if large == 0.0 { 0.0 } else { c / large };
    [large, small].map(|re| Complex { re, im: 0.0 })
}

/// Computes the roots of z^3 + b z^2 + c z + d: a real one by bisection, the others from the
/// quadratic that it leaves.
fn cubic(b: f64, c: f64, d: f64) -> [Complex; 3] {
    let value = |z: f64| ((z + b) * z + c) * z + d;
    let bound = 1.0 + b.abs().max(c.abs()).max(d.abs());
    let (mut low, mut high) = (-bound, bound);
    // Ends when no double lies between the two.
    loop {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if value(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    let root = high;
    let [first, second] = quadratic(b + root, c + (b + root) * root);
    [Complex { re: root, im: 0.0 }, first, second]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn published_gains_have_modulus_0_737() {
        let poles = poles(0.8, 0.25, 0.25, 1.0).unwrap();
        assert!(near(poles.published.modulus, 0.737), "{poles:?}");
        assert_eq!(poles.published.settling_commits, Some(8));
        assert_eq!(poles.published.poles.len(), 2);
        // A conjugate pair: its product is (cKd+1)/(c(Kp+Ki+Kd)+1).
        let [first, second] = poles.published.poles[..] else {
            panic!("{poles:?}");
        };
        assert!(near(first.re, 3.3 / 4.6) && near(first.re, second.re));
        assert!(near(first.im.abs(), 0.1695) && near(first.im, -second.im));
        assert_eq!(format!("{first}"), "0.717+0.170i");
        assert!(near(poles.stepwise.modulus, 0.659), "{poles:?}");
        assert_eq!(poles.stability, Stability::Stable);
    }

    #[test]
    fn large_gains_are_unstable_only_stepwise() {
        let poles = poles(3.0, 0.25, 0.25, 1.0).unwrap();
        assert_eq!(poles.published.stability, Stability::Stable);
        assert_eq!(poles.stepwise.stability, Stability::Unstable);
        assert_eq!(poles.stability, Stability::Unstable);
        assert_eq!(poles.stepwise.settling_commits, None);
    }

    #[test]
    fn degenerate_loops() {
        // No integral term: one pole is cancelled, the rest is first order.
        let p_only = poles(0.5, 0.0, 0.0, 1.0).unwrap();
        assert!(p_only.published.cancelled);
        assert_eq!(p_only.published.poles.len(), 1);
        assert!(near(p_only.published.modulus, 1.0 / 1.5));
        assert!(near(p_only.stepwise.modulus, 0.5));
        assert_eq!(p_only.stability, Stability::Stable);
        // Deadbeat: the next batch is right at once.
        let deadbeat = poles(1.0, 0.0, 0.0, 1.0).unwrap();
        assert!(deadbeat.stepwise.modulus < 1e-12);
        assert_eq!(deadbeat.stepwise.settling_commits, Some(1));
        // Nothing restores the set point.
        for loops in [
            poles(0.0, 0.0, 0.0, 1.0).unwrap(),
            poles(0.0, 0.0, 0.5, 1.0).unwrap(),
            poles(0.8, 0.25, 0.25, 0.0).unwrap(),
        ] {
            assert_eq!(loops.stability, Stability::Marginal, "{loops:?}");
        }
        // A pole on the circle: Kp = 2 reverses every error.
        let turning = poles(2.0, 0.0, 0.0, 1.0).unwrap();
        assert_eq!(turning.stepwise.stability, Stability::Marginal);
    }

    #[test]
    fn arguments_that_make_no_loop() {
        let nan = poles(f64::NAN, 0.0, 0.0, 1.0).unwrap_err();
        assert_eq!(nan.to_string(), "kp is NaN; give a finite number");
        assert!(matches!(
            poles(0.0, f64::INFINITY, 0.0, 1.0),
            Err(PolesError::NotFinite("ki", _))
        ));
        assert!(matches!(
            poles(0.0, 0.0, -0.1, 1.0),
            Err(PolesError::Negative("kd", _))
        ));
        assert!(matches!(
            poles(0.0, 0.0, 0.0, 1e300),
            Err(PolesError::TooLarge("c", _))
        ));
        let extreme = poles(GAIN_MAX, GAIN_MAX, GAIN_MAX, GAIN_MAX).unwrap();
        assert_eq!(extreme.stepwise.stability, Stability::Unstable);
        assert!(extreme.stepwise.modulus.is_finite());
    }

    #[test]
    fn roots_are_roots() {
        for (b, c, d) in [
            (-0.7, -0.3, 0.25),
            (-3.0, 3.0, -1.0),
            (0.0, 0.0, -8.0),
            (0.0, 0.0, 0.0),
        ] {
            for root in cubic(b, c, d) {
                // z^3 + b z^2 + c z + d by Horner's rule on complex numbers.
                let (mut re, mut im) = (1.0, 0.0);
                for coefficient in [b, c, d] {
                    (re, im) = (
                        re * root.re - im * root.im + coefficient,
                        re * root.im + im * root.re,
                    );
                }
                assert!(re.hypot(im) < 1e-6, "{b} {c} {d}: {root}");
            }
        }
    }
}
