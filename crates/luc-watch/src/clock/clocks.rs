//! The clocks to try: each is a text for the same file of every policy.

use luc_host::System;
use luc_host::cpufreq::{self, Policy};
use luc_host::settings::value;

/// The setting that is stepped down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The highest clock that a governor may choose.
    HighestClock,
    /// The processor's own balance between speed and energy.
    EnergyPreference,
}

impl Setting {
    /// The file of a policy that holds it.
    pub fn file(self) -> &'static str {
        match self {
            Self::HighestClock => "scaling_max_freq",
            Self::EnergyPreference => "energy_performance_preference",
        }
    }
}

/// Files that decide about the clock, too. Nobody may change them during a comparison.
const OTHERS: [&str; 2] = ["scaling_governor", "scaling_min_freq"];
/// The same for all policies.
const SWITCHES: [&str; 2] = [
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/cpufreq/boost",
];
/// Energy preferences of the kernel, the fastest first.
const PREFERENCES: [&str; 4] = [
    "performance",
    "balance_performance",
    "balance_power",
    "power",
];
/// Number of steps over the range of a driver that lists no clocks.
const STEPS: u64 = 8;

/// A text for the file of each policy.
pub type Clock = Vec<String>;

#[derive(Clone, Debug, PartialEq)]
pub struct Clocks {
    pub setting: Setting,
    /// One file per policy.
    pub files: Vec<String>,
    /// The texts found there: no clock is ever raised.
    pub highest: Clock,
    /// Lower clocks, the highest first; at least one.
    pub lower: Vec<Clock>,
    /// Other files and their texts, which must stay.
    pub others: Vec<(String, String)>,
}

impl Clocks {
    /// Returns the policies that have the setting.
    ///
    /// # Errors
    /// This machine has none, in one line.
    pub fn policies(system: &dyn System, setting: Setting) -> Result<Vec<Policy>, String> {
        let mut policies = cpufreq::policies(system);
        policies.retain(|policy| system.exists(&policy.file(setting.file())));
        if policies.is_empty() {
            return Err(format!(
                "this machine offers no {} in {}, so its clock cannot be limited; in a virtual \
                 machine or a container only the host can do so",
                setting.file(),
                cpufreq::DIR
            ));
        }
        Ok(policies)
    }

    /// Reads the clocks that this machine offers, down to `min_khz` on its fastest processors.
    ///
    /// # Errors
    /// It offers none, in one line.
    pub fn read(
        system: &dyn System,
        setting: Setting,
        min_khz: Option<u64>,
    ) -> Result<Self, String> {
        let policies = Self::policies(system, setting)?;
        let lower = match setting {
            Setting::HighestClock => frequencies(system, &policies, min_khz)?,
            Setting::EnergyPreference => preferences(system, &policies)?,
        };
        let files: Vec<String> = policies.iter().map(|it| it.file(setting.file())).collect();
        let other = match setting {
            Setting::HighestClock => Setting::EnergyPreference,
            Setting::EnergyPreference => Setting::HighestClock,
        };
        let of_policies = policies.iter().flat_map(|policy| {
            let names = OTHERS.into_iter().chain([other.file()]);
            names.map(|name| policy.file(name))
        });
        let others = of_policies.chain(SWITCHES.map(str::to_owned));
        let others = others.filter(|file| system.exists(file));
        Ok(Self {
            setting,
            highest: files.iter().map(|file| value(system, file)).collect(),
            others: others
                .map(|file| {
                    let text = value(system, &file);
                    (file, text)
                })
                .collect(),
            files,
            lower,
        })
    }

