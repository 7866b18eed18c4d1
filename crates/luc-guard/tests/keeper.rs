//! Tests of a keeper under crashes, interference and failures.

use std::time::Duration;

use luc_guard::{
    Change, Event, Keeper, Lengths, Saved, Side, Stance, Subject, Totals, Trouble, Why,
};

/// A file system whose load makes this many calls a second.
struct Disk {
    on_per_s: u64,
    off_per_s: u64,
    side: Side,
    settings: String,
    /// Somebody else wrote the mode.
    written: bool,
    gone: bool,
    refuses: bool,
    /// In thousandths, so that short steps count.
    calls_milli: u64,
    switches: u32,
}

impl Disk {
    fn new(on_per_s: u64, off_per_s: u64) -> Self {
        Self {
            on_per_s,
            off_per_s,
            side: Side::On,
            settings: "luc".into(),
            written: false,
            gone: false,
            refuses: false,
            calls_milli: 0,
            switches: 0,
        }
    }

    fn works(&mut self, time: Duration) {
        let rate = match self.side {
            Side::On => self.on_per_s,
            Side::Off => self.off_per_s,
        };
        self.calls_milli += rate * u64::try_from(time.as_millis()).unwrap();
    }

    fn there(&self) -> Result<(), Trouble> {
        if self.gone {
            Err(Trouble::Gone)
        } else {
            Ok(())
        }
    }
}

impl Subject for Disk {
    fn totals(&mut self) -> Result<Totals, Trouble> {
        self.there()?;
        Ok(Totals {
            calls: self.calls_milli / 1000,
            commits: self.calls_milli / 2000,
            waited_ns: None,
            times: None,
        })
    }

    fn side(&mut self) -> Result<Side, Trouble> {
        self.there()?;
        Ok(self.side)
    }

    fn was_written(&mut self) -> bool {
        std::mem::take(&mut self.written)
    }

    fn switch(&mut self, to: Side) -> Result<(), Trouble> {
        self.there()?;
        if self.refuses {
            return Err(Trouble::Refused("no".into()));
        }
        self.side = to;
        self.switches += 1;
        Ok(())
    }

    fn settings(&mut self) -> Result<String, Trouble> {
        self.there()?;
        Ok(self.settings.clone())
    }
}

/// The keeper's surroundings: a file system, a clock, a place to save to, and the reported events.
struct World {
    disk: Disk,
    keeper: Keeper,
    now: Duration,
    saved: Option<Saved>,
    full: bool,
    told: Vec<Event>,
}

impl World {
    fn new(disk: Disk) -> Self {
        Self::resumed(disk, Duration::from_secs(1000), None)
    }

    fn resumed(mut disk: Disk, now: Duration, saved: Option<Saved>) -> Self {
        let keeper = Keeper::new(&mut disk, Lengths::default(), 5, now, saved).unwrap();
        Self {
            disk,
            keeper,
            now,
            saved: None,
            full: false,
            told: Vec::new(),
        }
    }

    fn tick(&mut self) -> Result<(), Why> {
        let (saved, full) = (&mut self.saved, self.full);
        let mut save = |now: &Saved| {
            if full {
                return Err("full".to_owned());
            }
            *saved = Some(now.clone());
            Ok(())
        };
        let (wait, events) = self.keeper.tick(&mut self.disk, self.now, &mut save)?;
        self.told.extend(events);
        self.now += wait;
        self.disk.works(wait);
        Ok(())
    }

    /// Runs until `so` holds, for this many hours at most.
    fn until(&mut self, hours: u64, so: impl Fn(&Self) -> bool) {
        let end = self.now + Duration::from_secs(hours * 3600);
        while !so(self) {
            assert!(self.now < end, "told: {:?}", self.told);
            self.tick().unwrap();
        }
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.tick().unwrap();
        }
    }

    /// Runs into a window without LUC.
    fn in_a_window_off(&mut self) {
        self.until(1, |world| world.disk.side == Side::Off);
        self.tick().unwrap();
    }
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

