//! Runs one command in a lab guest: `lab run --kernel K --disk D [--mips M] -- CMD`.

use luc_lab::{Cell, DiskSpec, Progress, RunSpec, Step};

struct Show;
impl Progress for Show {
    fn stage(&mut self, text: &str) {
        eprintln!("[{text}]");
    }
    fn note(&mut self, text: &str) {
        eprintln!("note: {text}");
    }
    fn guest(&mut self, done: u32, total: u32, text: &str) {
        eprintln!("[{done}/{total} {text}]");
    }
}

fn main() {
    if luc_lab::guest::is_guest_init() {
        luc_lab::guest::init_main();
    }
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some("build") {
        let (kernel, root) = (args.next().unwrap(), args.next().unwrap());
        let list = luc_lab::KernelList::builtin().unwrap();
        match luc_lab::build_module(&list, &kernel, root.as_ref(), &mut Show) {
            Ok(path) => println!("{}", path.display()),
            Err(error) => {
                eprintln!("error: {error}");
                std::process::exit(1);
            }
        }
        return;
    }
    let mut cell = Cell {
        name: "c".into(),
        ..Cell::default()
    };
    let mut spec = RunSpec::new("6.12", Vec::new()).unwrap();
    while let Some(arg) = args.next() {
        let mut value = || args.next().expect("value");
        match arg.as_str() {
            "--kernel" => spec.kernel = value(),
            "--disk" => cell.disks.push(
                value()
                    .parse::<DiskSpec>()
                    .unwrap_or_else(|e| panic!("{e}")),
            ),
            "--mips" => spec.cpu_mips = value().parse().unwrap(),
            "--module" => spec.luc_module = Some(value().into()),
            "--load" => spec.luc_module_load = Some(value()),
            "--out" => spec.out_dir = Some(value().into()),
            "--cmdline" => spec.kernel_cmdline_extra = value(),
            "--bin" => spec.binary = Some(value().into()),
            "--real" => {
                spec.virtual_time = false;
                spec.vcpus = value().parse().unwrap();
            }
            "--" => break,
            other => panic!("{other}?"),
        }
    }
    cell.steps = vec![Step::new(args)];
    spec.cells = vec![cell];
    match luc_lab::run(&spec, &mut Show) {
        Err(error) => {
            eprintln!("error: {error}");
            std::process::exit(1);
        }
        Ok(result) => {
            for step in result.report.cells.iter().flat_map(|c| &c.steps) {
                print!("{}", step.stdout);
                eprint!("{}", step.stderr);
                eprintln!("-- {:?} {} ns", step.status, step.end_ns - step.begin_ns);
            }
            for failure in result.failures() {
                eprintln!("FAIL {failure}");
            }
            eprintln!(
                "kernel {} clock {} host {:?} boot {:?} ready {} ns",
                result.report.kernel_release,
                result.report.clocksource,
                result.host_time,
                result.boot_host_time,
                result.report.ready_ns
            );
        }
    }
}
