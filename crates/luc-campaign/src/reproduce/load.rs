//! Reads the built-in data: what the documents report, and the campaign that answers it.

use std::sync::LazyLock;

use super::check;
use super::published::Published;
use crate::campaigns;
use crate::error::{CampaignError, Result};
use crate::file::Campaign;

const BUILTIN: &str = include_str!("../../../../campaigns/published.toml");

impl Published {
    /// The built-in figures.
    pub fn builtin() -> &'static Self {
        static ALL: LazyLock<Published> = LazyLock::new(|| {
            Published::parse("campaigns/published.toml", BUILTIN, campaign())
                .expect("a test parses campaigns/published.toml")
        });
        &ALL
    }

    /// Reads the text; every name in it must exist in the campaign.
    ///
    /// # Errors
    /// The first mistake.
    pub fn parse(source_name: &str, text: &str, campaign: &Campaign) -> Result<Self> {
        let bad = |why: String| CampaignError::BadFile {
            source_name: source_name.to_owned(),
            why,
        };
        let all: Self = toml::from_str(text).map_err(|error| {
            let why: Vec<&str> = error.message().lines().collect();
            bad(why.join(" "))
        })?;
        check::all(&all, campaign).map_err(bad)?;
        Ok(all)
    }
}

/// The campaign that answers the claims.
pub fn campaign() -> &'static Campaign {
    static CAMPAIGN: LazyLock<Campaign> = LazyLock::new(|| {
        campaigns::load("reproduce").expect("a test parses campaigns/reproduce.toml")
    });
    &CAMPAIGN
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of published figures up to its first table of unknowns or figures.
    const HEAD: &str = r#"
