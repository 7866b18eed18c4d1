//! Planning, keeping and rendering, with a lab that answers from a formula.

mod formula;

use std::collections::BTreeMap;
use std::path::Path;

use clap::Parser;
use luc_report::error::{ReportError, Result};
use luc_report::measure::lab::{Lab, record};
use luc_report::plan::arm::Arm;
use luc_report::plan::load::{Job, Load, Measurement};
use luc_report::show::document::{Chart, Section};
use luc_report::{DemoArgs, MatrixArgs, Outcome, Progress, Quiet, Record, html, text};

use formula::{Formula, asked};

#[derive(Parser)]
struct Demo {
    #[command(flatten)]
    args: DemoArgs,
}

#[derive(Parser)]
struct Matrix {
    #[command(flatten)]
    args: MatrixArgs,
}

fn demo_args(out: &Path, words: &str) -> DemoArgs {
    let out = out.to_str().expect("UTF-8 path");
    let argv = ["demo", "--out", out]
        .into_iter()
        .chain(words.split_whitespace());
    Demo::try_parse_from(argv).expect("valid arguments").args
}

fn matrix_args(out: &Path, words: &str) -> MatrixArgs {
    let out = out.to_str().expect("UTF-8 path");
    let argv = ["matrix", "--out", out]
        .into_iter()
        .chain(words.split_whitespace());
    Matrix::try_parse_from(argv).expect("valid arguments").args
}

fn formula(gain: f64) -> Formula {
    Formula {
        gain,
        ..Formula::default()
    }
}

/// A demonstration, its text, and the directory that holds it.
fn demo(words: &str) -> (Outcome, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = demo_args(dir.path(), words);
    let outcome = luc_report::demo(&args, &formula(0.0), &Quiet).expect("rendered");
    (outcome, dir)
}

/// The figures table on kernel 6.12 with one processor, unless the words name others.
fn matrix(gain: f64, words: &str) -> Outcome {
    let dir = tempfile::tempdir().expect("temporary directory");
    let mut all = words.to_owned();
    for (option, value) in [("--kernels", "6.12"), ("--smp", "1"), ("--repeats", "1")] {
        if !words.contains(option) {
            all.extend([" ", option, " ", value]);
        }
    }
    let args = matrix_args(dir.path(), &all);
    luc_report::matrix(&args, &formula(gain), &Quiet).expect("rendered")
}

fn plan(words: &str) -> Vec<Job> {
    luc_report::matrix::plan(&matrix_args(Path::new("out"), words))
}

fn plain(outcome: &Outcome) -> String {
    text::render(&outcome.document, false)
}

fn page(outcome: &Outcome) -> String {
    html::render(&outcome.document).expect("renders")
}

fn counts(outcome: &Outcome) -> (usize, usize) {
    (outcome.reached, outcome.missed)
}

#[test]
fn the_demonstration_reads_well() {
    let text = plain(&demo("").0);
    insta::assert_snapshot!("demo", text);
    let last = text.trim_end().rsplit("\n\n").next();
    let last = last.expect("has a last paragraph");
    assert!(last.starts_with("With LUC switched on, "), "{last}");
}

/// Each table, with how many of its figures are reached and missed.
#[test]
fn the_tables_read_well() {
    for (name, words, expected) in [
        (
            "matrix",
            "--kernels 6.12,7.2 --policies static,pid --repeats 2 \
             --only create-fsync,write-delay,burst,write-burst,overhead,cost",
            (151, 0),
        ),
        // Eleven rows on each of five disks, two figures each, and the best of varmail and oltp;
        // iozone has too few syncs for a p99.
        (
            "workloads",
            "--only workloads --policies kernel-batching,nofsync,nojc",
            (107, 0),
        ),
        // Seven loads on three disks, two figures each; the formula predicts too much for writers.
        ("model", "--only model", (39, 3)),
        // Seven disks, two figures each, and two figures of write-delay.
        ("disks", "--only disks,write-delay", (16, 0)),
    ] {
        let outcome = matrix(0.0, words);
        insta::assert_snapshot!(name, plain(&outcome));
        assert_eq!(counts(&outcome), expected, "{name}");
    }
}

