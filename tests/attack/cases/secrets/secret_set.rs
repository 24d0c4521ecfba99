//! Random secrets in the shapes that real ones have, and a search for them.
//!
//! The same seed gives the same secrets. A case that fails prints it, and
//! `ATTACK_SEED` sets it.

use crate::needles::Needles;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// What the field of a secret can hold.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Any,
    /// One line of printable ASCII.
    Header,
    /// A part of a URL.
    Url,
    /// A key that signs, or a token beside it.
    Key,
}

#[derive(Clone, Copy)]
enum Shape {
    Letters,
    Quotes,
    Unicode,
    Percent,
    Lines,
    Base64,
    Long,
    Short,
}

const SHAPES: [Shape; 8] = [
    Shape::Letters,
    Shape::Quotes,
    Shape::Unicode,
    Shape::Percent,
    Shape::Lines,
    Shape::Base64,
    Shape::Long,
    Shape::Short,
];

#[derive(Default)]
pub(super) struct SecretSet {
    state: u64,
    /// The number of the next shape. Each case starts with another one.
    turn: usize,
    /// Names and secrets, in the order in which they were added.
    secrets: Vec<(String, String)>,
    needles: Needles,
}

/// Returns the seed of this run.
pub(super) fn seed() -> u64 {
    static SEED: OnceLock<u64> = OnceLock::new();
    *SEED.get_or_init(|| {
        let given = std::env::var("ATTACK_SEED").ok().and_then(|seed| seed.parse().ok());
        given.unwrap_or_else(|| RandomState::new().build_hasher().finish())
    })
}

impl SecretSet {
    pub(super) fn new(turn: usize) -> SecretSet {
        SecretSet { state: seed() ^ (turn as u64) << 32, turn, ..SecretSet::default() }
    }

    /// Adds and returns a new secret.
    pub(super) fn generate(&mut self, name: &str, fit: Fit) -> String {
        let secret = loop {
            let shape = SHAPES[self.turn % SHAPES.len()];
            self.turn += 1;
            let fits = match shape {
                Shape::Letters | Shape::Short => true,
                Shape::Base64 => fit != Fit::Url,
                Shape::Quotes | Shape::Percent | Shape::Long => !matches!(fit, Fit::Url | Fit::Key),
                Shape::Unicode | Shape::Lines => fit == Fit::Any,
            };
            if fits {
                break self.random(shape);
            }
        };
        self.add(name, &secret);
        secret
    }

    /// Adds an existing secret.
    pub(super) fn add(&mut self, name: &str, secret: &str) {
        self.secrets.push((name.to_owned(), secret.to_owned()));
        self.needles.add(name, secret);
    }

    /// Returns names and secrets, in the order in which they were added.
    pub(super) fn all(&self) -> &[(String, String)] {
        &self.secrets
    }

    pub(super) fn needles(&self) -> &Needles {
        &self.needles
    }

    /// Fails if the bytes hold a secret.
    pub(super) fn expect_none_in(&self, what: &str, bytes: &[u8]) -> Result<(), String> {
        match self.needles.found_in(bytes) {
            found if found.is_empty() => Ok(()),
            found => {
                let text: String = String::from_utf8_lossy(bytes).chars().take(4000).collect();
                Err(format!("{what} holds {}: {text}", found.join(", ")))
            }
        }
    }

    /// Returns the names of the secrets that the bytes hold.
    pub(super) fn names_in(&self, bytes: &[u8]) -> BTreeSet<String> {
        self.needles.names_in(bytes)
    }

    fn random(&mut self, shape: Shape) -> String {
        match shape {
            Shape::Letters => self.letters(24),
            Shape::Short => self.letters(12),
            Shape::Long => self.letters(4096),
            Shape::Quotes => self.letters_around(&["\"", "\\", "'", "/", "\\\"", "<&>"]),
            Shape::Unicode => self.letters_around(&["ü", "漢字", "🙂", "é"]),
            Shape::Percent => self.letters_around(&["%41", "+", "%", " ", "&x=", "#?"]),
            // The runtime ignores shorter lines, as they occur by chance.
            Shape::Lines => format!("{}\n{}", self.letters(40), self.letters(40)),
            Shape::Base64 => {
                let bytes: Vec<u8> = (0..5).flat_map(|_| self.number().to_be_bytes()).collect();
                STANDARD.encode(bytes)
            }
        }
    }

    /// Returns random letters with these texts between them.
    fn letters_around(&mut self, between: &[&str]) -> String {
        between.iter().fold(self.letters(5), |text, part| text + part + &self.letters(5))
    }

    pub(super) fn letters(&mut self, count: usize) -> String {
        const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        (0..count).map(|_| char::from(LETTERS[(self.number() % 62) as usize])).collect()
    }

    /// Returns the next number of SplitMix64.
    pub(super) fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
