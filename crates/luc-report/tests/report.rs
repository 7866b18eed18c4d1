//! Planning, keeping and rendering, with a lab that answers from a formula.

mod formula;

use std::collections::BTreeMap;
use std::path::Path;

use clap::Parser;
use luc_report::error::{ReportError, Result};
use luc_report::lab::{Lab, record};
use luc_report::load::{Job, Load, Measurement, Mode};
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

fn tidy(outcome: &Outcome) -> String {
    text::render(&outcome.document, false)
}

#[test]
fn the_demonstration_reads_well() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = demo_args(dir.path(), "");
    let outcome = luc_report::demo(&args, &formula(0.0), &Quiet).expect("rendered");
    insta::assert_snapshot!("demo", tidy(&outcome));
    let verdict = tidy(&outcome);
    let last = verdict
        .trim_end()
        .rsplit("\n\n")
        .next()
        .expect("has a last paragraph");
    assert!(last.starts_with("With LUC switched on, "), "{last}");
}

#[test]
fn the_figures_table_reads_well() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = matrix_args(
        dir.path(),
        "--kernels 6.12,7.2 --smp 1 --policies static,pid --repeats 2 \
         --only create-fsync,write-delay,burst,write-burst,overhead,cost",
    );
    let outcome = luc_report::matrix(&args, &formula(0.0), &Quiet).expect("rendered");
    insta::assert_snapshot!("matrix", tidy(&outcome));
    assert!(outcome.reached > 0 && outcome.missed == 0);
}

#[test]
fn the_workloads_table_reads_well() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = matrix_args(
        dir.path(),
        "--kernels 6.12 --smp 1 --only workloads --policies kernel-batching,nofsync,nojc --repeats 1",
    );
    let outcome = luc_report::matrix(&args, &formula(0.0), &Quiet).expect("rendered");
    insta::assert_snapshot!("workloads", tidy(&outcome));
    // Eleven rows on each of five disks, two figures each, and the best of varmail and oltp.
    assert_eq!((outcome.reached, outcome.missed), (112, 0));
}

#[test]
fn the_model_stands_beside_what_was_measured() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "--kernels 6.12 --smp 1 --only model --repeats 1";
    let args = matrix_args(dir.path(), words);
    let outcome = luc_report::matrix(&args, &formula(0.0), &Quiet).expect("rendered");
    insta::assert_snapshot!("model", tidy(&outcome));
    // Seven loads on three disks, two figures each; of writers too much is foretold.
    assert_eq!((outcome.reached, outcome.missed), (39, 3));
    // With cells of other parts beside them both show what they show alone.
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = matrix_args(
        dir.path(),
        "--kernels 6.12 --smp 1 --only model,write-delay --repeats 1",
    );
    let both = luc_report::matrix(&args, &formula(0.0), &Quiet).expect("rendered");
    let sections = |outcome: &Outcome| outcome.document.sections.clone();
    assert_eq!(sections(&both).last(), sections(&outcome).last());
    assert_eq!((both.reached, both.missed), (41, 3));
}

#[test]
fn real_disks_stand_beside_flat_ones() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "--kernels 6.12 --smp 1 --only disks,write-delay --repeats 1";
    let args = matrix_args(dir.path(), words);
    let outcome = luc_report::matrix(&args, &formula(0.0), &Quiet).expect("rendered");
    insta::assert_snapshot!("disks", tidy(&outcome));
    // Seven disks, two figures each, and two figures of write-delay.
    assert_eq!((outcome.reached, outcome.missed), (16, 0));
}

