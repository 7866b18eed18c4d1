//! README shows charts of campaigns, and lines of the report of `make demo`, rendered again here
//! from the kept results. README may leave lines out, but adds none.

use std::fs;
use std::path::Path;

use luc_campaign::show::Shown;
use luc_campaign::store::Results;
use luc_campaign::{Store, campaigns};
use luc_report::show::svg;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// Campaigns with a picture in README. `docs/NAME-results.jsonl` keeps the cells of the run that
/// README shows, one per line; `docs/NAME-light.svg` and `docs/NAME-dark.svg` are its first chart.
const PICTURES: [&str; 2] = ["demo", "power"];
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

/// The kept results of a campaign.
fn kept(name: &str) -> Results {
    let dir = tempfile::tempdir().expect("temporary directory");
    let store = Store::open(dir.path()).expect("a folder");
    let path = Path::new(ROOT).join(format!("docs/{name}-results.jsonl"));
    let kept = fs::read_to_string(path).expect("results are kept");
    for (number, line) in kept.lines().enumerate() {
        let name = format!("cells/{number}.json");
        store.write(&name, line.as_bytes()).expect("written");
    }
    let results = store.read().expect("readable");
    assert!(results.damaged.is_empty(), "{:?}", results.damaged);
    results
}

#[test]
fn readme_shows_what_the_demo_printed() {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).expect("README");
    let shown = block(&readme);
    assert!(shown.len() > 20, "{shown:?}");
    let (campaign, results) = (campaigns::load("demo").expect("sound"), kept("demo"));
    let report = Shown::new(&campaign, &results, None).document().0;
    let printed = luc_report::text::render(&report, false);
    assert_eq!(first_other(&shown, &printed), None, "{printed}");
}

/// README's pictures are charts of the kept results. With `LUC_RENEW=1` they are drawn anew.
#[test]
fn readme_shows_what_the_campaigns_drew() {
    let readme = fs::read_to_string(Path::new(ROOT).join("README.md")).expect("README");
    for name in PICTURES {
        let (campaign, results) = (campaigns::load(name).expect("sound"), kept(name));
        let charts = Shown::new(&campaign, &results, None).plots();
        let chart = charts.first().expect("a chart");
        for (colour, colours) in [("light", svg::LIGHT), ("dark", svg::DARK)] {
            let picture = format!("docs/{name}-{colour}.svg");
            assert!(readme.contains(&picture), "README lacks {picture}");
            let path = Path::new(ROOT).join(&picture);
            let drawn = svg::file(chart, colours) + "\n";
            if std::env::var_os("LUC_RENEW").is_some() {
                fs::write(&path, &drawn).expect("written");
            }
            let kept = fs::read_to_string(&path).expect("a picture");
            assert!(kept == drawn, "{picture} is of other results");
        }
    }
}

#[test]
fn another_figure_is_found() {
    let shown = ["a 1", "b 2"];
    assert_eq!(first_other(&shown, "a 1\nleft out\nb 2\n"), None);
    assert_eq!(first_other(&shown, "a 1\nb 3\n"), Some("b 2"));
    assert_eq!(first_other(&shown, "b 2\na 1\n"), Some("b 2"));
}
