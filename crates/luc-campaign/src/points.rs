//! The points of a campaign: each combination of factors that is measured, any number of times.

use std::collections::{BTreeMap, BTreeSet};

use crate::arms::{self, Arm};
use crate::cell::{Cell, NamedArm, draw};
use crate::file::{Block, Campaign, Half, Value, Where};
use crate::places;

/// One combination of the factors of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point<'a> {
    pub block: &'a str,
    /// Every factor and every value that follows from them.
    pub values: BTreeMap<String, String>,
    /// The cell of its first repeat, with `{seed}` not yet replaced.
    template: Cell,
    seeds: Seeds,
}

/// Where the seeds of a point's repeats come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seeds {
    /// Counted up from the campaign's seed.
    From(u64),
    /// Drawn from the point's lot, with the lot's parity.
    Drawn(u64),
}

impl Seeds {
    fn seed(self, repeat: u32) -> u64 {
        match self {
            Self::From(seed) => seed + u64::from(repeat) - 1,
            Self::Drawn(lot) => {
                let wide = draw(lot, &["seed", &repeat.to_string()]) >> SEED_SPARE_BITS;
                wide & !1 | lot & 1
            }
        }
    }
}

/// A seed keeps 48 bits, so that it is exact in every reader of JSON.
const SEED_SPARE_BITS: u32 = 16;

impl Point<'_> {
    /// Where its cells are measured.
    pub fn place(&self) -> &str {
        &self.template.place
    }

    /// The cell of a repeat, counted from 1.
    pub fn cell(&self, repeat: u32) -> Cell {
        let seed = self.seeds.seed(repeat);
        let bench = self.template.bench.replace("{seed}", &seed.to_string());
        Cell {
            bench,
            repeat,
            seed,
            ..self.template.clone()
        }
    }

    /// Whether every named factor has one of its values here.
    pub fn fits(&self, conditions: &Where) -> bool {
        fits(&self.values, conditions)
    }

    pub fn value(&self, factor: &str) -> &str {
        self.values.get(factor).map_or("", String::as_str)
    }
}

fn fits(values: &BTreeMap<String, String>, conditions: &Where) -> bool {
    conditions.iter().all(|(name, wanted)| {
        let value = values.get(name);
        wanted
            .all()
            .iter()
            .any(|Value(wanted)| value == Some(wanted))
    })
}

/// Stands for the arm in [`Block::skip`].
pub const ARM: &str = "arm";

/// All points of a campaign, in the order of its text.
pub fn all(campaign: &Campaign) -> Vec<Point<'_>> {
    campaign
        .blocks
        .iter()
        .flat_map(|block| of_block(campaign, block))
        .collect()
}

/// The points of one block.
pub fn of_block<'a>(campaign: &Campaign, block: &'a Block) -> Vec<Point<'a>> {
    let mut products = vec![BTreeMap::new()];
    for (name, values) in &block.factors {
        products = products
            .iter()
            .flat_map(|product: &BTreeMap<String, String>| {
                values.all().iter().map(|Value(value)| {
                    let mut product = product.clone();
                    product.insert(name.get_ref().clone(), value.clone());
                    product
                })
            })
            .collect();
    }
    products.retain(|product| !block.skips().any(|skip| fits(product, skip)));
    match block.draw {
        None => products
            .into_iter()
            .map(|values| point(campaign, block, values, Seeds::From(campaign.seed)))
            .collect(),
        Some(most) => drawn(campaign, products, most)
            .into_iter()
            .map(|(lot, values)| point(campaign, block, values, Seeds::Drawn(lot)))
            .collect(),
    }
}

/// The points with the lowest lots. A lot depends on the campaign's seed and the point alone, so
/// neither the order of the factors nor the other points change it, and a larger draw contains
/// every smaller one. The lot's last bit tells the half and is used for nothing else.
fn drawn(
    campaign: &Campaign,
    products: Vec<BTreeMap<String, String>>,
    most: u32,
) -> Vec<(u64, BTreeMap<String, String>)> {
    let lot = |product: &BTreeMap<String, String>| {
        let texts = product.iter().flat_map(|(name, value)| [name, value]);
        let texts: Vec<&str> = texts.map(String::as_str).collect();
        draw(campaign.seed, &texts)
    };
    let mut lots: Vec<u64> = products.iter().map(lot).collect();
    let with_lots: Vec<_> = lots.iter().copied().zip(products).collect();
    lots.sort_unstable();
    let last = lots.get(most as usize).copied();
    let is_drawn = |lot: u64| last.is_none_or(|last| lot < last);
    with_lots
        .into_iter()
        .filter(|(lot, _)| is_drawn(*lot) && campaign.half.is_none_or(|half| half.has(*lot)))
        .collect()
}