question = ""
columns = ""
discussion = []
tolerance_share = 0.25
same_share = 0.05
[documents]
D = "d"
[quick]
repeats = 3
repeats_simulated = 3
[quick.where]
"#;

    #[test]
    fn what_comes_with_the_program_is_sound() {
        let all = Published::parse("published.toml", BUILTIN, campaign()).unwrap();
        assert!(all.figures.len() > 25);
        for figure in &all.figures {
            assert!(!figure.conditions.is_empty() && !figure.title.is_empty());
            assert!(figure.page.is_some_and(|page| page < 200), "{}", figure.id);
        }
    }

    /// Names in a claim must exist in the campaign.
    #[test]
    fn claims_about_nothing_are_refused() {
        let base = "[[figure]]\nid = \"D9.9\"\ntitle = \"t\"\nconditions = \"c\"\n[[figure.claim]]\nsays = \"s\"\nblock = \"bursts\"\nunit = \"times\"\npublished = 2\n";
        let of = |claim: &str| {
            let text = format!("{HEAD}{base}{claim}");
            let parsed = Published::parse("x.toml", &text, campaign());
            parsed.map(drop).map_err(|error| error.to_string())
        };
        let ratio = "of = { arm = \"luc\", to = \"stock\", measure = \"rate\" }\n";
        assert_eq!(of(ratio), Ok(()));
        for (claim, why) in [
            (ratio.replace("luc", "lcu"), "did you mean luc?"),
            (ratio.replace("rate", "rat"), "did you mean rate?"),
            (ratio.replace("to = \"stock\", ", ""), "the unit"),
            (
                format!("{ratio}where = {{ thread = 4 }}"),
                "did you mean threads?",
            ),
            (format!("{ratio}where = {{ threads = 5 }}"), "never 5"),
            (format!("{ratio}over = \"mips\""), "over belongs"),
            (
                format!("{ratio}take = \"rise-ends\"\nover = \"mips\""),
                "one arm",
            ),
            (format!("{ratio}beside = \"pit\""), "no arm of the block"),
            (format!("{ratio}side = \"same\""), "not allow a number"),
            (String::new(), "of or poles"),
            (format!("{ratio}cannot = \"gone\""), "exclude each other"),
            (
                format!("{ratio}nuisance = [\"past_us\"]"),
                "no factor past_us",
            ),
            (
                format!("{ratio}lab = {{ block = \"burst\" }}"),
                "lab: no block burst",
            ),
            (
                format!("{ratio}lab = {{ where = {{ threads = 5 }} }}"),
                "lab: threads is never 5",
            ),
            (
                format!("{ratio}explanation = \"rain\""),
                "no explanation rain",
            ),
        ] {
            let said = of(&claim).unwrap_err();
            assert!(said.contains(why) && !said.contains('\n'), "{said}");
        }
    }

    /// An explanation needs two experiments that the claim can be asked of.
    #[test]
    fn explanations_without_points_are_refused() {
        let base = "[[figure]]\nid = \"D9.9\"\ntitle = \"t\"\nconditions = \"c\"\n[[figure.claim]]\nsays = \"s\"\nblock = \"metarates-cores\"\nunit = \"times\"\npublished = 2\nof = { arm = \"luc\", to = \"stock\", measure = \"rate\" }\nnuisance = [\"ipc\"]\nexplanation = \"rain\"";
        let unknown = "[windows.ipc]\nsays = \"ipc\"\nfactor = \"mips\"\nvalues = { half = [800], one = [1600] }";
        let of = |on: &str, off: &str| {
            let rain = format!("[explanations.rain]\nsays = \"rain\"\non = {on}\noff = {off}");
            let text = format!("{HEAD}{unknown}\n{rain}\n{base}");
            let parsed = Published::parse("x.toml", &text, campaign());
            parsed.map(drop).map_err(|error| error.to_string())
        };
        let (half, one) = ("{ ipc = \"half\" }", "{ ipc = \"one\" }");
        assert_eq!(of(half, one), Ok(()));
        for (on, off, why) in [
            (half, half, "rain: on and off are the same"),
            ("{ ipc = \"two\" }", one, "rain, on: no factor ipc"),
            (half, "{ mips = 801 }", "rain, off: mips is never 801"),
            (half, "{ mips = [] }", "rain, off: no point matches"),
        ] {
            let said = of(on, off).unwrap_err();
            assert!(said.contains(why) && !said.contains('\n'), "{said}");
        }
    }

    /// Unknowns need values, and points for each of them.
    #[test]
    fn unknowns_without_values_are_refused() {
        let base = "[[figure]]\nid = \"D9.9\"\ntitle = \"t\"\nconditions = \"c\"\n[[figure.claim]]\nsays = \"s\"\nblock = \"metarates-cores\"\nunit = \"times\"\npublished = 2\nof = { arm = \"luc\", to = \"stock\", measure = \"rate\" }\nnuisance = [\"ipc\"]\n";
        let of = |windows: &str, claim: &str| {
            let text = format!("{HEAD}[windows.ipc]\nsays = \"ipc\"\n{windows}{base}{claim}");
            let parsed = Published::parse("x.toml", &text, campaign());
            parsed.map(drop).map_err(|error| error.to_string())
        };
        let both = "factor = \"mips\"\nvalues = { half = [800], one = [1600] }\n";
        assert_eq!(of(both, ""), Ok(()));
        for (windows, claim, why) in [
            (
                both.replace("mips", "mhz"),
                "",
                "windows, ipc: no block has a factor mhz",
            ),
            (
                both.replace("[800]", "[]"),
                "",
                "windows, ipc: no mips stands for half",
            ),
            (
                "factor = \"mips\"\nvalues = {}\n".to_owned(),
                "",
                "windows, ipc: no values",
            ),
            (
                both.replace("half = [800], ", ""),
                "",
                "nuisance ipc: needs at least two values",
            ),
            (
                both.replace("[800]", "[801]"),
                "",
                "ipc half: mips is never 801",
            ),
            (
                both.to_owned(),
                "where = { mips = 800 }\n",
                "nuisance ipc: where fixes mips",
            ),
            (
                both.to_owned(),
                "where = { procs = [] }\n",
                "ipc half: no point matches",
            ),
        ] {
            let said = of(&windows, claim).unwrap_err();
            assert!(said.contains(why) && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn figures_are_chosen_by_any_of_their_names() {
        let all = Published::builtin();
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let chosen = all.chosen(&names);
            chosen.map(|all| all.iter().map(|it| it.id.clone()).collect::<Vec<_>>())
        };
        assert_eq!(of(&["p7", "D5.8"]).unwrap(), ["D5.8", "D5.10"]);
        assert_eq!(of(&[]).unwrap().len(), all.figures.len());
        assert_eq!(
            of(&["D5.88"]).unwrap_err(),
            "no figure D5.88; did you mean D5.8?"
        );
    }
}