/// The model's cells and those of another part show the same together as alone.
#[test]
fn the_model_stands_apart_from_the_figures() {
    let alone = matrix(0.0, "--only model");
    let both = matrix(0.0, "--only model,write-delay");
    let last = |outcome: &Outcome| outcome.document.sections.last().cloned();
    assert_eq!(last(&both), last(&alone));
    assert_eq!(counts(&both), (41, 3));
}

#[test]
fn many_processors_are_measured_only_if_asked_for() {
    assert!(plan("--kernels 6.12").iter().all(|job| job.virtual_time));
    let words = "--kernels 6.12 --only scaling --repeats 2";
    let jobs = plan(words);
    assert!(jobs.len() == 1 && !jobs[0].virtual_time && jobs[0].vcpus == 8);
    let outcome = matrix(0.0, words);
    let [section] = outcome.document.sections.as_slice() else {
        panic!("one section");
    };
    let rows: Vec<_> = section.table.groups.iter().flatten().collect();
    assert_eq!(rows.len(), 4);
    let texts: Vec<_> = rows[2].iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!(texts[..2], ["6.12, 8 CPUs", "4"]);
    assert_eq!(texts[3..], ["0.50", "1.00", "0.98"]);
}

#[test]
fn the_best_cell_is_judged_once_and_only_where_there_is_one() {
    // 1.26 less two hundredths is 1.235: enough for varmail, not for oltp.
    let outcome = matrix(-2.0, "--only workloads");
    assert_eq!(counts(&outcome), (106, 1));
    let mut records = outcome.records.clone();
    let file = |load: &Load| matches!(load, Load::Varmail { .. } | Load::Oltp { .. });
    records.records.retain(|record| !file(&record.cell.load));
    let (document, tally) = luc_report::matrix::document(&records);
    assert_eq!((tally.reached, tally.missed), (45, 0));
    assert!(!text::render(&document, false).contains("best varmail  "));
}

#[test]
fn more_processors_have_rows_of_their_own() {
    let outcome = matrix(0.0, "--smp 4,1 --only create-fsync,overhead,tracing");
    let rows = |section: &Section, host: &str| {
        let rows = section.table.groups.iter().flatten();
        rows.filter(|row| row[0].text == host).count()
    };
    for section in &outcome.document.sections {
        assert!(rows(section, "6.12") > 0, "{}", section.title);
        let loops = section.title == "create-fsync";
        let expected = if loops { 16 } else { 0 };
        assert_eq!(rows(section, "6.12, 4 CPUs"), expected, "{}", section.title);
    }
    // Without one processor asked for, only the parts that need one have it.
    let jobs = plan("--kernels 6.12 --smp 4 --only create-fsync,tracing --repeats 1");
    let loops = |vcpus: u32| {
        let jobs = jobs.iter().filter(|job| job.vcpus == vcpus);
        let cells = jobs.flat_map(|job| &job.cells);
        cells.filter(|cell| cell.arm == Arm::Luc).count()
    };
    assert_eq!((loops(1), loops(4)), (0, 16));
}

#[test]
fn unknown_policies_are_refused_with_their_names() {
    let words = ["matrix", "--policies", "static,fast"];
    let Err(refused) = Matrix::try_parse_from(words) else {
        panic!("accepted");
    };
    let text = refused.to_string();
    assert!(text.contains("kernel-batching, nofsync, nojc"), "{text}");
}

