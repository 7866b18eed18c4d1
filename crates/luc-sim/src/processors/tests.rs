//! Tests of processors and schedulers.

use proptest::prelude::*;

use super::*;
use crate::kernel::{self, KERNELS};

/// Creates processors that switch between tasks at no cost.
fn processors(cpus: u16, mips: f64, tasks: usize) -> Processors {
    processors_of(&KERNELS[0], cpus, mips, tasks)
}

fn processors_of(kernel: &Kernel, cpus: u16, mips: f64, tasks: usize) -> Processors {
    let machine = ProcessorModel {
        switch_instructions: 0,
        ..ProcessorModel::new(cpus, mips)
    };
    Processors::new(&machine, kernel, tasks)
}

fn end(cpu: CpuId, at_ns: u64) -> PieceEnd {
    PieceEnd { cpu, at_ns }
}

/// Returns the busy time of all processors together, ns.
fn busy_ns(cpus: &Processors) -> u64 {
    cpus.activity().map(ProcessorActivity::busy_ns).sum()
}

/// Wakes a task by an interrupt that costs nothing.
fn wake(cpus: &mut Processors, task: TaskId, work: u64, now_ns: u64) -> Option<PieceEnd> {
    cpus.wake(task, work, now_ns, 0, None)
}

#[test]
fn idle_processors_are_taken_and_work_takes_time() {
    let mut cpus = processors(2, 100.0, 3);
    // 100 MIPS: an instruction takes 10 ns. The first two have a processor each.
    assert_eq!(wake(&mut cpus, 0, 10, 5), Some(end(0, 5)));
    assert_eq!(wake(&mut cpus, 1, 20, 5), Some(end(1, 5)));
    assert_eq!(wake(&mut cpus, 2, 5, 5), None);
    assert_eq!(cpus.worked(0, 5), (Worked::More, Some(end(0, 105))));
    assert_eq!(cpus.worked(1, 5), (Worked::More, Some(end(1, 205))));
    assert_eq!(cpus.worked(0, 105), (Worked::Done(0), None));
    // The first task that leaves makes room for the third.
    assert_eq!(cpus.leave(0, 105), Some(end(0, 155)));
    assert_eq!(cpus.worked(0, 155), (Worked::Done(2), None));
    assert_eq!(cpus.leave(0, 155), None);
    assert_eq!(cpus.worked(1, 205), (Worked::Done(1), None));
    assert_eq!(busy_ns(&cpus), 100 + 200 + 50);
}

/// CFS credits a sleeper: the journal's thread, asleep while the others used the processor, goes
/// before all of them.
#[test]
fn a_thread_that_slept_goes_first() {
    for seed in 0..20 {
        let mut cpus =
            processors_of(kernel::named("3.4").unwrap(), 1, 1000.0, 9).with_past(seed, 1);
        for task in 0..9 {
            wake(&mut cpus, task, 1000, 0);
        }
        cpus.worked(0, 0);
        assert!(cpus.is_running(8), "seed {seed}");
    }
}

#[test]
fn a_processor_without_work_takes_some_from_another() {
    let mut cpus = processors(2, 1000.0, 4);
    for task in 0..4 {
        wake(&mut cpus, task, 1000, 0);
    }
    cpus.worked(0, 0);
    cpus.worked(1, 0);
    cpus.worked(0, 1000);
    cpus.worked(1, 1000);
    // Each processor takes one of the two waiting tasks; the first processor that is done takes the
    // next.
    assert_eq!(cpus.leave(0, 1000), Some(end(0, 2000)));
    assert_eq!(cpus.leave(1, 1000), Some(end(1, 2000)));
    wake(&mut cpus, 0, 1000, 1500);
    cpus.worked(1, 2000);
    assert_eq!(cpus.leave(1, 2000), Some(end(1, 3000)));
    assert_eq!(cpus.worked(1, 3000), (Worked::Done(0), None));
}

/// Under both schedulers, a bound task waits for its processor while another idles, and does not
/// keep that one from the tasks that may move.
#[test]
fn a_bound_task_runs_on_its_processor_alone() {
    for kernel in ["6.12", "6.1"] {
        let kernel = kernel::named(kernel).expect("a kernel");
        let mut cpus = processors_of(kernel, 3, 1000.0, 5).with_bound(4, Some(0));
        for task in [0, 1, 2] {
            wake(&mut cpus, task, 1000 * (1 + u64::from(task)), 0);
            cpus.worked(CpuId::try_from(task).expect("small"), 0);
        }
        wake(&mut cpus, 4, 1000, 0);
        wake(&mut cpus, 3, 1000, 0);
        assert_eq!(cpus.worked(0, 1000).0, Worked::Done(0));
        assert_eq!(cpus.go_on_unbroken(0, 9000, 1000), end(0, 10_000));
        // Task 3 waits for the first processor, behind the bound task; then only that one waits.
        assert_eq!(cpus.worked(1, 2000).0, Worked::Done(1));
        assert_eq!(cpus.leave(1, 2000), Some(end(1, 3000)));
        assert_eq!(cpus.worked(1, 3000).0, Worked::Done(3));
        assert_eq!(cpus.leave(1, 3000), None);
        assert_eq!(cpus.worked(0, 10_000).0, Worked::Done(0));
        assert_eq!(cpus.leave(0, 10_000), Some(end(0, 11_000)));
        assert_eq!(cpus.worked(0, 11_000).0, Worked::Done(4));
    }
}

