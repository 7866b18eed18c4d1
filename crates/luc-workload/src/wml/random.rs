//! Random numbers: the engine's own generator, and those that Filebench leaves unseeded.
//!
//! Filebench draws from three sources and seeds none of them, so every run of it is the same run:
//!
//! | source | used for |
//! |---|---|
//! | a Mersenne twister with its default seed | offsets, append sizes, the order of preparation |
//! | `drand48` of the C library | the gamma distribution of sizes, widths and depths |
//! | `rand` of the C library | which files exist before the run |
//!
//! [`Generator::Filebench`] reproduces all three bit by bit, from their published definitions, so
//! that the files it prepares are the files that Filebench prepares. [`Generator::Own`] draws all
//! numbers from one seed.

use luc_base::random::{GOLDEN, next};

/// The source of random bits.
pub enum Generator {
    /// One stream from one seed.
    Own(u64),
    /// Filebench's three generators in their initial states.
    Filebench(Box<Filebench>),
}

impl Generator {
    /// Returns the stream of a thread (preparation is thread 0) in a run with this seed.
    pub fn own(seed: u64, thread: u64) -> Self {
        let mut base = seed;
        let mut split = next(&mut base) ^ thread.wrapping_mul(GOLDEN);
        Self::Own(next(&mut split))
    }

    /// Returns the unseeded state. `thread` counts the threads of one process. In Filebench they
    /// share a generator, so the order of their draws is left to chance; here each has its own, and
    /// only that of the first is Filebench's.
    pub fn filebench(thread: u64) -> Self {
        let twister_seed =
            TWISTER_SEED.wrapping_add(u32::try_from(thread % (1 << 31)).unwrap_or(0));
        Self::Filebench(Box::new(Filebench {
            twister: Twister::new(twister_seed),
            lcg: Lcg48(thread),
            rand: Rand::new(1),
        }))
    }

    /// Draws 64 random bits.
    pub fn bits(&mut self) -> u64 {
        match self {
            Self::Own(split) => next(split),
            Self::Filebench(all) => all.twister.next64(),
        }
    }

    /// Draws a number uniform in [0, 1), with 32 random bits.
    pub fn unit32(&mut self) -> f64 {
        let bits = match self {
            Self::Own(split) => (next(split) >> 32) as u32,
            Self::Filebench(all) => all.twister.next32(),
        };
        f64::from(bits) / TWO_POW_32
    }

    /// Draws a number uniform in [0, 1), with 48 random bits.
    pub fn unit48(&mut self) -> f64 {
        match self {
            Self::Own(split) => (next(split) >> 16) as f64 / TWO_POW_48,
            Self::Filebench(all) => all.lcg.unit(),
        }
    }

    /// Draws a number from 0 to 2^31 - 1.
    pub fn bits31(&mut self) -> u64 {
        match self {
            Self::Own(split) => next(split) >> 33,
            Self::Filebench(all) => u64::from(all.rand.next()),
        }
    }

    /// Draws a multiple of `step` from 0 to `max - step`; if `step` is 0, any number from 0 to
    /// `max`.
    ///
    /// This is Filebench's scaling: the top value appears only if 64 random bits round up to 2^64.
    pub fn scaled(&mut self, max: u64, step: u64) -> u64 {
        let unit = self.bits() as f64 / TWO_POW_64;
        let limit = max.saturating_sub(step);
        let value = floor(unit * limit as f64).min(limit);
        value.checked_div(step).map_or(value, |steps| steps * step)
    }
}

/// Returns the whole part of a value that is not negative; values beyond 64 bits saturate.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn floor(value: f64) -> u64 {
    value as u64
}

const TWO_POW_32: f64 = 4_294_967_296.0;
const TWO_POW_48: f64 = 281_474_976_710_656.0;
const TWO_POW_64: f64 = 18_446_744_073_709_551_616.0;
const TWISTER_SEED: u32 = 4357;

/// The three generators of a Filebench process.
pub struct Filebench {
    twister: Twister,
    lcg: Lcg48,
    rand: Rand,
}

const STATE: usize = 624;
const SHIFT: usize = 397;

/// MT19937 of 1998, seeded by Knuth's multiplier 69069.
struct Twister {
    state: [u32; STATE],
    at: usize,
}

impl Twister {
    fn new(seed: u32) -> Self {
        let mut state = [seed; STATE];
        for i in 1..STATE {
            state[i] = state[i - 1].wrapping_mul(69_069);
        }
        Self { state, at: STATE }
    }