#[test]
fn missed_figures_are_counted_and_named() {
    let outcome = matrix(-10.0, "--only create-fsync");
    // 1.96 less a tenth is 1.76: all single-thread figures, with their p99, and those above 1.76 are missed.
    assert_eq!(counts(&outcome), (21, 11));
    let report = plain(&outcome);
    assert!(report.contains("MISSED"));
    assert!(
        report.ends_with("21 of 32 figures were reached; missed: 11.\n"),
        "{report}"
    );
}

#[test]
fn the_page_needs_nothing_else() {
    let (outcome, _dir) = demo("--jobs 1");
    let page = std::fs::read_to_string(&outcome.html).expect("written");
    assert_eq!(page, self::page(&outcome));
    let count = |what: &str| page.matches(what).count();
    for external in ["http-equiv", "<script", "<link", "<img", "url(", "@import"] {
        assert_eq!(count(external), 0, "{external}");
    }
    // The only address is the name of the SVG language.
    assert_eq!(count("://"), count("http://www.w3.org/2000/svg"));
    // Two of bursts of fsyncs, one of writes, and the policies on two disks.
    assert_eq!(count("<svg"), 5);
    // No colour of a drawing is fixed.
    for part in page.split("<svg").skip(1) {
        let drawing = part.split("</svg>").next().expect("closed");
        let fixed = drawing.contains("fill=\"#") || drawing.contains("stroke=\"#");
        assert!(!fixed, "{drawing}");
    }
    for tag in ["section", "table", "tbody", "figure", "svg"] {
        let opened = count(&format!("<{tag}>")) + count(&format!("<{tag} "));
        assert_eq!(opened, count(&format!("</{tag}>")), "{tag}");
    }
}

#[test]
fn kept_results_render_the_same_again() {
    let (first, dir) = demo("-j 7");
    let again = demo_args(dir.path(), "--from-results");
    let second = luc_report::demo(&again, &Refusing, &Quiet).expect("rendered without measuring");
    assert_eq!(first.document, second.document);
    assert_eq!(first.records, second.records);
    // However many machines ran, the order is the plan's.
    let (third, _dir) = demo("-j 1");
    assert_eq!(first.records.records, third.records.records);
}

/// Position of a text in a page.
fn at(page: &str, what: &str) -> usize {
    page.find(what).unwrap_or_else(|| panic!("no {what}"))
}

#[test]
fn the_page_begins_with_what_it_came_to() {
    for outcome in [demo("").0, matrix(0.0, "--only workloads")] {
        let page = page(&outcome);
        let lead = &outcome.document.lead;
        assert_eq!(lead.len(), 3, "{lead:?}");
        for sentence in lead {
            let short = sentence.ends_with('.') && sentence.len() < 140;
            assert!(short, "{sentence}");
        }
        // Sentences, one chart, and only then how it was measured.
        let top = &page[at(&page, "</h1>")..at(&page, "<section>")];
        assert_eq!(top.matches("class=\"verdict\"").count(), 3, "{top}");
        assert_eq!(top.matches("<svg").count(), 1, "{top}");
        assert!(at(top, "class=\"verdict\"") < at(top, "<svg"), "{top}");
        assert!(at(top, "<svg") < at(top, "class=\"note\""), "{top}");
    }
}

#[test]
fn the_page_ends_with_where_it_is_from() {
    let (mut outcome, _dir) = demo("--jobs 1");
    let foot = |outcome: &Outcome| {
        let page = page(outcome);
        page[at(&page, "<footer>")..].to_owned()
    };
    let origin = outcome.records.origin.take().expect("kept");
    let said = foot(&outcome);
    let host = origin.host.split(' ').next().expect("a name");
    for part in ["LUC 0.1.0", &origin.date, &origin.command, host] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // Results of earlier versions have no origin, and their page says so.
    outcome.document.foot = outcome.records.foot();
    assert!(foot(&outcome).contains("were not kept"));
}