    /// A clock in words: `2400 MHz`, or `2400/1200 MHz` if policies differ.
    pub fn shown(&self, clock: &Clock) -> String {
        let mut texts: Vec<String> = Vec::new();
        for text in clock {
            let text = match (self.setting, text.parse::<u64>()) {
                (Setting::HighestClock, Ok(khz)) => (khz / 1000).to_string(),
                _ => text.clone(),
            };
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let unit = match self.setting {
            Setting::HighestClock => " MHz",
            Setting::EnergyPreference => "",
        };
        texts.join("/") + unit
    }
}

/// The range of a policy's clock.
#[expect(clippy::struct_field_names, reason = "names end in units")]
struct Range {
    top_khz: u64,
    min_khz: u64,
    /// Clocks that the driver lists, ascending; empty if it takes any.
    listed_khz: Vec<u64>,
}

impl Range {
    fn read(system: &dyn System, policy: &Policy) -> Result<Self, String> {
        let khz = |name: &str| {
            let number = policy.khz(system, name);
            number.ok_or_else(|| format!("{} holds no number of kHz", policy.file(name)))
        };
        Ok(Self {
            top_khz: khz("scaling_max_freq")?,
            min_khz: khz("scaling_min_freq")?,
            listed_khz: policy.listed_khz(system).into_iter().collect(),
        })
    }

    /// Clocks below the highest, in descending order.
    fn lower_khz(&self) -> Vec<u64> {
        let mut all: Vec<u64> = if self.listed_khz.is_empty() {
            let range_khz = self.top_khz.saturating_sub(self.min_khz);
            let steps = 1..=STEPS;
            steps
                .map(|n| self.top_khz - range_khz * n / STEPS)
                .collect()
        } else {
            self.listed_khz.iter().rev().copied().collect()
        };
        all.retain(|khz| (self.min_khz..self.top_khz).contains(khz));
        all
    }

    /// The lowest clock that is at least this share of the highest.
    fn at_share(&self, share: f64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a clock in kHz"
        )]
        let khz = (self.top_khz as f64 * share).round() as u64;
        let khz = khz.max(self.min_khz);
        let listed = self.listed_khz.iter().find(|listed| **listed >= khz);
        let listed = listed.copied().unwrap_or(khz);
        listed.min(self.top_khz)
    }
}

fn frequencies(
    system: &dyn System,
    policies: &[Policy],
    min_khz: Option<u64>,
) -> Result<Vec<Clock>, String> {
    let ranges = policies.iter().map(|policy| Range::read(system, policy));
    let ranges: Vec<Range> = ranges.collect::<Result<_, _>>()?;
    let Some(lead) = ranges.iter().max_by_key(|range| range.top_khz) else {
        return Ok(Vec::new());
    };
    let mut clocks_khz = lead.lower_khz();
    clocks_khz.retain(|khz| min_khz.is_none_or(|min_khz| *khz >= min_khz));
    if clocks_khz.is_empty() {
        return Err(format!(
            "no clock to try from {} up to below {} kHz",
            min_khz.unwrap_or(0).max(lead.min_khz),
            lead.top_khz
        ));
    }
    let of_all = |khz: u64| {
        let share = khz as f64 / lead.top_khz as f64;
        let each = ranges.iter().map(|range| range.at_share(share).to_string());
        each.collect()
    };
    Ok(clocks_khz.into_iter().map(of_all).collect())
}

