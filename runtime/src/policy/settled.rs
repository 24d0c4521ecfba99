//! Grants that mean the same in every call: they name one host, and nothing in
//! them is a secret's, a property's or a file's business.
//!
//! A policy that was found right as a whole stays right while its file is the same.
//! Then such grants may be kept apart: which one a request needs is told by its
//! origin, and no call reads a thousand for the sake of one. Opens no file: whoever
//! keeps them brings the texts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::file::PolicyFile;
use super::grant::{Grant, GrantSpec};
use super::origin::OriginSpec;
use super::problem::Problems;
use super::properties::Properties;
use crate::net::destination::Destination;
use crate::strict_json;

/// Where such a grant stands in its policy's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    pub origin: String,
    pub port: u16,
    /// Its place in the list of grants.
    pub order: usize,
    pub start: usize,
    pub end: usize,
}

impl Spot {
    /// From, to and how many of those that stand side by side, with what stands between.
    pub fn cuts(spots: &[Spot]) -> Vec<(usize, usize, usize)> {
        let mut cuts: Vec<(usize, usize, usize)> = Vec::new();
        let mut next = 0;
        for spot in spots {
            match cuts.last_mut() {
                Some((_, end, count)) if spot.order == next => (*end, *count) = (spot.end, *count + 1),
                _ => cuts.push((spot.start, spot.end, 1)),
            }
            next = spot.order + 1;
        }
        cuts
    }
}

/// One of them, as it was kept.
pub struct Fetched {
    pub origin: String,
    pub order: usize,
    pub text: String,
}

/// Gives those that are for an origin, or all.
pub(super) type Fetch = Box<dyn Fn(Option<&str>) -> Result<Vec<Fetched>, String> + Send + Sync>;

/// So many may be read for each request; of more, all are read once.
const FEW: usize = 16;

/// Those that a policy has without having read them.
pub struct Settled {
    ports: Vec<u16>,
    fetch: Fetch,
    all: OnceLock<Vec<Arc<Grant>>>,
}

impl fmt::Debug for Settled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settled").field("ports", &self.ports).finish_non_exhaustive()
    }
}

impl Settled {
    pub fn new(
        ports: Vec<u16>,
        fetch: impl Fn(Option<&str>) -> Result<Vec<Fetched>, String> + Send + Sync + 'static,
    ) -> Settled {
        Settled { ports, fetch: Box::new(fetch), all: OnceLock::new() }
    }

    pub(super) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Those that may be about a destination, among `others`, in the policy's order.
    pub(super) fn near(&self, destination: &Destination, others: &[Arc<Grant>]) -> Result<Vec<Arc<Grant>>, String> {
        if let Some(all) = self.all.get() {
            return Ok(in_order(others, all.iter().filter(|grant| grant.origin.matches(destination))));
        }
        let texts = (self.fetch)(Some(&destination.origin()))?;
        if texts.len() > FEW {
            self.all(others)?;
            return self.near(destination, others);
        }
        Ok(in_order(others, &read_all(&texts)?))
    }

    /// All of them, for a reason that only all together give.
    pub(super) fn all(&self, others: &[Arc<Grant>]) -> Result<Vec<Arc<Grant>>, String> {
        let all = match self.all.get() {
            Some(all) => all,
            None => {
                let all = read_all(&(self.fetch)(None)?)?;
                self.all.get_or_init(|| all)
            }
        };
        Ok(in_order(others, all))
    }
}

fn read_all(texts: &[Fetched]) -> Result<Vec<Arc<Grant>>, String> {
    let grants = texts.iter().map(|one| read(one).map(Arc::new)).collect::<Option<_>>();
    grants.ok_or_else(|| "what was kept of it is damaged".to_owned())
}

fn in_order<'a>(others: &'a [Arc<Grant>], more: impl IntoIterator<Item = &'a Arc<Grant>>) -> Vec<Arc<Grant>> {
    let mut all: Vec<Arc<Grant>> = others.iter().chain(more).cloned().collect();
    all.sort_by_key(|grant| grant.order);
    all
}

/// The grant, if the text is one that may be read alone, for the origin that it is kept for.
fn read(fetched: &Fetched) -> Option<Grant> {
    let value = strict_json::parse(&fetched.text, super::file::MAX_DEPTH).ok()?;
    let problems = Problems::default();
    let spec = GrantSpec::read(&value, String::new(), fetched.order, &problems)?;
    let (origin, _) = settled_origin(&spec)?;
    let grant = spec.resolve(&Properties::default(), &BTreeMap::new(), &[], &problems)?;
    (problems.is_empty() && origin == fetched.origin).then_some(grant)
}

/// The origin that a request must be for, if the grant is one of these.
fn settled_origin(spec: &GrantSpec) -> Option<(String, u16)> {
    match &spec.reach.to {
        OriginSpec::Fixed(origin) if !origin.is_wildcard() && spec.stands_alone() => {
            Some((origin.to_string(), origin.port))
        }
        _ => None,
    }
}

/// Where such grants stand in the text of a policy that was found right.
pub(super) fn spots(text: &str, file: &PolicyFile) -> Vec<Spot> {
    #[derive(Deserialize)]
    struct Text<'a> {
        #[serde(borrow, default)]
        http: Vec<&'a RawValue>,
    }
    let written = serde_json::from_str(text).map_or_else(|_| Vec::new(), |text: Text<'_>| text.http);
    // Presets' come behind the file's own.
    let each = written.iter().zip(&file.http).enumerate();
    let spot = |(order, (raw, spec)): (usize, (&&RawValue, &GrantSpec))| {
        let (origin, port) = settled_origin(spec)?;
        let start = raw.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
        Some(Spot { origin, port, order, start, end: start + raw.get().len() })
    };
    each.filter_map(spot).collect()
}
