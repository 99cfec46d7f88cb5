//! Where the next command goes: one behind the other, or drawn by a seeded generator. Computed before the first stamp.

/// The places of a working set, in whole commands.
#[derive(Clone, Debug)]
pub struct Offsets {
    first: u64,
    bytes: u64,
    places: u64,
    next: u64,
    random: Option<SplitMix>,
}

impl Offsets {
    /// Places for commands of `bytes` in `[first, first + size)`; at least one. With a seed they are random.
    pub fn new(first: u64, size: u64, bytes: u64, seed: Option<u64>) -> Self {
        let places = size.checked_div(bytes).unwrap_or(1).max(1);
        Self { first, bytes, places, next: 0, random: seed.map(SplitMix) }
    }

    /// The next place, in bytes from the beginning of the target.
    #[inline(always)]
    pub fn draw(&mut self) -> u64 {
        let place = match &mut self.random {
            Some(generator) => generator.below(self.places),
            None => {
                let place = self.next;
                self.next = if place + 1 == self.places { 0 } else { place + 1 };
                place
            }
        };
        self.first + place * self.bytes
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): one addition and two multiplications a number, every seed as good as another.
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// The next 64 bits.
    #[inline(always)]
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`, by multiplication (Lemire 2019, without its rejection step: the bias is limit / 2^64).
    #[inline(always)]
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(limit)) >> 64) as u64
    }
}

/// SplitMix64's finaliser.
#[inline(always)]
pub fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequential_places_wrap_within_the_working_set() {
        let mut offsets = Offsets::new(4096, 3 * 512 + 100, 512, None);
        let places: Vec<_> = (0..5).map(|_| offsets.draw()).collect();
        assert_eq!(places, [4096, 4608, 5120, 4096, 4608]);
    }

    #[test]
    fn random_places_reach_all_of_the_working_set_and_nothing_else() {
        let mut offsets = Offsets::new(1 << 20, 16 * 4096, 4096, Some(7));
        let mut seen = [0; 16];
        for _ in 0..16_000 {
            let offset = offsets.draw();
            assert_eq!(offset % 4096, 0);
            seen[((offset - (1 << 20)) / 4096) as usize] += 1;
        }
        // Six standard deviations of a fair draw.
        assert!(seen.iter().all(|&count| (816..1184).contains(&count)), "{seen:?}");
    }

    #[test]
    fn a_seed_repeats_its_places_and_another_seed_has_others() {
        let draw = |seed| {
            let mut offsets = Offsets::new(0, 1 << 30, 512, Some(seed));
            (0..8).map(|_| offsets.draw()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn the_generator_is_the_published_one() {
        let mut generator = SplitMix(1_234_567);
        assert_eq!(generator.draw(), 6_457_827_717_110_365_317);
        assert_eq!(generator.draw(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn commands_without_data_have_one_place() {
        let mut offsets = Offsets::new(0, 0, 0, None);
        assert_eq!((offsets.draw(), offsets.draw()), (0, 0));
    }
}
