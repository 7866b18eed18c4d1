//! README shows output of `make demo`: a chart and lines of the report, rendered again here from
//! the kept results. README may leave lines out, but adds none.

use std::fs;
use std::path::Path;

use luc_campaign::show::Shown;
use luc_campaign::{Store, campaigns};
use luc_report::show::document::Document;
use luc_report::show::svg;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The cells in `out/demo/cells` of the run that README shows, one per line.
const RESULTS: &str = "docs/demo-results.jsonl";
/// Start of the paragraph above the block.
const ABOVE: &str = "This is what the demo prints";

/// The indented lines below the paragraph, without their indent.
fn block(readme: &str) -> Vec<&str> {
    let lines = readme.lines().skip_while(|line| !line.starts_with(ABOVE));
    let lines = lines.skip_while(|line| !line.starts_with("    "));
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    let shown = lines.map(|line| line.strip_prefix("    ").unwrap_or(line));
    shown.filter(|line| !line.is_empty()).collect()
}

/// The first line that does not follow the lines before it in the text.
fn first_other<'a>(shown: &[&'a str], text: &str) -> Option<&'a str> {
    let mut rest = text.lines().map(str::trim_end);
    let mut shown = shown.iter();
    shown
        .find(|line| !rest.any(|it| it == line.trim_end()))
        .copied()
}

/// The report of the kept results.
fn report() -> Document {
    let dir = tempfile::tempdir().expect("temporary directory");
    let store = Store::open(dir.path()).expect("a folder");
    let kept = fs::read_to_string(Path::new(ROOT).join(RESULTS)).expect("results are kept");
    for (number, line) in kept.lines().enumerate() {
        let name = format!("cells/{number}.json");
        store.write(&name, line.as_bytes()).expect("written");
    }
    let results = store.read().expect("readable");
    assert!(results.damaged.is_empty(), "{:?}", results.damaged);
    let campaign = campaigns::load("demo").expect("sound");
    Shown::new(&campaign, &results, None).document().0
}

#[test]
fn readme_shows_what_the_demo_printed() {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).expect("README");
    let shown = block(&readme);
    assert!(shown.len() > 20, "{shown:?}");
    let printed = luc_report::text::render(&report(), false);
    assert_eq!(first_other(&shown, &printed), None, "{printed}");
}

/// README's picture is the report's first chart. With `LUC_RENEW=1` it is drawn anew.
#[test]
fn readme_shows_what_the_demo_drew() {
    let report = report();
    let chart = report.sections[0].all_charts().next().expect("a chart");
    for (name, colours) in [("light", svg::LIGHT), ("dark", svg::DARK)] {
        let path = Path::new(ROOT).join(format!("docs/demo-{name}.svg"));
        let drawn = svg::file(chart, colours) + "\n";
        if std::env::var_os("LUC_RENEW").is_some() {
            fs::write(&path, &drawn).expect("written");
        }
        let kept = fs::read_to_string(&path).expect("a picture");
        assert!(kept == drawn, "{} is of other results", path.display());
    }
}

#[test]
fn another_figure_is_found() {
    let shown = ["a 1", "b 2"];
    assert_eq!(first_other(&shown, "a 1\nleft out\nb 2\n"), None);
    assert_eq!(first_other(&shown, "a 1\nb 3\n"), Some("b 2"));
    assert_eq!(first_other(&shown, "b 2\na 1\n"), Some("b 2"));
}