#[test]
fn a_help_is_certified_and_a_harm_stands_aside() {
    let mut world = World::new(Disk::new(1500, 1000));
    world.until(2, |world| !world.told.is_empty());
    assert!(matches!(
        world.told[..],
        [Event::Changed(Change::Certified { .. })]
    ));
    assert_eq!(world.disk.side, Side::On);

    let mut world = World::new(Disk::new(800, 1000));
    world.until(2, |world| !world.told.is_empty());
    assert!(matches!(
        world.told[..],
        [Event::Changed(Change::Refuted { .. })]
    ));
    assert_eq!(world.disk.side, Side::Off);
    let before = world.disk.switches;
    world.run_for(minutes(9));
    assert_eq!(world.disk.switches, before, "ten minutes of rest");
    world.run_for(minutes(3));
    assert!(world.disk.switches > before, "tried again");
}

#[test]
fn a_mode_set_by_hand_is_left_alone() {
    // Within a window the mode set by hand may be the one that the pair has just set.
    for (window, to) in [(false, Side::Off), (true, Side::On), (true, Side::Off)] {
        let mut world = World::new(Disk::new(1500, 1000));
        if window {
            world.in_a_window_off();
        } else {
            world.until(1, |world| world.keeper.guard().pairs() == 1);
        }
        world.disk.side = to;
        world.disk.written = true;
        let (side, before) = (world.disk.side, world.disk.switches);
        world.run_for(minutes(120));
        assert_eq!(world.told, [Event::LeftAlone]);
        assert_eq!((world.disk.side, world.disk.switches), (side, before));
        // The next guard leaves it alone, too, until LUC is switched on again.
        let saved = world.saved.clone();
        let now = world.now;
        let mut world = World::resumed(world.disk, now, saved.clone());
        world.run_for(minutes(60));
        assert_eq!(world.disk.switches, before);
        let mut fresh = World::resumed(Disk::new(1500, 1000), world.now, saved);
        fresh.run_for(minutes(5));
        assert!(fresh.disk.switches > 0);
    }
}

#[test]
fn luc_that_was_switched_on_to_observe_goes_on_observing() {
    let mut disk = Disk::new(1500, 1000);
    disk.side = Side::Off;
    let mut world = World::new(disk);
    world.run_for(minutes(60));
    assert_eq!((world.disk.side, world.disk.switches), (Side::Off, 0));
    assert!(world.keeper.is_left_alone());
}

#[test]
fn another_knob_begins_the_bets_anew() {
    let mut world = World::new(Disk::new(1500, 1000));
    world.until(2, |world| {
        matches!(world.keeper.guard().stance(), Stance::Certified { .. })
    });
    world.told.clear();
    world.disk.settings = "kp_milli=1".into();
    world.run_for(Duration::from_secs(30));
    assert_eq!(world.told, [Event::SetByHand]);
    assert_eq!(world.keeper.guard().stance(), Stance::Trying);
    // The same within a window, where the pair is void.
    world.in_a_window_off();
    world.disk.settings = "luc".into();
    world.told.clear();
    world.tick().unwrap();
    assert_eq!(
        (&world.told[..], world.disk.side),
        (&[Event::SetByHand][..], Side::On)
    );
}

#[test]
fn off_unmount_and_unload_end_it_at_any_moment() {
    let mut world = World::new(Disk::new(1500, 1000));
    world.in_a_window_off();
    world.disk.gone = true;
    assert_eq!(world.tick().unwrap_err(), Why::Gone);
    let mut world = World::new(Disk::new(1500, 1000));
    world.run_for(minutes(1));
    world.disk.gone = true;
    assert_eq!(world.tick().unwrap_err(), Why::Gone);
}

#[test]
fn a_module_loaded_anew_is_another_luc() {
    let mut world = World::new(Disk::new(1500, 1000));
    world.in_a_window_off();
    world.disk.calls_milli = 0;
    world.disk.side = Side::On;
    assert_eq!(world.tick().unwrap_err(), Why::Gone);
}