#[test]
fn many_processors_are_measured_only_if_asked_for() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let all = luc_report::matrix::plan(&matrix_args(dir.path(), "--kernels 6.12"));
    assert!(all.iter().all(|job| job.virtual_time));
    let args = matrix_args(dir.path(), "--kernels 6.12 --only scaling --repeats 2");
    let plan = luc_report::matrix::plan(&args);
    assert!(plan.len() == 1 && !plan[0].virtual_time && plan[0].vcpus == 8);
    let outcome = luc_report::matrix(&args, &formula(0.0), &Quiet).expect("rendered");
    let [section] = outcome.document.sections.as_slice() else {
        panic!("one section");
    };
    let rows = section.table.groups.iter().flatten();
    let rows: Vec<String> = rows
        .map(|row| {
            let texts: Vec<_> = row.iter().map(|cell| cell.text.as_str()).collect();
            texts.join("|")
        })
        .collect();
    assert_eq!(rows.len(), 4);
    assert!(rows[2].starts_with("6.12, 8 CPUs|4|"), "{}", rows[2]);
    assert!(rows[2].ends_with("|0.50|1.00|0.98"), "{}", rows[2]);
}

#[test]
fn the_best_cell_is_judged_once_and_only_where_there_is_one() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "--kernels 6.12 --smp 1 --only workloads --repeats 1";
    let args = matrix_args(dir.path(), words);
    // 1.26 less two hundredths is 1.235: enough for varmail, not for oltp.
    let outcome = luc_report::matrix(&args, &formula(-2.0), &Quiet).expect("rendered");
    assert_eq!((outcome.reached, outcome.missed), (111, 1));
    let mut records = outcome.records.clone();
    let file = |load: &Load| matches!(load, Load::Varmail { .. } | Load::Oltp { .. });
    records.records.retain(|record| !file(&record.cell.load));
    let (document, tally) = luc_report::matrix::document(&records);
    assert_eq!((tally.reached, tally.missed), (50, 0));
    assert!(!text::render(&document, false).contains("best varmail  "));
}

#[test]
fn more_processors_have_rows_of_their_own() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "--kernels 6.12 --smp 4,1 --only create-fsync,overhead,tracing --repeats 1";
    let args = matrix_args(dir.path(), words);
    let outcome = luc_report::matrix(&args, &formula(0.0), &Quiet).expect("rendered");
    let sections = &outcome.document.sections;
    let rows = |section: &luc_report::document::Section, host: &str| {
        let rows = section.table.groups.iter().flatten();
        rows.filter(|row| row[0].text == host).count()
    };
    for section in sections {
        assert!(rows(section, "6.12") > 0, "{}", section.title);
        let expected = if section.title == "create-fsync" {
            16
        } else {
            0
        };
        assert_eq!(rows(section, "6.12, 4 CPUs"), expected, "{}", section.title);
    }
    // Without one processor asked for, only what needs one has it.
    let words = "--kernels 6.12 --smp 4 --only create-fsync,tracing --repeats 1";
    let jobs = luc_report::matrix::plan(&matrix_args(dir.path(), words));
    let loops = |vcpus: u32| {
        let jobs = jobs.iter().filter(|job| job.vcpus == vcpus);
        jobs.flat_map(|job| &job.cells)
            .filter(|cell| cell.mode == Mode::Luc)
            .count()
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
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = matrix_args(
        dir.path(),
        "--kernels 6.12 --smp 1 --only create-fsync --repeats 1",
    );
    let outcome = luc_report::matrix(&args, &formula(-10.0), &Quiet).expect("rendered");
    // 1.96 less a tenth is 1.76: all single-thread figures, with their p99, and those above 1.76 are missed.
    assert_eq!((outcome.reached, outcome.missed), (21, 11));
    let report = tidy(&outcome);
    assert!(report.contains("MISSED"));
    assert!(
        report.ends_with("21 of 32 figures were reached; missed: 11.\n"),
        "{report}"
    );
}

