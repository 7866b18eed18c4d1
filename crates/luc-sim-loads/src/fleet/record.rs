//! The results for a node or a group of nodes, as lines of a file that a later run can continue.

use luc_control::TrialPhase;
use serde::{Deserialize, Serialize};

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Record {
    Node(NodeRecord),
    Group(GroupRecord),
}

/// A node with its load, on stock and with LUC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    pub node: u32,
    pub stock: Figures,
    pub luc: Figures,
    pub verdict: HoldingVerdict,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The benchmark's main figure, a rate.
    pub per_s: f64,
    pub fsyncs: u64,
    pub commits: u64,
    /// Modelled power of the node; `None` if nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watts: Option<f64>,
}

impl NodeRecord {
    /// Returns LUC/stock; `None` if one of them did nothing.
    pub fn gain(&self) -> Option<f64> {
        let did = self.stock.per_s > 0.0 && self.luc.per_s > 0.0;
        did.then(|| self.luc.per_s / self.stock.per_s)
    }
}

/// The last verdict of LUC's trial of holding against not holding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldingVerdict {
    /// Commits are held.
    Held,
    /// None yet: too few commits were held.
    None,
    /// Commits are not held: that was no slower.
    Stock,
}

impl HoldingVerdict {
    pub const ALL: [Self; 3] = [Self::Held, Self::None, Self::Stock];

    pub(super) fn from_winner(winner: i64) -> Self {
        match TrialPhase::from_value(winner) {
            Some(TrialPhase::StayFree) => Self::Stock,
            Some(TrialPhase::StayHeld) => Self::Held,
            _ => Self::None,
        }
    }
}

/// A parallel program on nodes with the same kind of disk, on stock and with LUC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupRecord {
    pub group: u32,
    pub nodes: u32,
    pub stock: Phases,
    pub luc: Phases,
}

/// For each phase, the time of its slowest node, which is the phase's time, and the mean of all
/// nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phases {
    pub slowest_ns: Vec<u64>,
    pub mean_ns: Vec<u64>,
    pub fsyncs: u64,
}

impl Record {
    /// Returns the simulated fsyncs of both runs.
    pub fn fsyncs(&self) -> u64 {
        match self {
            Self::Node(it) => it.stock.fsyncs + it.luc.fsyncs,
            Self::Group(it) => it.stock.fsyncs + it.luc.fsyncs,
        }
    }

    /// Returns the record as a line, without its end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Parses the records after a file's first line; also returns the length of their lines in bytes. A
/// damaged last line is left out: a run was interrupted while it wrote it.
///
/// # Errors
/// A line before the last is not a record: its number, counted from 1 at the first record.
pub fn records(text: &str) -> Result<(Vec<Record>, usize), usize> {
    let mut found = Vec::new();
    let mut good_bytes = 0;
    let lines = text.split_inclusive('\n');
    let last = lines.clone().count();
    for (number, line) in (1..).zip(lines) {
        let record = line
            .strip_suffix('\n')
            .and_then(|line| serde_json::from_str(line).ok());
        match record {
            Some(record) => found.push(record),
            None if number == last => break,
            None => return Err(number),
        }
        good_bytes += line.len();
    }
    Ok((found, good_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(node: u32) -> Record {
        let figures = |per_s| Figures {
            per_s,
            fsyncs: 7,
            commits: 3,
            watts: None,
        };
        Record::Node(NodeRecord {
            node,
            stock: figures(100.1),
            luc: figures(150.2),
            verdict: HoldingVerdict::Held,
        })
    }

    #[test]
    fn a_damaged_last_line_is_left_out() {
        let group = Record::Group(GroupRecord {
            group: 1,
            nodes: 16,
            stock: Phases::default(),
            luc: Phases::default(),
        });
        let all = vec![node(0), node(1), group];
        let text: String = all.iter().map(|it| it.line() + "\n").collect();
        assert_eq!(records(&text), Ok((all.clone(), text.len())));
        assert_eq!(records(""), Ok((Vec::new(), 0)));
        let two = node(0).line().len() + node(1).line().len() + 2;
        // However much of the last line was written.
        for end in two..text.len() {
            assert_eq!(records(&text[..end]), Ok((all[..2].to_vec(), two)));
        }
        assert_eq!(records(&text.replacen("node", "nod", 1)), Err(1));
    }
}
