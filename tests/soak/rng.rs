//! Numbers that look random and come again with the same seed (SplitMix64).

use std::{ops::Range, time::Duration};

#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    /// Each `stream` of a seed gives other numbers.
    pub fn new(seed: u64, stream: u64) -> Rng {
        let mut rng = Rng(seed);
        Rng(rng.next() ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn in_range(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start).max(1)
    }

    pub fn percent(&mut self, of_hundred: u64) -> bool {
        self.in_range(0..100) < of_hundred
    }

    pub fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(self.in_range(range))
    }

    pub fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.in_range(0..of.len() as u64) as usize]
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

#[test]
fn a_seed_gives_the_same_numbers_again_and_streams_differ() {
    let numbers = |seed, stream| {
        let mut rng = Rng::new(seed, stream);
        [rng.next(), rng.next(), rng.next()]
    };
    assert_eq!(numbers(1, 2), numbers(1, 2));
    assert_ne!(numbers(1, 2), numbers(1, 3));
    assert_ne!(numbers(1, 2), numbers(2, 2));
    let mut rng = Rng::new(7, 0);
    assert!((0..1000).all(|_| (5..9).contains(&rng.in_range(5..9))));
}
