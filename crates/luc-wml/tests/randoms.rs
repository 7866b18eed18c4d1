//! Random variables of both families.

mod common;

use common::plan;
use luc_wml::plan::{Distribution, Random, RandomId, RandomSource, TableRow, Value};

#[test]
fn randvars() {
    let plan = plan(
        "set $min=1k
         set $a=randvar(type=uniform,min=$min,mean=3k,round=512,randsrc=urandom)
         define randvar name=$b,mean=16k,seed=7
         set $c=randvar(type=gamma,gamma=100)
         define randvar name=$d, type=tabular, min=1k, round=1k, randtable =
           {{85, 8k,  8k},
            {15, 8k, 64k}
           }
         define fileset name=s,path=/d,entries=1,size=$d
         create files",
    );
    let randvar = |index: usize| match &plan.randoms[index].distribution {
        Distribution::Uniform(randvar)
        | Distribution::Gamma { randvar, .. }
        | Distribution::Table { randvar, .. } => randvar.clone(),
        other => panic!("no randvar: {other:?}"),
    };
    let names: Vec<_> = plan.randoms.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    let a = randvar(0);
    assert_eq!((a.min, a.mean, a.round), (1024.0, 3072.0, 512.0));
    assert_eq!(a.source, RandomSource::Run);
    // By default a randvar is a gamma distribution of shape 1.5.
    let Distribution::Gamma { shape, .. } = plan.randoms[1].distribution else {
        panic!("gamma: {:?}", plan.randoms[1]);
    };
    assert_eq!((shape, randvar(1).mean), (1.5, 16384.0));
    assert_eq!(randvar(1).source, RandomSource::Rand48 { seed: 7 });
    // Without a mean, its mean is its shape.
    assert_eq!((randvar(2).mean, randvar(2).min), (0.1, 0.0));
    let Distribution::Table { rows, randvar } = &plan.randoms[3].distribution else {
        panic!("table: {:?}", plan.randoms[3]);
    };
    assert_eq!((randvar.mean, randvar.round), (0.0, 1024.0));
    let row = |percent, min, max| TableRow { percent, min, max };
    assert_eq!(*rows, [row(85, 8192, 8192), row(15, 8192, 65536)]);
    assert_eq!(plan.filesets[0].size, Value::Random(RandomId(3)));
}

#[test]
fn cvars_of_every_type() {
    let free = "bounds: Bounds { round: 0.0, min: 2.2250738585072014e-308, \
                max: 1.7976931348623157e308 } }";
    for (parameters, expected) in [
        (
            "gamma,parameters=mean:16384;gamma:1.5",
            "CvarGamma { mean: 16384.0, shape: 1.5, FREE",
        ),
        ("gamma", "CvarGamma { mean: 4096.0, shape: 1.5, FREE"),
        (
            "uniform,parameters=lower:4096;upper:8192,round=1k,min=5k,max=7k",
            "CvarUniform { lower: 4096.0, upper: 8192.0, \
             bounds: Bounds { round: 1024.0, min: 5120.0, max: 7168.0 } }",
        ),
        (
            "normal,parameters=\"mean:10; sigma:2\"",
            "CvarNormal { mean: 10.0, sigma: 2.0, FREE",
        ),
        (
            "erlang,parameters=shape:3;rate:0.5",
            "CvarErlang { shape: 3, mean: 0.5, FREE",
        ),
        (
            "triangular,parameters=lower:1;mode:2;upper:3",
            "CvarTriangular { lower: 1.0, upper: 3.0, mode: 2.0, FREE",
        ),
        ("lognormal", "CvarLognormal { shape: 1.0, scale: 1.0, FREE"),
        ("exponential", "CvarExponential { mean: 1.0, FREE"),
        ("weibull", "CvarWeibull { shape: 1.0, scale: 1.0, FREE"),
    ] {
        let plan = plan(&format!(
            "set $x=cvar(type=cvar-{parameters})\n\
             define fileset name=s,path=/d,entries=1,size=$x\ncreate files"
        ));
        let Random {
            kind, distribution, ..
        } = &plan.randoms[0];
        assert_eq!(format!("{distribution:?}"), expected.replace("FREE", free));
        let (type_name, _) = parameters.split_once(',').unwrap_or((parameters, ""));
        assert_eq!(*kind, format!("cvar-{type_name}"));
    }
}
