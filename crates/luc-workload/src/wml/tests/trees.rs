//! The trees of the stock personalities, drawn as Filebench draws them, without writing them.

use std::collections::BTreeMap;
use std::sync::Arc;

use luc_wml::plan::Plan;

use super::super::draw::{Draws, gamma};
use super::super::fileset::{LiveFileset, PathBuffer};
use super::super::park::Park;
use super::super::prepare::lay_out;
use super::super::random::Generator;
use super::plan;

fn stock(name: &str) -> Arc<Plan> {
    plan(luc_wml::builtin(name).expect("comes with luc"))
}

/// Draws all filesets; returns them in the order of the file.
fn all(plan: &Arc<Plan>, generator: Generator) -> Vec<LiveFileset<Park>> {
    let mut draws = Draws::new(generator, plan, 0);
    lay_out(plan, &mut draws, |_, _, _| Ok(())).expect("lays out")
}

#[test]
fn points_8_and_10_prepared_totals_are_those_of_filebench() {
    for (name, files, total_mib, preallocated) in [
        ("webserver", 1000, "14.760", 1000),
        ("fileserver", 10_000, "1240.757", 7979),
        // Each file draws whether it exists, so these are not 800.
        ("varmail", 1000, "14.959", 805),
    ] {
        let plan = stock(name);
        let set = &all(&plan, Generator::filebench(0))[0];
        let mib = format!("{:.3}", set.tree.bytes() as f64 / f64::from(1 << 20));
        let found = (set.tree.files.len(), mib.as_str(), set.preallocated);
        assert_eq!(found, (files, total_mib, preallocated), "{name}");
    }
}

#[test]
fn point_9_depths_and_widths_are_drawn_per_directory() {
    let plan = stock("fileserver");
    let sets = all(&plan, Generator::filebench(0));
    let tree = &sets[0].tree;
    assert!((tree.mean_depth - 10_000_f64.ln() / 20_f64.ln()).abs() < 1e-12);
    let mut files_of = BTreeMap::<u32, u32>::new();
    for file in &tree.files {
        *files_of.entry(file.parent).or_default() += 1;
    }
    assert!(
        !files_of.contains_key(&0),
        "the root holds only directories"
    );
    // Depth of each directory; the root has depth 1.
    let mut depths: Vec<u32> = Vec::new();
    for dir in &tree.dirs {
        depths.push(dir.parent.map_or(1, |parent| depths[parent as usize] + 1));
    }
    let mut of_depth = BTreeMap::<u32, u32>::new();
    for depth in &depths {
        *of_depth.entry(*depth).or_default() += 1;
    }
    let of_depth: Vec<_> = of_depth.into_iter().collect();
    assert_eq!(tree.dirs.len(), 527);
    assert_eq!(of_depth, GOLDEN_DEPTHS);
    let mut widths: Vec<u32> = files_of.values().copied().collect();
    widths.sort_unstable();
    let tenth = |n: usize| widths[widths.len() * n / 10];
    assert_eq!([tenth(1), tenth(5), tenth(9)], GOLDEN_WIDTHS);
}

/// Number of directories at each depth; the root has depth 1.
const GOLDEN_DEPTHS: [(u32, u32); 10] = [
    (1, 1),
    (2, 5),
    (3, 16),
    (4, 18),
    (5, 63),
    (6, 109),
    (7, 170),
    (8, 97),
    (9, 31),
    (10, 17),
];
/// Files per directory at the first, fifth and ninth decile.
const GOLDEN_WIDTHS: [u32; 3] = [4, 16, 41];

#[test]
fn point_9_names_have_eight_digits() {
    let plan = stock("webserver");
    let sets = all(&plan, Generator::filebench(0));
    let live = &sets[0];
    let mut buffer = PathBuffer::default();
    live.leaf_path(live.tree.files[0], &mut buffer);
    let first = buffer.get().to_str().expect("ASCII");
    let parts: Vec<_> = first.split('/').collect();
    assert_eq!(
        (parts[0], parts[parts.len() - 1]),
        (live.plan.name.as_str(), "00000001")
    );
    assert!(
        parts.len() >= 3 && parts[1..].iter().all(|part| part.len() == 8),
        "{first}"
    );
    assert_eq!(live.dir(0).to_str(), Ok(live.plan.name.as_str()));
}

#[test]
fn sizes_follow_their_distribution() {
    for generator in [Generator::own(7, 0), Generator::filebench(0)] {
        let plan = stock("fileserver");
        let sets = all(&plan, generator);
        let mut sizes: Vec<u64> = sets[0].tree.files.iter().map(|file| file.bytes).collect();
        sizes.sort_unstable();
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        // Gamma of shape 1.5 and mean 128 KiB: standard error 1.07 KiB, median 0.789 of the mean.
        assert!((mean / 131_072.0 - 1.0).abs() < 0.035, "{mean}");
        let median = sizes[sizes.len() / 2] as f64;
        assert!((median / 131_072.0 - 0.789).abs() < 0.04, "{median}");
    }
}

#[test]
fn gamma_has_its_mean_and_variance_for_all_shapes() {
    let mut generator = Generator::own(3, 0);
    for shape in [0.5, 1.0, 1.5, 4.0] {
        let values: Vec<f64> = (0..40_000)
            .map(|_| gamma(shape, 10.0, || generator.unit48()))
            .collect();
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        assert!(
            (mean / (shape * 10.0) - 1.0).abs() < 0.04,
            "shape {shape}: mean {mean}"
        );
        assert!(
            (variance / (shape * 100.0) - 1.0).abs() < 0.10,
            "shape {shape}: {variance}"
        );
    }
}

#[test]
fn odd_trees_end() {
    for (attributes, files) in [
        ("entries=50,size=1,dirwidth=1", 50),
        ("entries=50,size=1,dirwidth=2", 50),
        ("entries=50,size=1", 50),
        ("entries=1,size=1,dirwidth=20", 1),
        ("entries=0,leafdirs=30,dirwidth=3", 0),
    ] {
        let plan = plan(&format!(
            "define fileset name=set,path=/tmp,{attributes}\n\
             define process name=p {{ thread name=t {{ flowop listdir name=l,filesetname=set }} }}\n"
        ));
        for generator in [Generator::own(1, 0), Generator::filebench(0)] {
            let sets = all(&plan, generator);
            assert_eq!(sets[0].tree.files.len(), files, "{attributes}");
            let leaf_dirs = sets[0].tree.leaf_dirs.len();
            assert_eq!(leaf_dirs, if files == 0 { 30 } else { 0 }, "{attributes}");
        }
    }
}