/// A phone shows each row by itself: the deciding figure first, each other one with its name.
#[test]
fn rows_can_stand_alone() {
    let page = page(&demo("--jobs 1").0);
    let rows = page.split("<tr>").skip(1);
    let rows: Vec<_> = rows.filter(|row| row.starts_with("<td")).collect();
    for row in &rows {
        let count = |what: &str| row.matches(what).count();
        assert_eq!(count("decides"), 1, "{row}");
        assert_eq!(count("<td"), count("data-name="));
    }
    assert!(rows.len() > 40, "{}", rows.len());
}

#[test]
fn policies_have_their_plot() {
    let matrix = matrix(0.0, "--only create-fsync --policies pid");
    for (outcome, title) in [
        (demo("").0, "under every policy"),
        (matrix, "under the other"),
    ] {
        let mut sections = outcome.document.sections.iter();
        let section = sections.find(|one| one.title.contains(title));
        let charts: &[Chart] = &section.expect("measured").page_charts;
        assert!(charts.len() >= 2, "{charts:?}");
        for chart in charts {
            let mut lines = chart.lines.iter();
            let luc = lines.find(|line| line.name == "LUC").expect("a line");
            // The formula doubles the rate under LUC.
            assert!(luc.y.iter().flatten().all(|ratio| *ratio > 0.9), "{luc:?}");
            assert_eq!(luc.y.iter().flatten().count(), chart.x.len());
        }
    }
}

/// A lab that must not be asked.
struct Refusing;

impl Lab for Refusing {
    fn measure(&self, job: &Job, _: &mut dyn luc_lab::Progress) -> Result<Vec<Record>> {
        Err(ReportError::Failed {
            kernel: job.kernel.clone(),
            cpu_mips: job.cpu_mips,
            first: "cell x: \"luc on\" Exited(9)".to_owned(),
            more: 2,
            log: None,
        })
    }
}

#[test]
fn a_failed_cell_fails_the_report_and_leaves_none() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let out = dir.path().join("new");
    let error = luc_report::demo(&demo_args(&out, ""), &Refusing, &Quiet).expect_err("refused");
    let line = error.to_string();
    assert!(
        line.ends_with("(and 2 more problems)") && !line.contains('\n'),
        "{line}"
    );
    assert!(!out.exists());
}

/// Measures on disks of 4 ms and fails on any other.
struct Slow(Formula);

impl Lab for Slow {
    fn measure(&self, job: &Job, progress: &mut dyn luc_lab::Progress) -> Result<Vec<Record>> {
        if job.cells.iter().all(|cell| cell.disk.starts_with("4ms")) {
            self.0.measure(job, progress)
        } else {
            Refusing.measure(job, progress)
        }
    }
}

#[test]
fn what_was_measured_before_a_failure_is_kept() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "--kernels 6.12 --smp 1 --only workloads --repeats 1 -j 1";
    let args = matrix_args(dir.path(), words);
    luc_report::matrix(&args, &Slow(formula(0.0)), &Quiet).expect_err("1 ms is refused");
    let outcome = luc_report::render_matrix(dir.path()).expect("two disks were measured");
    let text = plain(&outcome);
    assert!(text.contains("4ms:32  varmail"), "{text}");
    assert!(!text.contains("1ms:64"), "{text}");
}

#[test]
fn results_of_another_kind_are_refused() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let missing = luc_report::render_demo(dir.path()).expect_err("nothing there");
    assert!(missing.to_string().contains("results.json"), "{missing}");
    std::fs::write(dir.path().join("results.json"), "{}").expect("writable");
    let damaged = luc_report::render_demo(dir.path()).expect_err("not results");
    assert!(damaged.to_string().contains("measure again"), "{damaged}");
    let (_, dir) = demo("");
    let other = luc_report::render_matrix(dir.path()).expect_err("a demonstration");
    assert!(other.to_string().contains("luc-matrix"), "{other}");
}