#[test]
fn the_page_needs_nothing_else() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = demo_args(dir.path(), "--jobs 1");
    let outcome = luc_report::demo(&args, &formula(0.0), &Quiet).expect("rendered");
    let page = std::fs::read_to_string(&outcome.html).expect("written");
    assert_eq!(page, html::render(&outcome.document).expect("renders"));
    for external in ["http-equiv", "<script", "<link", "<img", "url(", "@import"] {
        assert!(!page.contains(external), "{external}");
    }
    // The only address is the name of the SVG language.
    let addresses = page.matches("://").count();
    assert_eq!(
        addresses,
        page.matches("http://www.w3.org/2000/svg").count()
    );
    // Two of bursts of fsyncs, one of writes, and the policies on two disks.
    assert_eq!(page.matches("<svg").count(), 5);
    // No colour of a drawing is fixed.
    let drawings = page
        .split("<svg")
        .skip(1)
        .map(|part| part.split("</svg>").next().expect("closed"));
    for drawing in drawings {
        assert!(
            !drawing.contains("fill=\"#") && !drawing.contains("stroke=\"#"),
            "{drawing}"
        );
    }
    for tag in ["section", "table", "tbody", "figure", "svg"] {
        let opened =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn kept_results_render_the_same_again() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let first =
        luc_report::demo(&demo_args(dir.path(), "-j 7"), &formula(0.0), &Quiet).expect("rendered");
    let again = demo_args(dir.path(), "--from-results");
    let second = luc_report::demo(&again, &Refusing, &Quiet).expect("rendered without measuring");
    assert_eq!(first.document, second.document);
    assert_eq!(first.records, second.records);
    // However many machines ran, the order is the plan's.
    let other = tempfile::tempdir().expect("temporary directory");
    let third = luc_report::demo(&demo_args(other.path(), "-j 1"), &formula(0.0), &Quiet)
        .expect("rendered");
    assert_eq!(first.records.records, third.records.records);
}

/// Where `what` begins in a page.
fn at(page: &str, what: &str) -> usize {
    page.find(what).unwrap_or_else(|| panic!("no {what}"))
}

#[test]
fn the_page_begins_with_what_it_came_to() {
    let page = |outcome: &Outcome| html::render(&outcome.document).expect("renders");
    let dir = tempfile::tempdir().expect("temporary directory");
    let demo = luc_report::demo(&demo_args(dir.path(), ""), &formula(0.0), &Quiet);
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "--kernels 6.12 --smp 1 --only workloads --repeats 1";
    let matrix = luc_report::matrix(&matrix_args(dir.path(), words), &formula(0.0), &Quiet);
    for outcome in [demo.expect("rendered"), matrix.expect("rendered")] {
        let page = page(&outcome);
        let lead = &outcome.document.lead;
        assert_eq!(lead.len(), 3, "{lead:?}");
        for sentence in lead {
            assert!(
                sentence.ends_with('.') && sentence.len() < 140,
                "{sentence}"
            );
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
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = demo_args(dir.path(), "--jobs 1");
    let mut outcome = luc_report::demo(&args, &formula(0.0), &Quiet).expect("rendered");
    let foot = |outcome: &Outcome| {
        let page = html::render(&outcome.document).expect("renders");
        page[at(&page, "<footer>")..].to_owned()
    };
    let origin = outcome.records.origin.take().expect("kept");
    let said = foot(&outcome);
    for part in ["LUC 0.1.0", &origin.date, &origin.command] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.contains(origin.host.split(' ').next().expect("a name")));
    // Results of before have no origin, and their page says so.
    outcome.document.foot = outcome.records.foot();
    assert!(foot(&outcome).contains("were not kept"));
}

/// A phone shows each row by itself: the deciding figure first, each other one with its name.
#[test]
fn rows_can_stand_alone() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let args = demo_args(dir.path(), "--jobs 1");
    let outcome = luc_report::demo(&args, &formula(0.0), &Quiet).expect("rendered");
    let page = html::render(&outcome.document).expect("renders");
    let rows = page
        .split("<tr>")
        .skip(1)
        .filter(|row| row.starts_with("<td"));
    let mut count = 0;
    for row in rows {
        count += 1;
        assert_eq!(row.matches("decides").count(), 1, "{row}");
        assert_eq!(
            row.matches("<td").count(),
            row.matches("data-name=").count()
        );
    }
    assert!(count > 40, "{count}");
}