    fn refresh(&mut self) {
        for i in 0..STATE {
            let joined =
                (self.state[i] & 0x8000_0000) | (self.state[(i + 1) % STATE] & 0x7fff_ffff);
            let odd = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + SHIFT) % STATE] ^ (joined >> 1) ^ odd;
        }
        self.at = 0;
    }

    fn next32(&mut self) -> u32 {
        if self.at == STATE {
            self.refresh();
        }
        let mut y = self.state[self.at];
        self.at += 1;
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c_5680;
        y ^= (y << 15) & 0xefc6_0000;
        y ^ (y >> 18)
    }

    fn next64(&mut self) -> u64 {
        let high = u64::from(self.next32());
        high << 32 | u64::from(self.next32())
    }
}

/// The 48-bit linear congruential generator of `drand48`. The GNU C library starts it at zero.
pub struct Lcg48(pub u64);

impl Lcg48 {
    /// Draws a number uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        let next = (self.0 & MASK_48)
            .wrapping_mul(0x5_deec_e66d)
            .wrapping_add(0xb);
        self.0 = next & MASK_48;
        self.0 as f64 / TWO_POW_48
    }
}

const MASK_48: u64 = (1 << 48) - 1;

/// `rand` of the GNU C library: an additive feedback generator of 31 words, seeded with 1.
struct Rand {
    words: [u32; 31],
    at: usize,
}

impl Rand {
    fn new(seed: i32) -> Self {
        let mut words = [0_u32; 31];
        let mut value = i64::from(seed);
        words[0] = seed.cast_unsigned();
        for word in &mut words[1..] {
            value = value * 16_807 % 2_147_483_647;
            // The modulus keeps the value within 31 bits.
            *word = u32::try_from(value).unwrap_or(0);
        }
        // The library starts three words in.
        let mut rand = Self { words, at: 3 };
        for _ in 0..310 {
            rand.next();
        }
        rand
    }

    fn next(&mut self) -> u32 {
        // words[at] was drawn 31 draws ago, words[at + 28] 3 draws ago.
        let sum = self.words[self.at].wrapping_add(self.words[(self.at + 28) % 31]);
        self.words[self.at] = sum;
        self.at = (self.at + 1) % 31;
        sum >> 1
    }
}

#[cfg(test)]
mod tests {
    use super::{Generator, Lcg48};

    #[test]
    fn point_10_the_generators_are_those_of_an_unseeded_process() {
        let mut all = Generator::filebench(0);
        let twister: Vec<u64> = (0..1001).map(|_| all.bits()).collect();
        assert_eq!(
            twister[..4],
            [
                15_077_078_441_692_132_482,
                9_414_376_495_862_522_890,
                653_316_318_699_879_360,
                11_542_288_316_900_968_088,
            ]
        );
        assert_eq!(twister[1000], 2_272_556_476_920_423_291);
        let drand: Vec<f64> = (0..4).map(|_| all.unit48()).collect();
        assert_eq!(
            drand,
            [
                3.907_985_046_680_551e-14,
                0.000_985_394_674_650_308_4,
                0.041_631_001_594_613_08,
                0.176_642_642_542_915_95,
            ]
        );
        let rand: Vec<u64> = (0..5).map(|_| all.bits31()).collect();
        assert_eq!(
            rand,
            [
                1_804_289_383,
                846_930_886,
                1_681_692_777,
                1_714_636_915,
                1_957_747_793
            ]
        );
    }

    #[test]
    fn seeded_lcg_is_erand48() {
        let mut lcg = Lcg48(1);
        assert_eq!(lcg.unit().to_bits(), 8.958_133_409_464_608e-5_f64.to_bits());
        assert_eq!(lcg.unit().to_bits(), 0.731_953_177_121_919_7_f64.to_bits());
    }

    #[test]
    fn scaled_numbers_are_multiples_within_bounds() {
        for mut g in [Generator::own(1, 0), Generator::filebench(0)] {
            for _ in 0..10_000 {
                let n = g.scaled(10 << 20, 2048);
                assert!(n % 2048 == 0 && n <= (10 << 20) - 2048, "{n}");
                assert!(g.scaled(1000, 0) <= 1000);
                assert!(g.scaled(16_384, 1) < 16_384);
            }
            assert_eq!(g.scaled(2048, 2048), 0);
            assert_eq!(g.scaled(0, 0), 0);
        }
    }

    #[test]
    fn streams_of_threads_and_seeds_differ_and_repeat() {
        let first = |seed, thread| Generator::own(seed, thread).bits();
        assert_eq!(first(1, 3), first(1, 3));
        assert_ne!(first(1, 3), first(1, 4));
        assert_ne!(first(1, 3), first(2, 3));
    }
}
