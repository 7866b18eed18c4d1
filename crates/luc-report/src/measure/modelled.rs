//! The answer of `luc trace model --json`, as far as reports need it.

use serde::{Deserialize, Serialize};

/// The model's figures for the one file system of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    /// Syncs that waited for a commit.
    pub syncs: u64,
    /// Median error of the predicted times of these syncs, as a share.
    pub error_median_share: f64,
    /// The same for the amended algorithm.
    pub amended_error_median_share: f64,
    /// Share of these syncs to which the model assigns the commit that served them.
    pub right_commit_share: f64,
    /// Error of the simulation of the recording, as a share.
    pub stock_error_share: f64,
    /// Operations per second with LUC over those without.
    pub gain: f64,
    /// The same for syncs.
    pub syncs_gain: f64,
    /// The same for writes.
    pub writes_gain: f64,
    /// Spans that the tracer lost.
    pub spans_lost: u64,
}

#[derive(Deserialize)]
struct Answer {
    spans_lost: u64,
    file_systems: Vec<FileSystem>,
}

#[derive(Deserialize)]
struct FileSystem {
    fsync: Fsync,
    what_if: Option<Rules>,
    what_if_refused: Option<String>,
}

#[derive(Deserialize)]
struct Fsync {
    measured: Times,
    error_median_share: f64,
    amended_error_median_share: f64,
    right_commit_share: f64,
}

#[derive(Deserialize)]
struct Times {
    count: u64,
}

#[derive(Deserialize)]
struct Rules {
    stock_error_share: f64,
    luc: Option<Prediction>,
}

#[derive(Deserialize)]
struct Prediction {
    gain: f64,
    syncs_gain: f64,
    writes_gain: f64,
}

impl Modelled {
    /// Parses what the guest printed.
    ///
    /// # Errors
    /// Says why that is no answer.
    pub fn read(json: &str) -> Result<Self, String> {
        let answer: Answer = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let count = answer.file_systems.len();
        let Ok([fs]) = <[FileSystem; 1]>::try_from(answer.file_systems) else {
            return Err(format!("a recording of {count} file systems"));
        };
        let refused = || fs.what_if_refused.unwrap_or_default();
        let rules = fs.what_if.ok_or_else(refused)?;
        let luc = rules.luc.ok_or("no word of what LUC would give")?;
        Ok(Self {
            syncs: fs.fsync.measured.count,
            error_median_share: fs.fsync.error_median_share,
            amended_error_median_share: fs.fsync.amended_error_median_share,
            right_commit_share: fs.fsync.right_commit_share,
            stock_error_share: rules.stock_error_share,
            gain: luc.gain,
            syncs_gain: luc.syncs_gain,
            writes_gain: luc.writes_gain,
            spans_lost: answer.spans_lost,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Modelled;

    fn refused(json: &str) -> String {
        Modelled::read(json).expect_err("no answer")
    }

    #[test]
    fn what_is_no_answer_says_why() {
        assert!(refused("luc: cannot").contains("expected value"));
        let none = r#"{"spans_lost": 0, "file_systems": []}"#;
        assert_eq!(refused(none), "a recording of 0 file systems");
        let fsync = r#"{"measured": {"count": 0}, "error_median_share": 0, "amended_error_median_share": 0, "right_commit_share": 0}"#;
        let fs = |rest: &str| {
            format!(r#"{{"spans_lost": 0, "file_systems": [{{"fsync": {fsync}, {rest}}}]}}"#)
        };
        let text = fs(r#""what_if": null, "what_if_refused": "no commit""#);
        assert_eq!(refused(&text), "no commit");
        let text =
            fs(r#""what_if": {"stock_error_share": 0, "luc": null}, "what_if_refused": null"#);
        assert_eq!(refused(&text), "no word of what LUC would give");
    }
}
