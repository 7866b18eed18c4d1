//! Principal components of a correlation matrix, by Jacobi rotations.

use crate::stats::correlation;
use serde::Serialize;

/// Most sweeps; never reached, because convergence is quadratic.
const SWEEPS_MAX: usize = 64;

/// A principal component.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Component {
    /// Its share of the variance of all quantities, 0 to 1.
    pub variance_share: f64,
    /// Correlation of each quantity with it, -1 to 1, in the order of the
    /// quantities: the eigenvector times the root of the eigenvalue.
    pub loadings: Vec<f64>,
    /// Its value for each row, in the order of the rows.
    pub scores: Vec<f64>,
}

/// Returns the principal components of standardised columns of equal length, one per column, the
/// largest variance first. An eigenvector has no sign of its own: the largest loading of each is
/// positive.
pub(crate) fn components(columns: &[Vec<f64>]) -> Vec<Component> {
    let count = columns.len();
    let matrix = columns
        .iter()
        .map(|a| columns.iter().map(|b| correlation(a, b)).collect())
        .collect();
    let (values, vectors) = eigen(matrix);
    let rows = columns.first().map_or(0, Vec::len);
    let mut components: Vec<Component> = (0..count)
        .map(|at| {
            let vector: Vec<f64> = vectors.iter().map(|row| row[at]).collect();
            let sign = vector
                .iter()
                .fold(
                    0.0_f64,
                    |most, v| if v.abs() > most.abs() { *v } else { most },
                )
                .signum();
            // Only rounding can make it negative.
            let value = values[at].max(0.0);
            let score = |row: usize| -> f64 {
                columns
                    .iter()
                    .zip(&vector)
                    .map(|(column, v)| sign * column[row] * v)
                    .sum()
            };
            Component {
                variance_share: value / count as f64,
                loadings: vector
                    .iter()
                    .map(|v| (sign * v * value.sqrt()).clamp(-1.0, 1.0))
                    .collect(),
                scores: (0..rows).map(score).collect(),
            }
        })
        .collect();
    components.sort_by(|a, b| b.variance_share.total_cmp(&a.variance_share));
    components
}

/// Returns the eigenvalues of a symmetric matrix, and its eigenvectors as columns.
fn eigen(mut matrix: Vec<Vec<f64>>) -> (Vec<f64>, Vec<Vec<f64>>) {
    let count = matrix.len();
    let unit = |row: usize| {
        (0..count)
            .map(|at| f64::from(u8::from(at == row)))
            .collect()
    };
    let mut vectors: Vec<Vec<f64>> = (0..count).map(unit).collect();
    for _ in 0..SWEEPS_MAX {
        let off: f64 = (0..count)
            .flat_map(|row| (0..row).map(move |column| (row, column)))
            .map(|(row, column)| matrix[row][column].powi(2))
            .sum();
        if off < 1e-24 {
            break;
        }
        for p in 0..count {
            for q in p + 1..count {
                rotate(&mut matrix, &mut vectors, p, q);
            }
        }
    }
    ((0..count).map(|at| matrix[at][at]).collect(), vectors)
}

/// Rotates by the angle that makes the element at (p, q) vanish.
fn rotate(matrix: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    let off = matrix[p][q];
    if off.abs() < 1e-300 {
        return;
    }
    let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * off);
    // The smaller of the two angles; theta may be too large to square.
    let tangent = 1.0_f64.copysign(theta) / (theta.abs() + theta.hypot(1.0));
    let cosine = 1.0 / tangent.hypot(1.0);
    let sine = tangent * cosine;
    let turn = |row: &mut Vec<f64>| {
        let (a, b) = (row[p], row[q]);
        (row[p], row[q]) = (cosine * a - sine * b, sine * a + cosine * b);
    };
    matrix.iter_mut().for_each(turn);
    vectors.iter_mut().for_each(turn);
    // p lies above q.
    let (above, below) = matrix.split_at_mut(q);
    for (a, b) in above[p].iter_mut().zip(&mut below[0]) {
        (*a, *b) = (cosine * *a - sine * *b, sine * *a + cosine * *b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::standardised;
    use proptest::prelude::*;

    #[test]
    fn two_quantities_by_hand() {
        // Two quantities with correlation c: eigenvalues 1 + c and 1 - c along the diagonals. Here
        // c = mean of products: columns (1,1,-1,-1) and (1,1,1,-3)/sqrt(3).
        let a = standardised(&[1.0, 1.0, -1.0, -1.0]).unwrap();
        let b = standardised(&[1.0, 1.0, 1.0, -3.0]).unwrap();
        // (1 + 1 - 1 + 3) / (4 sqrt(3)) = 1 / sqrt(3)
        let c = 1.0 / 3.0_f64.sqrt();
        let got = components(&[a, b]);
        let near = |x: f64, y: f64| (x - y).abs() < 1e-9;
        assert!(
            near(got[0].variance_share, f64::midpoint(1.0, c)),
            "{got:?}"
        );
        assert!(near(got[1].variance_share, f64::midpoint(1.0, -c)));
        let loading = f64::midpoint(1.0, c).sqrt();
        assert!(near(got[0].loadings[0], loading) && near(got[0].loadings[1], loading));
    }

    #[test]
    fn none_and_one() {
        assert!(components(&[]).is_empty());
        let one = components(&[standardised(&[1.0, 2.0, 4.0]).unwrap()]);
        assert!((one[0].variance_share - 1.0).abs() < 1e-12);
        assert!((one[0].loadings[0] - 1.0).abs() < 1e-12);
    }

    proptest! {
        /// M v = value v, and the values add up to the trace.
        #[test]
        fn eigenvectors_solve_the_equation(entries in prop::collection::vec(-1.0_f64..1.0, 36)) {
            let at = |row: usize, column: usize| entries[row.min(column) * 6 + row.max(column)];
            let matrix: Vec<Vec<f64>> =
                (0..6).map(|row| (0..6).map(|column| at(row, column)).collect()).collect();
            let (values, vectors) = eigen(matrix.clone());
            for (which, value) in values.iter().enumerate() {
                for row in &matrix {
                    let place = matrix.iter().position(|r| std::ptr::eq(r, row)).unwrap();
                    let product: f64 = row.iter().zip(&vectors).map(|(m, v)| m * v[which]).sum();
                    prop_assert!((product - value * vectors[place][which]).abs() < 1e-9);
                }
            }
            let trace: f64 = (0..6).map(|row| at(row, row)).sum();
            prop_assert!((values.iter().sum::<f64>() - trace).abs() < 1e-9);
        }
    }
}