#[test]
fn switches_wake_ups_and_interrupts_take_time() {
    let machine = ProcessorModel {
        switch_instructions: 50,
        idle_exit_ns: 30,
        ..ProcessorModel::new(1, 1000.0)
    };
    let mut cpus = Processors::new(&machine, &KERNELS[0], 2);
    // An interrupt of 7 instructions wakes the task, which costs 3 more.
    cpus.interrupt(0, 7);
    assert_eq!(cpus.wake(0, 10, 5, 3, None), Some(end(0, 35)));
    assert_eq!(cpus.worked(0, 35).1, Some(end(0, 35 + 10 + 60)));
    // The task itself wakes the other, then works on: the wake-up adds to its work.
    assert_eq!(cpus.worked(0, 105).0, Worked::Done(0));
    assert_eq!(cpus.wake(1, 10, 105, 4, Some(0)), None);
    assert_eq!(cpus.go_on_unbroken(0, 20, 105), end(0, 129));
    cpus.worked(0, 129);
    assert_eq!(cpus.leave(0, 129), Some(end(0, 129 + 60)));
}

/// Tasks that waited behind the journal's thread and ran less than their share have a lag. When the
/// thread wakes them, they preempt it at its next point of preemption, and it runs last.
#[test]
fn the_journals_thread_lets_those_pass_that_it_wakes() {
    let mut cpus = processors(1, 1000.0, 5);
    wake(&mut cpus, 4, 500_000, 0);
    cpus.worked(0, 0);
    for task in 0..4 {
        wake(&mut cpus, task, 1000, 100_000);
    }
    let mut now_ns = 500_000;
    while let (Worked::Done(_), _) = cpus.worked(0, now_ns) {
        match cpus.leave(0, now_ns) {
            Some(next) => now_ns = next.at_ns,
            None => break,
        }
    }
    assert_eq!(now_ns, 504_000);
    wake(&mut cpus, 4, 10_000, 600_000);
    cpus.worked(0, 600_000);
    assert_eq!(cpus.worked(0, 610_000).0, Worked::Done(4));
    for task in [2, 0, 3, 1] {
        cpus.wake(task, 1000, 610_000, 2000, Some(0));
    }
    // The wake-ups are the thread's work, too.
    assert_eq!(cpus.go_on_unbroken(0, 1000, 610_000).at_ns, 619_000);
    assert_eq!(cpus.worked(0, 619_000).0, Worked::Done(4));
    now_ns = cpus.go_on(0, 1000, 619_000).at_ns;
    let mut order = Vec::new();
    while let (Worked::Done(task), _) = cpus.worked(0, now_ns) {
        order.push(task);
        match cpus.leave(0, now_ns) {
            Some(next) => now_ns = next.at_ns,
            None => break,
        }
    }
    assert_eq!((order.len(), order.last()), (5, Some(&4)), "{order:?}");
}

/// In the lab (6.12, tracepoints of the scheduler and of jbd2, three threads of create-fsync) the
/// thread goes to sleep ahead of the average, after three wake-ups. The first task asks for a
/// commit 40 us later, and the thread runs before the second task, whose file goes to the next
/// transaction.
#[test]
fn the_journals_thread_comes_back_before_the_second_that_it_woke() {
    let mut cpus = processors(1, 1000.0, 4);
    wake(&mut cpus, 3, 14_000, 0);
    cpus.worked(0, 0);
    assert_eq!(cpus.worked(0, 14_000).0, Worked::Done(3));
    for task in [2, 1, 0] {
        cpus.wake(task, 40_000, 14_000, 3_300, Some(0));
    }
    let sleeps_ns = cpus.go_on_unbroken(0, 3_000, 14_000).at_ns;
    assert_eq!(cpus.worked(0, sleeps_ns).0, Worked::Done(3));
    let asks_ns = cpus.leave(0, sleeps_ns).unwrap().at_ns;
    assert_eq!(cpus.worked(0, asks_ns).0, Worked::Done(2));
    cpus.wake(3, 5_000, asks_ns, 1_750, Some(0));
    let next_ns = cpus.go_on(0, 500, asks_ns).at_ns;
    assert_eq!(cpus.worked(0, next_ns).0, Worked::Done(3));
}

