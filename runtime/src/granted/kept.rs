//! What is kept of a long policy that was found right: the grants that mean the same
//! in every call, by their origins.
//!
//! Reading and checking a grant takes ten microseconds, and a call may have to pay
//! that a thousand times for the one that it uses. So a long policy is checked when
//! it changes, which stamps tell: its own, its presets' and the config's, which says
//! what no grant may be for. The rest of it is read in every call. What is kept has
//! no secrets, is this user's alone, and is replaced as a whole: a call goes on with
//! what it began with.

use super::Presets;
use crate::component::cache::{Cache, Kept};
use crate::component::source::Stamp;
use crate::config::{self, Written};
use crate::failure::Failure;
use crate::holes::Check;
use crate::policy::{Fetched, PolicyFile, Settled, Spot};
use crate::trust;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Grows with every change of these files, of what a settled grant is, or of what is
/// wrong with one.
const FORMAT: u32 = 1;

/// A shorter policy is read as fast as what is kept of it.
const SHORT_BYTES: u64 = 2048;

/// The first line of what is kept. The others have a grant each: origin, place, text.
#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    runtime: String,
    config: Written,
    policy: PathBuf,
    stamp: Stamp,
    presets: Vec<(PathBuf, Stamp)>,
    ports: Vec<u16>,
    /// Of the lines below.
    bytes: usize,
    /// Of the policy's text: from, to, how many grants.
    cuts: Vec<(usize, usize, usize)>,
}

/// The operator's policy, open.
pub(super) struct Opened<'a> {
    path: &'a Path,
    config: &'a Written,
    file: File,
    metadata: Metadata,
}

impl<'a> Opened<'a> {
    pub(super) fn new(path: &'a Path, config: &'a Written) -> Result<Self, Failure> {
        let (file, metadata) = trust::open(path).map_err(|what| config::unreadable(path, &what))?;
        Ok(Opened { path, config, file, metadata })
    }

    pub(super) fn text(&self) -> Result<String, Failure> {
        trust::text(&self.file, &self.metadata, config::MAX_BYTES).map_err(|what| config::unreadable(self.path, &what))
    }

    pub(super) fn is_long(&self) -> bool {
        self.metadata.len() > SHORT_BYTES
    }

    /// The policy without the grants that can wait, if it is the one that was kept. Any
    /// doubt only costs reading all of it.
    pub(super) fn kept(&self, cache: &Cache, presets: &Presets<'_>) -> Option<PolicyFile> {
        let kept = cache.read_kept(&self.name())?;
        let head: Head = serde_json::from_slice(&kept.head).ok()?;
        let stamp = Stamp::from(&self.metadata);
        let written_ns = kept.written_ns;
        let is_still = |now: &Stamp, then: &Stamp| now.is_still(then, written_ns) || !Check::KeptPolicyStamp.on();
        let same = head.format == FORMAT
            && head.runtime == env!("CARGO_PKG_VERSION")
            && (&head.config.path, &head.config.module) == (&self.config.path, &self.config.module)
            && head.policy == self.path
            && head.bytes == kept.bytes()
            && is_still(&self.config.stamp, &head.config.stamp)
            && is_still(&stamp, &head.stamp);
        if !same {
            return None;
        }
        let rest = self.rest(&head.cuts)?;
        let settled = Settled::new(head.ports, lines_of(kept));
        let file = PolicyFile::parse_rest(&rest, &|package, name| presets.read(package, name), settled).ok()?;
        let now = presets.stamps();
        let same_presets = now.len() == head.presets.len()
            && now.iter().zip(&head.presets).all(|(now, then)| now.0 == then.0 && is_still(&now.1, &then.1));
        // Nobody wrote to it meanwhile.
        (same_presets && Stamp::from(&self.file.metadata().ok()?) == stamp).then_some(file)
    }

    /// Its text, with a number in place of so many grants.
    fn rest(&self, cuts: &[(usize, usize, usize)]) -> Option<String> {
        let mut rest = String::new();
        let mut from = 0;
        for (start, end, count) in cuts {
            let _ = write!(rest, "{}{count}", self.part(from, *start)?);
            from = *end;
        }
        rest.push_str(&self.part(from, usize::try_from(self.metadata.len()).ok()?)?);
        Some(rest)
    }

    fn part(&self, start: usize, end: usize) -> Option<String> {
        let mut bytes = vec![0; end.checked_sub(start)?];
        self.file.read_exact_at(&mut bytes, start as u64).ok()?;
        String::from_utf8(bytes).ok()
    }

    /// Keeps the grants of a policy that was found right. If that fails it costs speed
    /// alone, and the cache's own troubles are told elsewhere.
    pub(super) fn keep(&self, cache: &Cache, text: &str, file: &PolicyFile, presets: &Presets<'_>) {
        let (spots, presets) = (file.settled(text), presets.stamps());
        let Some(lines) = spots.iter().map(|spot| line(spot, text)).collect::<Option<String>>() else { return };
        let head = Head {
            format: FORMAT,
            runtime: env!("CARGO_PKG_VERSION").to_owned(),
            config: self.config.clone(),
            policy: self.path.to_owned(),
            stamp: Stamp::from(&self.metadata),
            presets,
            ports: spots.iter().map(|spot| spot.port).collect::<BTreeSet<u16>>().into_iter().collect(),
            bytes: lines.len(),
            cuts: Spot::cuts(&spots),
        };
        let mut stamps = head.presets.iter().map(|(_, stamp)| stamp).chain([&head.stamp, &head.config.stamp]);
        let old = stamps.all(Stamp::grow_old);
        // What was written in the tick in which it was read has the same stamp.
        let as_read = old && self.part(0, text.len()).is_some_and(|now| now == text);
        if spots.is_empty() || !as_read {
            return;
        }
        if let Ok(first) = serde_json::to_string(&head) {
            let _ = cache.keep(&self.name(), format!("{first}\n{lines}").as_bytes());
        }
    }

    /// One per policy and config. Of two with one name the last that was kept counts:
    /// what is kept says whose it is, so that any hash will do, and this one does not
    /// ask the processor what it can, which takes longer than all the rest.
    fn name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (self.path, &self.config.path, &self.config.module, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
        format!("{:016x}.policy", hasher.finish())
    }
}

fn line(spot: &Spot, text: &str) -> Option<String> {
    let grant: Value = serde_json::from_str(text.get(spot.start..spot.end)?).ok()?;
    Some(format!("{} {} {grant}\n", spot.origin, spot.order))
}

/// The grants for an origin, or all, from lines that are read when they are first needed.
fn lines_of(kept: Kept) -> impl Fn(Option<&str>) -> Result<Vec<Fetched>, String> + Send + Sync + 'static {
    let lines: OnceLock<Result<String, String>> = OnceLock::new();
    move |origin| {
        let lines = lines.get_or_init(|| kept.lines().map_err(|error| format!("the cache: {error}"))).as_ref()?;
        let is_for = |line: &&str| {
            origin.is_none_or(|origin| line.strip_prefix(origin).is_some_and(|rest| rest.starts_with(' ')))
        };
        let fetched = |line: &str| {
            let [origin, order, text] = line.splitn(3, ' ').collect::<Vec<&str>>().try_into().ok()?;
            Some(Fetched { origin: origin.to_owned(), order: order.parse().ok()?, text: text.to_owned() })
        };
        let wanted = lines.lines().filter(is_for).map(fetched).collect::<Option<_>>();
        wanted.ok_or_else(|| "what was kept of it is damaged".to_owned())
    }
}