impl Half {
    fn has(self, lot: u64) -> bool {
        (self == Self::Even) == (lot & 1 == 0)
    }
}

fn point<'a>(
    campaign: &Campaign,
    block: &'a Block,
    mut values: BTreeMap<String, String>,
    seeds: Seeds,
) -> Point<'a> {
    let factors = values.clone();
    for setting in block
        .set
        .iter()
        .filter(|setting| fits(&factors, &setting.fits))
    {
        for (name, Value(value)) in &setting.values {
            values.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    let place = places::find(&block.place);
    let own = place.map_or(&[] as &[_], |place| place.factors());
    let machine = own
        .iter()
        .filter_map(|factor| {
            let value = values
                .get(factor.name)
                .map(String::as_str)
                .or(factor.default)
                .filter(|value| *value != places::NONE)?;
            Some((factor.name.to_owned(), expanded(value, &values)))
        })
        .collect();
    let is_here = |name: &&toml::Spanned<String>| {
        let mut with_arm = factors.clone();
        with_arm.insert(ARM.to_owned(), name.get_ref().clone());
        !block.skips().any(|skip| fits(&with_arm, skip))
    };
    let named = block.arms.iter().filter(is_here).map(|name| {
        let mut arm = arm(campaign, name.get_ref())
            .map(Arm::deciding)
            .unwrap_or_default();
        let on = arm.on.as_mut();
        let texts = [&mut arm.around, &mut arm.after, &mut arm.bench];
        for text in texts.into_iter().chain(on) {
            *text = expanded(text, &values);
        }
        NamedArm {
            name: name.get_ref().clone(),
            arm,
        }
    });
    let template = Cell {
        place: block.place.clone(),
        machine,
        bench: expanded(block.bench.get_ref(), &values),
        arms: named.collect(),
        repeat: 1,
        seed: seeds.seed(1),
    };
    Point {
        block: block.name.get_ref(),
        values,
        template,
        seeds,
    }
}

/// Finds an arm of the campaign, or else a built-in one.
pub fn arm<'a>(campaign: &'a Campaign, name: &str) -> Option<&'a Arm> {
    campaign
        .arms
        .get(name)
        .or_else(|| arms::builtin().get(name))
}

/// Names in braces in a text, with their offsets.
pub(crate) fn names_in(text: &str) -> Vec<(usize, &str)> {
    let mut names = Vec::new();
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        let Some(length) = text[open..].find('}') else {
            break;
        };
        names.push((open, &text[open + 1..open + length]));
        from = open + length + 1;
    }
    names
}

/// How deep values may name other values.
const NESTED_MAX: usize = 8;

/// Replaces names in a text by their values; a value may name others in turn.
pub(crate) fn expanded(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = text.to_owned();
    for _ in 0..NESTED_MAX {
        let before = out.clone();
        for (_, name) in names_in(&before) {
            if let Some(value) = values.get(name) {
                out = out.replace(&format!("{{{name}}}"), value);
            }
        }
        if out == before {
            break;
        }
    }
    out
}

/// Names that the texts refer to, directly or through the values of those names.
pub(crate) fn names_asked<'a>(
    block: &'a Block,
    texts: impl Iterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let mut asked = BTreeSet::new();
    let mut open: Vec<&str> = texts.collect();
    while let Some(text) = open.pop() {
        for (_, name) in names_in(text) {
            if asked.insert(name) {
                open.extend(values_of(block, name));
            }
        }
    }
    asked
}

/// Every value that a block gives to a name somewhere.
pub(crate) fn values_of<'a>(block: &'a Block, name: &str) -> impl Iterator<Item = &'a str> {
    let factor = block.factors.iter().find(|(own, _)| own.get_ref() == name);
    let of_factor = factor.map_or(&[] as &[_], |(_, values)| values.all());
    let of_sets = block
        .set
        .iter()
        .filter_map(move |setting| setting.values.get(name));
    of_factor
        .iter()
        .chain(of_sets)
        .map(|value| value.0.as_str())
}