fn preferences(system: &dyn System, policies: &[Policy]) -> Result<Vec<Clock>, String> {
    let file = Setting::EnergyPreference.file();
    let rank = |text: &str| PREFERENCES.iter().position(|known| *known == text);
    let mut lower = PREFERENCES.to_vec();
    for policy in policies {
        let now = policy.text(system, file);
        let Some(now) = rank(&now) else {
            return Err(format!(
                "{} is {now:?}, which is none of {}; set one of them first",
                policy.file(file),
                PREFERENCES.join(", ")
            ));
        };
        let offered = policy.text(system, "energy_performance_available_preferences");
        lower.retain(|text| {
            let offered = offered.split_whitespace().any(|word| word == *text);
            offered && rank(text) > Some(now)
        });
    }
    if lower.is_empty() {
        return Err("no energy preference saves more than the one in use".into());
    }
    let of_all = |text: &str| vec![text.to_owned(); policies.len()];
    Ok(lower.into_iter().map(of_all).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use luc_host::Machine;

    use super::*;

    /// A machine with policies, each of these files.
    fn machine(policies: &[&[(&str, &str)]]) -> (tempfile::TempDir, Machine) {
        let tree = tempfile::tempdir().unwrap();
        for (number, files) in policies.iter().enumerate() {
            let dir = tree
                .path()
                .join(format!("{}/policy{number}", &cpufreq::DIR[1..]));
            fs::create_dir_all(&dir).unwrap();
            for (name, text) in *files {
                fs::write(dir.join(name), format!("{text}\n")).unwrap();
            }
        }
        let machine = Machine::new(tree.path());
        (tree, machine)
    }

    const BIG: &[(&str, &str)] = &[
        ("scaling_max_freq", "2400000"),
        ("scaling_min_freq", "600000"),
        ("scaling_governor", "schedutil"),
        (
            "scaling_available_frequencies",
            "600000 1200000 1800000 2400000 3000000",
        ),
    ];
    const LITTLE: &[(&str, &str)] = &[
        ("scaling_max_freq", "1600000"),
        ("scaling_min_freq", "500000"),
    ];

    fn shown(clocks: &Clocks) -> Vec<String> {
        clocks
            .lower
            .iter()
            .map(|clock| clocks.shown(clock))
            .collect()
    }

    #[test]
    fn policies_are_stepped_to_the_same_share_of_their_own_clock() {
        let (_tree, big) = machine(&[BIG]);
        let clocks = Clocks::read(&big, Setting::HighestClock, None).unwrap();
        assert_eq!(shown(&clocks), ["1800 MHz", "1200 MHz", "600 MHz"]);
        assert_eq!(clocks.highest, ["2400000"]);
        assert_eq!(clocks.others.len(), 2, "{:?}", clocks.others);
        let (_tree, both) = machine(&[LITTLE, BIG]);
        let clocks = Clocks::read(&both, Setting::HighestClock, Some(700_000)).unwrap();
        assert_eq!(shown(&clocks), ["1200/1800 MHz", "800/1200 MHz"]);
        // A little policy does not go below its own lowest clock.
        let clocks = Clocks::read(&both, Setting::HighestClock, None).unwrap();
        assert_eq!(clocks.lower[2], ["500000", "600000"]);
    }

    #[test]
    fn a_driver_without_a_list_gets_eighths_of_its_range() {
        let (_tree, little) = machine(&[LITTLE]);
        let clocks = Clocks::read(&little, Setting::HighestClock, None).unwrap();
        assert_eq!(clocks.lower.len(), 8);
        assert_eq!(
            (&clocks.lower[0][0], &clocks.lower[7][0]),
            (&"1462500".to_owned(), &"500000".to_owned())
        );
    }

    #[test]
    fn preferences_are_those_that_save_more() {
        let policy: &[(&str, &str)] = &[
            ("energy_performance_preference", "balance_performance"),
            (
                "energy_performance_available_preferences",
                "default performance balance_performance balance_power power",
            ),
            ("scaling_max_freq", "1"),
        ];
        let (tree, machine) = machine(&[policy, policy]);
        let clocks = Clocks::read(&machine, Setting::EnergyPreference, None).unwrap();
        assert_eq!(shown(&clocks), ["balance_power", "power"]);
        let file = tree.path().join(&clocks.files[0][1..]);
        fs::write(&file, "power\n").unwrap();
        let why = Clocks::read(&machine, Setting::EnergyPreference, None).unwrap_err();
        assert!(why.contains("no energy preference saves more"), "{why}");
        fs::write(&file, "128\n").unwrap();
        let why = Clocks::read(&machine, Setting::EnergyPreference, None).unwrap_err();
        assert!(
            why.contains("is \"128\", which is none of performance"),
            "{why}"
        );
    }

    #[test]
    fn a_machine_without_clocks_says_so() {
        let (_tree, none) = machine(&[]);
        let why = Clocks::read(&none, Setting::HighestClock, None).unwrap_err();
        assert!(why.contains("offers no scaling_max_freq"), "{why}");
        let (_tree, big) = machine(&[BIG]);
        let why = Clocks::read(&big, Setting::EnergyPreference, None).unwrap_err();
        assert!(
            why.contains("offers no energy_performance_preference"),
            "{why}"
        );
        let why = Clocks::read(&big, Setting::HighestClock, Some(2_400_000)).unwrap_err();
        assert_eq!(why, "no clock to try from 2400000 up to below 2400000 kHz");
    }
}
