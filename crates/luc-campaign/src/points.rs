//! The points of a campaign: each combination of factors that is measured, any number of times.

use std::collections::BTreeMap;

use crate::arms::{self, Arm};
use crate::cell::{Cell, NamedArm};
use crate::file::{Block, Campaign, Value, Where};
use crate::places;

/// One combination of the factors of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point<'a> {
    pub block: &'a str,
    /// Every factor and every value that follows from them.
    pub values: BTreeMap<String, String>,
    /// The cell of its first repeat, without what the repeat decides.
    template: Cell,
    seed: u64,
}

impl Point<'_> {
    /// Where its cells are measured.
    pub fn place(&self) -> &str {
        &self.template.place
    }

    /// The cell of a repeat, from 1.
    pub fn cell(&self, repeat: u32) -> Cell {
        let seed = self.seed + u64::from(repeat) - 1;
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
    products.retain(|product| !block.skip.iter().any(|skip| fits(product, skip)));
    products
        .into_iter()
        .map(|values| point(campaign, block, values))
        .collect()
}

fn point<'a>(
    campaign: &Campaign,
    block: &'a Block,
    mut values: BTreeMap<String, String>,
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
                .or(factor.default)?;
            Some((factor.name.to_owned(), value.to_owned()))
        })
        .collect();
    let named = block.arms.iter().map(|name| {
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
        seed: campaign.seed,
    };
    Point {
        block: block.name.get_ref(),
        values,
        template,
        seed: campaign.seed,
    }
}

/// An arm of the campaign, or one that is built in.
pub fn arm<'a>(campaign: &'a Campaign, name: &str) -> Option<&'a Arm> {
    campaign
        .arms
        .get(name)
        .or_else(|| arms::builtin().get(name))
}

/// Names in braces that a text asks for, with where they begin.
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

fn expanded(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut out = text.to_owned();
    for (_, name) in names_in(text) {
        if let Some(value) = values.get(name) {
            out = out.replace(&format!("{{{name}}}"), value);
        }
    }
    out
}