#[test]
fn holes_in_the_results_are_dashes() {
    let (outcome, _dir) = demo("");
    for keep_every in [2, 3, 50, 1000] {
        let mut records = outcome.records.clone();
        let mut index = 0;
        records.records.retain(|_| {
            index += 1;
            index % keep_every == 0
        });
        for record in &mut records.records {
            record.report.journal = None;
            record.report.fsyncs_per_commit = None;
            record.counters = BTreeMap::new();
        }
        let document = luc_report::demo::document(&records);
        assert!(text::render(&document, true).contains(" - "));
        html::render(&document).expect("renders");
    }
}

#[test]
fn damaged_answers_name_the_cell() {
    let job = &luc_report::demo::plan(&demo_args(Path::new("out"), ""))[0];
    let cell = &job.cells[1];
    let lab = formula(0.0);
    let good = lab.cell(job, cell);
    record(job, cell, &good, "x").expect("good");
    let modelled = Measurement {
        arm: Arm::Modelled,
        ..cell.clone()
    };
    let mut no_model = lab.cell(job, &modelled);
    no_model.steps[1].stdout = "{}".to_owned();
    record(job, &modelled, &no_model, "x").expect_err("no model");
    let mut short = good.clone();
    short.steps.pop();
    let mut bad = vec![short];
    for (step, answer) in [(1, "luc: cannot"), (2, "commits many\n")] {
        let mut other = good.clone();
        other.steps[step].stdout = answer.to_owned();
        bad.push(other);
    }
    for bad in bad {
        let error = record(job, cell, &bad, "x").expect_err("damaged");
        let line = error.to_string();
        let named = line.contains(&cell.name()) && !line.contains('\n');
        assert!(named, "{line}");
    }
}

#[test]
fn plans_are_sound() {
    let demo = luc_report::demo::plan(&demo_args(Path::new("out"), ""));
    let all = "--policies static,pid,copyout,kernel-batching,nofsync,nojc --kernels 6.1,6.12,7.2";
    let matrix = plan(all);
    for jobs in [&demo, &matrix] {
        for job in jobs {
            let mut names: Vec<String> = job.cells.iter().map(Measurement::name).collect();
            // The first cell is stock: nothing has touched the machine before it.
            assert_eq!(job.cells[0].arm, Arm::Stock);
            names.sort();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "a name twice in {}", job.kernel);
            for cell in &job.cells {
                let disk = cell.disk_specs().expect("disks").remove(0);
                let journal = disk.fs_type == luc_lab::FsType::Ext4;
                assert_eq!(journal, cell.arm != Arm::Nojc, "{}", cell.name());
                let batching = disk.mount_opts.contains("max_batch_time");
                assert_eq!(batching, cell.arm == Arm::KernelBatching);
                // Whatever else is asked for, the guest understands it.
                asked(cell);
                // A cell has the cell of stock in the same boot.
                let stock = |other: &Measurement| {
                    other.arm == Arm::Stock
                        && (&other.load, &other.disk, other.repeat)
                            == (&cell.load, &cell.disk, cell.repeat)
                };
                assert!(job.cells.iter().any(stock), "{}", cell.name());
            }
        }
    }
    let none = plan("--kernels 6.1 --only burst");
    assert!(none.is_empty(), "bursts are asked of 6.12 only");
}

#[test]
fn progress_reaches_the_end() {
    struct Last(std::sync::Mutex<(usize, usize)>);
    impl Progress for Last {
        fn step(&self, done: usize, total: usize, now: &str) {
            assert!(done <= total && now.contains("MIPS"));
            let mut last = self.0.lock().expect("not poisoned");
            *last = (last.0.max(done), total);
        }
    }
    let dir = tempfile::tempdir().expect("temporary directory");
    let last = Last(std::sync::Mutex::default());
    luc_report::demo(&demo_args(dir.path(), "-j 3"), &formula(0.0), &last).expect("rendered");
    let (done, total) = *last.0.lock().expect("not poisoned");
    assert!(total > 0 && done == total, "{done} of {total}");
}
