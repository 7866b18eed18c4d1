//! The summary of a fleet's records.

use serde::Serialize;

use super::Fleet;
use super::record::{HoldingVerdict, NodeRecord, Phases, Record};

/// Bounds of LUC/stock; nodes below each are counted.
pub const BELOW: [f64; 3] = [1.0, 0.95, 0.9];
/// Quantiles of phase times.
pub const PHASE_QUANTILES: [f64; 4] = [0.5, 0.99, 0.999, 0.9999];

/// Summary of the tasks done so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Nodes simulated so far, out of `nodes_all`.
    pub nodes: u32,
    pub nodes_all: u32,
    pub groups: u32,
    pub groups_all: u32,
    pub fsyncs: u64,
    /// LUC/stock over the nodes; `None` without nodes.
    pub gains: Option<Gains>,
    /// Nodes below each of [`BELOW`].
    pub below: [u32; 3],
    /// The node with the lowest LUC/stock, if that is below 1.
    pub worst: Option<Worst>,
    /// LUC/stock by load, a row each, and by disk.
    pub by_load: Vec<LoadRow>,
    pub disks: Vec<String>,
    /// LUC/stock by the last verdict of the trial.
    pub guard: Vec<GuardRow>,
    pub barriers: Vec<BarrierRow>,
    /// Modelled energy; `None` if nobody asked.
    pub energy: Option<FleetEnergy>,
}

