//! The operator's `policy.json` as it is written, checked as far as that is
//! possible without properties. Unknown keys and versions are errors, and so is
//! what has no effect, like a login that no grant uses: a policy that does not
//! mean what it seems to is worse than none. Opens no file.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::expose::Expose;
use super::fields::Fields;
use super::grant::GrantSpec;
use super::login::LoginSpec;
use super::preset::{self, Preset, ReadFile};
use super::problem::{Problem, Problems};
use super::registry::RegistryRights;
use super::settled::{self, Settled, Spot};
use crate::holes::Check;
use crate::strict_json;

/// The default is a policy that grants nothing.
#[derive(Clone, Debug, Default)]
pub struct PolicyFile {
    pub(super) trust_undeclared: bool,
    pub(super) expose: Expose,
    pub(super) registry: RegistryRights,
    pub(super) logins: BTreeMap<String, LoginSpec>,
    pub(super) http: Vec<GrantSpec>,
    /// Those that are kept apart.
    pub(super) settled: Option<Arc<Settled>>,
}

pub(super) const MAX_DEPTH: usize = 64;

impl PolicyFile {
    /// All problems at once, with the keys they are at. A policy that names presets
    /// is one.
    pub fn parse(text: &str) -> Result<PolicyFile, Vec<Problem>> {
        PolicyFile::parse_with(text, &|_, _| Err("is not read here".to_owned()))
    }

    /// The same, with whoever reads presets.
    pub fn parse_with(text: &str, read: ReadFile<'_>) -> Result<PolicyFile, Vec<Problem>> {
        let problems = Problems::default();
        let file = PolicyFile::read(text, read, None, &problems).unwrap_or_default();
        problems.or(file)
    }

    /// A policy that was found right, with a number in place of so many grants that are
    /// kept apart.
    pub fn parse_rest(text: &str, read: ReadFile<'_>, settled: Settled) -> Result<PolicyFile, Vec<Problem>> {
        let problems = Problems::default();
        let file = PolicyFile::read(text, read, Some(settled), &problems).unwrap_or_default();
        problems.or(file)
    }

    /// Where in its own text grants stand that may be kept apart.
    pub fn settled(&self, text: &str) -> Vec<Spot> {
        settled::spots(text, self)
    }

    fn read(text: &str, read: ReadFile<'_>, settled: Option<Settled>, problems: &Problems) -> Option<PolicyFile> {
        let value = match strict_json::parse(text, MAX_DEPTH) {
            Ok(value) => value,
            Err(error) => {
                problems.add("", format!("the policy is no valid JSON: {error}"), "correct it");
                return None;
            }
        };
        let mut fields = Fields::open(&value, "", problems)?;
        check_version(&mut fields)?;
        let trust_undeclared = fields.flag("trust_undeclared");
        let presets = preset::read_all(&mut fields, read, MAX_DEPTH, problems);
        let mut expose = Expose::read(&mut fields);
        let mut registry = RegistryRights::read(&mut fields);
        let mut logins = fields.members("logins");
        let mut http = Written::own(fields.list("http"), settled.is_some());
        fields.close();
        for Preset { at, value } in &presets {
            let mut fields = Fields::open(value, at.clone(), problems)?;
            check_version(&mut fields)?;
            expose.extend(Expose::read(&mut fields));
            registry.extend(RegistryRights::read(&mut fields));
            for (at, name, login) in fields.members("logins") {
                if logins.iter().any(|(_, known, _)| *known == name) {
                    problems.add(&at, "has the name of another login", "rename your own");
                }
                logins.push((at, name, login));
            }
            http.add(fields.list("http"));
            fields.close();
        }
        check_names(&logins, &http.grants, problems);
        let read = |(at, name, value): &(String, &String, &Value)| {
            Some(((*name).clone(), LoginSpec::read(name, value, at.clone(), problems)?))
        };
        let logins = logins.iter().filter_map(read).collect();
        let http: Vec<GrantSpec> = http
            .grants
            .iter()
            .filter_map(|(at, value, order)| GrantSpec::read(value, at.clone(), *order, problems))
            .collect();
        check_captures(&http, problems);
        let settled = settled.map(Arc::new);
        Some(PolicyFile { trust_undeclared, expose, registry, logins, http, settled })
    }
}

/// Grants as they are written: where, and which of all.
struct Written<'a> {
    grants: Vec<(String, &'a Value, usize)>,
    next: usize,
}

impl<'a> Written<'a> {
    /// The policy's own, where `settled` with numbers for those that are not here.
    fn own(list: Vec<(String, &'a Value)>, settled: bool) -> Self {
        let mut written = Written { grants: Vec::with_capacity(list.len()), next: 0 };
        for (at, value) in list {
            match value.as_u64().filter(|_| settled) {
                Some(left) => written.next += usize::try_from(left).unwrap_or(0),
                None if settled => {
                    let at = format!("http[{}]", written.next);
                    written.add(vec![(at, value)]);
                }
                None => written.add(vec![(at, value)]),
            }
        }
        written
    }

    fn add(&mut self, list: Vec<(String, &'a Value)>) {
        for (at, value) in list {
            self.grants.push((at, value, self.next));
            self.next += 1;
        }
    }
}

fn check_version(fields: &mut Fields<'_>) -> Option<()> {
    match fields.value("version") {
        Some(version) if *version == 1 || !Check::UnknownVersion.on() => {}
        Some(_) => {
            fields.problem(
                "version",
                "is unknown to this runtime",
                "write \"version\": 1, or install the runtime that knows it",
            );
            return None;
        }
        None => fields.problem("version", "is missing", "add \"version\": 1"),
    }
    Some(())
}

/// On what is written, so that one broken grant does not make its login look
/// unused.
fn check_names<'a>(logins: &[(String, &String, &Value)], http: &'a [(String, &'a Value, usize)], problems: &Problems) {
    let mut ids: HashSet<&str> = HashSet::new();
    for (at, grant, _) in http {
        let Some(id) = grant.get("id").and_then(Value::as_str) else { continue };
        if !ids.insert(id) && Check::DuplicateName.on() {
            problems.add(format!("{at}.id"), format!("is `{id}`, as an earlier grant's"), "give each grant its own id");
        }
    }
    let used = |(at, grant, _): &'a (String, &'a Value, usize)| Some((at, grant.get("auth")?.get("login")?.as_str()?));
    let used: Vec<(&String, &str)> = http.iter().filter_map(used).collect();
    for (at, name) in &used {
        if Check::UnusedLogin.on() && !logins.iter().any(|(_, login, _)| login == name) {
            problems.add(
                format!("{at}.auth.login"),
                format!("names the login `{name}`, which is not there"),
                "describe it under `logins`",
            );
        }
    }
    for (at, name, _) in logins {
        if Check::UnusedLogin.on() && !used.iter().any(|(_, login)| login == name) {
            problems.add(at, "is used by no grant", "name it in a grant's `auth`, or remove it");
        }
    }
}

fn check_captures(http: &[GrantSpec], problems: &Problems) {
    let mut names: HashSet<&str> = HashSet::new();
    for grant in http {
        for (index, capture) in grant.captures.iter().enumerate() {
            if !names.insert(&capture.name) && Check::DuplicateName.on() {
                let at = format!("{}.captures[{index}].as", grant.at());
                problems.add(
                    at,
                    format!("is `{}`, as an earlier capture's", capture.name),
                    "give each capture its own name",
                );
            }
        }
    }
}