/// Under CFS a task that slept briefly runs after all that have run less. A task that slept long
/// preempts the running one.
#[test]
fn sleep_is_paid_for_up_to_half_a_period() {
    let mut cpus = processors_of(kernel::named("3.4").unwrap(), 1, 1000.0, 4);
    for task in 0..3 {
        wake(&mut cpus, task, 100_000, 0);
    }
    cpus.worked(0, 0);
    assert_eq!(cpus.worked(0, 100_000).0, Worked::Done(0));
    cpus.leave(0, 100_000);
    wake(&mut cpus, 0, 1000, 110_000);
    let mut order = Vec::new();
    let mut now_ns = 200_000;
    while let (Worked::Done(task), _) = cpus.worked(0, now_ns) {
        order.push(task);
        // The last of them gets a lot of work.
        if order.len() == 3 {
            break;
        }
        now_ns = cpus.leave(0, now_ns).unwrap().at_ns;
    }
    assert_eq!(order, [1, 2, 0]);
    let end_ns = cpus.go_on(0, 5_000_000, now_ns).at_ns;
    assert_eq!(end_ns, now_ns + 5_000_000);
    // The credit of half a period exceeds the wake-up granularity.
    wake(&mut cpus, 3, 1000, now_ns + 4_000_000);
    assert_eq!(cpus.worked(0, end_ns).0, Worked::Done(0));
    let next = cpus.go_on(0, 1000, end_ns);
    assert_eq!(cpus.worked(0, next.at_ns).0, Worked::Done(3));
}

/// Runs tasks with endless work up to a time; returns how long each had a processor.
fn shares_ns(cpus: &mut Processors, tasks: u32, until_ns: u64) -> Vec<u64> {
    let mut ends: Vec<PieceEnd> = (0..tasks)
        .filter_map(|task| wake(cpus, task, u64::MAX / 4, 0))
        .collect();
    let mut shares = vec![0; tasks as usize];
    while let Some(at) = (0..ends.len()).min_by_key(|at| ends[*at].at_ns) {
        let PieceEnd { cpu, at_ns } = ends.swap_remove(at);
        if at_ns >= until_ns {
            continue;
        }
        let before = busy_ns(cpus);
        let had = cpus.cpus[usize::from(cpu)].queue.running();
        let (_, next) = cpus.worked(cpu, at_ns);
        if let Some(task) = had {
            shares[task as usize] += busy_ns(cpus) - before;
        }
        ends.extend(next);
    }
    shares
}

proptest! {
    /// Tasks that always want a processor get equal shares of it, to within a few ticks.
    #[test]
    fn a_processor_is_shared_fairly(
        kernel in 0..KERNELS.len(), tasks in 1_u32..12, mips in 10.0_f64..4000.0,
    ) {
        let mut cpus = processors_of(&KERNELS[kernel], 1, mips, tasks as usize);
        let shares = shares_ns(&mut cpus, tasks, 2_000_000_000);
        let (least, most) = (shares.iter().min().unwrap(), shares.iter().max().unwrap());
        prop_assert!(most - least <= 16_000_000, "{shares:?}");
        prop_assert!(shares.iter().sum::<u64>() > 1_980_000_000, "{shares:?}");
    }

    /// Whatever tasks do, none is forgotten, and none is in two places.
    #[test]
    fn nobody_is_forgotten(
        kernel in 0..KERNELS.len(),
        cpus in 1_u16..4,
        steps in proptest::collection::vec((0_u32..8, 1_u64..3_000_000, any::<bool>()), 1..200),
    ) {
        let mut machine = processors_of(&KERNELS[kernel], cpus, 1000.0, 8);
        let mut ends: Vec<PieceEnd> = Vec::new();
        let mut awake = [false; 8];
        let mut now_ns = 0;
        for (task, ns, goes_on) in steps {
            if !awake[task as usize] {
                awake[task as usize] = true;
                ends.extend(wake(&mut machine, task, ns, now_ns));
            }
            let Some(at) = (0..ends.len()).min_by_key(|at| ends[*at].at_ns) else {
                continue;
            };
            let PieceEnd { cpu, at_ns } = ends.swap_remove(at);
            prop_assert!(at_ns >= now_ns);
            now_ns = at_ns;
            let (worked, next) = machine.worked(cpu, now_ns);
            ends.extend(next);
            if let Worked::Done(done) = worked {
                prop_assert!(awake[done as usize]);
                if goes_on {
                    ends.push(machine.go_on(cpu, ns, now_ns));
                } else {
                    awake[done as usize] = false;
                    ends.extend(machine.leave(cpu, now_ns));
                }
            }
        }
        while let Some(at) = (0..ends.len()).min_by_key(|at| ends[*at].at_ns) {
            let PieceEnd { cpu, at_ns } = ends.swap_remove(at);
            let (worked, next) = machine.worked(cpu, at_ns);
            ends.extend(next);
            if let Worked::Done(done) = worked {
                prop_assert!(awake[done as usize]);
                awake[done as usize] = false;
                ends.extend(machine.leave(cpu, at_ns));
            }
        }
        prop_assert_eq!(awake, [false; 8]);
    }
}