#[test]
fn policies_have_their_plot() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let demo = luc_report::demo(&demo_args(dir.path(), ""), &formula(0.0), &Quiet);
    let dir = tempfile::tempdir().expect("temporary directory");
    let words = "--kernels 6.12 --smp 1 --only create-fsync --policies pid --repeats 1";
    let matrix = luc_report::matrix(&matrix_args(dir.path(), words), &formula(0.0), &Quiet);
    for (outcome, title) in [(demo, "under every policy"), (matrix, "under the other")] {
        let sections = outcome.expect("rendered").document.sections;
        let section = sections.iter().find(|one| one.title.contains(title));
        let charts = &section.expect("measured").page_charts;
        assert!(charts.len() >= 2, "{charts:?}");
        for chart in charts {
            let mut lines = chart.lines.iter();
            let luc = lines.find(|line| line.name == "LUC").expect("a line");
            // The formula doubles what LUC gives.
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
    let text = tidy(&outcome);
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
    luc_report::demo(&demo_args(dir.path(), ""), &formula(0.0), &Quiet).expect("rendered");
    let other = luc_report::render_matrix(dir.path()).expect_err("a demonstration");
    assert!(other.to_string().contains("luc-matrix"), "{other}");
}

#[test]
fn holes_in_the_results_are_dashes() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let outcome =
        luc_report::demo(&demo_args(dir.path(), ""), &formula(0.0), &Quiet).expect("rendered");
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
    let mut no_json = good.clone();
    no_json.steps[1].stdout = "luc: cannot".to_owned();
    let mut short = good.clone();
    short.steps.pop();
    let modelled = Measurement {
        mode: Mode::Modelled,
        ..cell.clone()
    };
    let mut no_model = lab.cell(job, &modelled);
    no_model.steps[1].stdout = "{}".to_owned();
    record(job, &modelled, &no_model, "x").expect_err("no model");
    let mut counter = good.clone();
    counter.steps[2].stdout = "commits many\n".to_owned();
    for bad in [no_json, short, counter] {
        let line = record(job, cell, &bad, "x")
            .expect_err("damaged")
            .to_string();
        assert!(
            line.contains(&cell.name()) && !line.contains('\n'),
            "{line}"
        );
    }
}

#[test]
fn plans_are_sound() {
    let demo = luc_report::demo::plan(&demo_args(Path::new("out"), ""));
    let all = "--policies static,pid,copyout,kernel-batching,nofsync,nojc --kernels 6.1,6.12,7.2";
    let matrix = luc_report::matrix::plan(&matrix_args(Path::new("out"), all));
    for jobs in [&demo, &matrix] {
        for job in jobs {
            let mut names: Vec<String> = job.cells.iter().map(Measurement::name).collect();
            // The first cell is stock: nothing has touched the machine before it.
            assert_eq!(job.cells[0].mode, Mode::Stock);
            names.sort();
            let count = names.len();
            names.dedup();
            assert_eq!(names.len(), count, "a name twice in {}", job.kernel);
            for cell in &job.cells {
                let disk = cell.disk_specs().expect("disks").remove(0);
                let journal = disk.fs_type == luc_lab::FsType::Ext4;
                assert_eq!(journal, cell.mode != Mode::Nojc, "{}", cell.name());
                let batching = disk.mount_opts.contains("max_batch_time");
                assert_eq!(batching, cell.mode == Mode::KernelBatching);
                // Whatever else is asked for, the guest understands it.
                asked(cell);
                // What is compared with stock has its stock in the same boot.
                let stock = |other: &Measurement| {
                    other.mode == Mode::Stock
                        && (&other.load, &other.disk, other.repeat)
                            == (&cell.load, &cell.disk, cell.repeat)
                };
                assert!(job.cells.iter().any(stock), "{}", cell.name());
            }
        }
    }
    let none =
        luc_report::matrix::plan(&matrix_args(Path::new("out"), "--kernels 6.1 --only burst"));
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