/// Modelled energy of all nodes that did something on stock and with LUC.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FleetEnergy {
    pub machine: String,
    pub nodes: u32,
    /// Mean power of a node.
    pub stock_watts: f64,
    pub luc_watts: f64,
    /// Share of stock's energy that the same operations do not take with LUC, on as many nodes
    /// fewer: each node does all it can.
    pub saved_share: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gains {
    pub nodes: u32,
    pub p1: f64,
    pub p10: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    /// Geometric mean: half and double cancel out.
    pub mean: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Worst {
    pub node: u32,
    pub gain: f64,
    /// Command that simulates the node again, on stock.
    pub command: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadRow {
    pub load: String,
    /// A value for each disk, then one for all.
    pub gains: Vec<Option<Gains>>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GuardRow {
    pub verdict: HoldingVerdict,
    pub gains: Option<Gains>,
    /// Nodes with this verdict below each of [`BELOW`].
    pub below: [u32; 3],
    /// Mean loss of the nodes below 1, as a share of stock's rate; 0 if there are none.
    pub loss_mean: f64,
}

/// Groups of one size on one kind of disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BarrierRow {
    pub disk: String,
    pub nodes: u32,
    pub groups: u32,
    pub stock: PhaseTimes,
    pub luc: PhaseTimes,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PhaseTimes {
    pub phases: u64,
    /// Value at each of [`PHASE_QUANTILES`]; `None` if there are too few phases.
    pub at_ns: [Option<u64>; 4],
    /// Mean over all nodes and phases.
    pub node_mean_ns: f64,
    /// Ratio of the slowest node's time to the mean node's, over all phases.
    pub slowdown: f64,
}

impl Summary {
    pub fn from_records(fleet: &Fleet, records: &[Record]) -> Self {
        let nodes: Vec<&NodeRecord> = records
            .iter()
            .filter_map(|record| match record {
                Record::Node(node) => Some(node),
                Record::Group(_) => None,
            })
            .collect();
        let table = fleet.table();
        let gains = |keep: &dyn Fn(&NodeRecord) -> bool| {
            let kept = nodes.iter().filter(|it| keep(it));
            Sorted::new(kept.filter_map(|it| it.gain()).collect())
        };
        let all = gains(&|_| true);
        let by_load = table.loads.iter().enumerate().map(|(load, row)| {
            let of_disk = |disk: Option<usize>| {
                gains(&|it| {
                    let drawn = fleet.drawn(it.node);
                    drawn.load == load && disk.is_none_or(|disk| drawn.disk == disk)
                })
                .gains()
            };
            let disks = (0..table.disks.len()).map(Some);
            LoadRow {
                load: row.name.clone(),
                gains: disks.chain([None]).map(of_disk).collect(),
            }
        });
        let guard = HoldingVerdict::ALL.into_iter().map(|verdict| {
            let gains = gains(&|it| it.verdict == verdict);
            GuardRow {
                verdict,
                gains: gains.gains(),
                below: gains.below(),
                loss_mean: gains.loss_mean(),
            }
        });
        let groups = records.len() - nodes.len();
        Self {
            nodes: count(nodes.len()),
            nodes_all: fleet.nodes(),
            groups: count(groups),
            groups_all: count(fleet.groups().len()),
            fsyncs: records.iter().map(Record::fsyncs).sum(),
            below: all.below(),
            worst: worst(fleet, &nodes),
            by_load: by_load.collect(),
            disks: table.disks.iter().map(|disk| disk.spec.clone()).collect(),
            guard: guard.collect(),
            barriers: barriers(fleet, records),
            energy: energy(fleet, &nodes),
            gains: all.gains(),
        }
    }
}

fn worst(fleet: &Fleet, nodes: &[&NodeRecord]) -> Option<Worst> {
    let gains = nodes.iter().filter_map(|it| Some((it.node, it.gain()?)));
    let (node, gain) = gains.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let drawn = fleet.drawn(node);
    (gain < 1.0).then(|| Worst {
        node,
        gain,
        command: fleet.table().command(&drawn),
    })
}

fn energy(fleet: &Fleet, nodes: &[&NodeRecord]) -> Option<FleetEnergy> {
    let (machine, _) = fleet.arguments.energy.as_ref()?;
    let (mut count, mut stock, mut luc, mut same_work) = (0, 0.0, 0.0, 0.0);
    for node in nodes {
        let Some(((stock_w, luc_w), gain)) = node.stock.watts.zip(node.luc.watts).zip(node.gain())
        else {
            continue;
        };
        count += 1;
        stock += stock_w;
        luc += luc_w;
        same_work += luc_w / gain;
    }
    (count > 0).then(|| FleetEnergy {
        machine: machine.clone(),
        nodes: count,
        stock_watts: stock / f64::from(count),
        luc_watts: luc / f64::from(count),
        saved_share: 1.0 - same_work / stock,
    })
}

fn barriers(fleet: &Fleet, records: &[Record]) -> Vec<BarrierRow> {
    let mut rows: Vec<BarrierRow> = Vec::new();
    let mut found: Vec<[Vec<&Phases>; 2]> = Vec::new();
    for record in records {
        let Record::Group(record) = record else {
            continue;
        };
        let Some(group) = fleet.groups().get(record.group as usize) else {
            continue;
        };
        let disk = &fleet.table().disks[group.disk].spec;
        let at = rows
            .iter()
            .position(|row| row.disk == *disk && row.nodes == record.nodes);
        let at = at.unwrap_or_else(|| {
            rows.push(BarrierRow {
                disk: disk.clone(),
                nodes: record.nodes,
                groups: 0,
                stock: PhaseTimes::sum(&[]),
                luc: PhaseTimes::sum(&[]),
            });
            found.push([Vec::new(), Vec::new()]);
            rows.len() - 1
        });
        rows[at].groups += 1;
        found[at][0].push(&record.stock);
        found[at][1].push(&record.luc);
    }
    for (row, [stock, luc]) in rows.iter_mut().zip(&found) {
        row.stock = PhaseTimes::sum(stock);
        row.luc = PhaseTimes::sum(luc);
    }
    rows
}

impl PhaseTimes {
    fn sum(groups: &[&Phases]) -> Self {
        let all = |of: fn(&Phases) -> &Vec<u64>| groups.iter().flat_map(move |it| of(it));
        let mut slowest_ns: Vec<u64> = all(|it| &it.slowest_ns).copied().collect();
        slowest_ns.sort_unstable();
        let phases = slowest_ns.len() as u64;
        let sum = |values: &mut dyn Iterator<Item = &u64>| values.map(|ns| *ns as f64).sum::<f64>();
        let mean_sum_ns = sum(&mut all(|it| &it.mean_ns));
        Self {
            phases,
            at_ns: PHASE_QUANTILES.map(|quantile| at(&slowest_ns, quantile)),
            node_mean_ns: mean_sum_ns / phases.max(1) as f64,
            slowdown: sum(&mut slowest_ns.iter()) / mean_sum_ns.max(1.0),
        }
    }
}

/// Returns the quantile by nearest rank; `None` if less than one value is expected beyond it.
fn at<T: Copy>(sorted: &[T], quantile: f64) -> Option<T> {
    let expected_beyond = sorted.len() as f64 * (1.0 - quantile);
    // Allow for rounding: 0.9999999 counts as 1.
    if expected_beyond < 1.0 - 1e-6 {
        return None;
    }
    sorted.get(rank(sorted.len(), quantile)).copied()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn rank(count: usize, quantile: f64) -> usize {
    let rank = (count as f64 * quantile - 1e-6).ceil() as usize;
    rank.saturating_sub(1)
}

/// LUC/stock of some nodes, sorted.
struct Sorted(Vec<f64>);

impl Sorted {
    fn new(mut gains: Vec<f64>) -> Self {
        gains.sort_unstable_by(f64::total_cmp);
        Self(gains)
    }

    fn gains(&self) -> Option<Gains> {
        let at = |quantile| self.0.get(rank(self.0.len(), quantile)).copied();
        let logs: f64 = self.0.iter().map(|gain| gain.ln()).sum();
        Some(Gains {
            nodes: count(self.0.len()),
            p1: at(0.01)?,
            p10: at(0.1)?,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99)?,
            mean: (logs / self.0.len() as f64).exp(),
        })
    }

    fn loss_mean(&self) -> f64 {
        let losses = self.0.iter().take_while(|gain| **gain < 1.0);
        let sum: f64 = losses.clone().map(|gain| 1.0 - gain).sum();
        sum / losses.count().max(1) as f64
    }

    fn below(&self) -> [u32; 3] {
        BELOW.map(|bound| count(self.0.partition_point(|gain| *gain < bound)))
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_by_hand() {
        let gains = Sorted::new((1..=200).rev().map(|it| f64::from(it) / 100.0).collect());
        let found = gains.gains().unwrap();
        assert_eq!((found.p1, found.p50, found.p99), (0.02, 1.0, 1.98));
        assert_eq!(gains.below(), [99, 94, 89]);
        let two = Sorted::new(vec![2.0, 0.5]).gains().unwrap();
        assert!((two.mean - 1.0).abs() < 1e-12);
        assert_eq!((two.p1, two.p99), (0.5, 2.0));
        let lossy = Sorted::new(vec![0.9, 1.5, 0.7, 1.0]);
        assert!((lossy.loss_mean() - 0.2).abs() < 1e-12);
        assert!(Sorted::new(vec![1.0]).loss_mean() < 1e-12);
        assert_eq!(Sorted::new(Vec::new()).gains(), None);
        assert_eq!(Sorted::new(Vec::new()).below(), [0; 3]);
    }

    #[test]
    fn a_quantile_needs_values_beyond_it() {
        let values: Vec<u32> = (1..=10_000).collect();
        assert_eq!(at(&values, 0.9999), Some(9_999));
        assert_eq!(at(&values[..9_999], 0.9999), None);
        assert_eq!(at(&values, 0.5), Some(5_000));
        assert_eq!(at(&values[..100], 0.99), Some(99));
        assert_eq!(at(&values[..99], 0.99), None);
        assert_eq!(at::<u32>(&[], 0.5), None);
    }

    #[test]
    fn phases_by_hand() {
        let phases = Phases {
            slowest_ns: vec![20, 40],
            mean_ns: vec![10, 30],
            fsyncs: 0,
        };
        let times = PhaseTimes::sum(&[&phases, &phases]);
        assert_eq!((times.phases, times.at_ns[0]), (4, Some(20)));
        assert!((times.node_mean_ns - 20.0).abs() < 1e-12);
        assert!((times.slowdown - 1.5).abs() < 1e-12);
        assert_eq!(PhaseTimes::sum(&[]).phases, 0);
    }
}