#[test]
fn killed_in_a_window_it_is_taken_up_again() {
    let mut world = World::new(Disk::new(1500, 1000));
    world.until(1, |world| world.keeper.guard().pairs() == 3);
    world.in_a_window_off();
    let saved = world.saved.clone().unwrap();
    assert!(saved.in_pair);
    // LUC stays in the mode of that window until a guard resumes.
    let (pairs, now) = (saved.guard.pairs(), world.now + minutes(5));
    let text = serde_json::to_string(&saved).unwrap();
    let mut world = World::resumed(world.disk, now, serde_json::from_str(&text).unwrap());
    world.tick().unwrap();
    assert_eq!((world.disk.side, world.told.len()), (Side::On, 0));
    world.until(1, |world| world.keeper.guard().pairs() == pairs + 1);
}

#[test]
fn stopped_in_a_window_it_leaves_luc_at_rest() {
    let mut world = World::new(Disk::new(1500, 1000));
    world.in_a_window_off();
    let mut last = None;
    let mut save = |saved: &Saved| {
        last = Some(saved.clone());
        Ok(())
    };
    world.keeper.stop(&mut world.disk, world.now, &mut save);
    assert_eq!(world.disk.side, Side::On);
    assert!(!last.unwrap().in_pair);
}

#[test]
fn where_nothing_can_be_written_luc_steers_and_is_not_tried() {
    let mut world = World::new(Disk::new(1500, 1000));
    world.full = true;
    world.run_for(minutes(30));
    assert_eq!(world.told, [Event::CannotSave("full".into())]);
    assert_eq!((world.disk.side, world.disk.switches), (Side::On, 0));
    world.full = false;
    world.run_for(minutes(30));
    assert_eq!(world.told[1], Event::CanSave);
    assert!(world.disk.switches > 0);
}

#[test]
fn a_module_that_refuses_is_told_and_asked_again() {
    let mut world = World::new(Disk::new(1500, 1000));
    world.in_a_window_off();
    world.disk.refuses = true;
    world.until(1, |world| !world.told.is_empty());
    assert!(matches!(world.told[..], [Event::GivenUp(_)]));
    world.disk.refuses = false;
    world.run_for(Duration::from_secs(10));
    assert_eq!(world.disk.side, Side::On, "put back as soon as it can be");
}

/// A stopped process or a sleeping machine makes ticks late. The time of day, which may jump, is
/// never used.
#[test]
fn coming_late_is_no_harm() {
    let mut world = World::new(Disk::new(1200, 1000));
    for _ in 0..3000 {
        world.tick().unwrap();
        if world.keeper.guard().pairs().is_multiple_of(3) {
            let late = Duration::from_secs(7);
            world.now += late;
            world.disk.works(late);
        }
    }
    assert!(matches!(
        world.keeper.guard().stance(),
        Stance::Certified { .. }
    ));
}

#[test]
fn what_the_trying_costs_is_bounded() {
    let mut world = World::new(Disk::new(1500, 1000));
    let (mut off, begin) = (Duration::ZERO, world.now);
    let mut certified = None;
    while world.now < begin + minutes(24 * 60) {
        let before = world.now;
        world.tick().unwrap();
        if world.disk.side == Side::Off {
            off += world.now.saturating_sub(before);
        }
        if !world.told.is_empty() && certified.is_none() {
            certified = Some((world.now, off));
        }
    }
    let (when, cost) = certified.expect("certified");
    let share = |off: Duration, from: Duration, to: Duration| {
        off.as_secs_f64() / to.saturating_sub(from).as_secs_f64()
    };
    let trying = share(cost, begin, when);
    assert!(trying < 0.11, "{trying}");
    let later = share(off.saturating_sub(cost), when, world.now);
    assert!(later < 0.012, "{later}");
}
