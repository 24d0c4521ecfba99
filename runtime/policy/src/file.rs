//! The operator's `policy.json` as it is written, checked as far as that is possible without
//! properties.
//!
//! Unknown keys and versions are errors, and so are entries without effect, such as a login
//! that no grant uses: a policy must mean what it appears to mean. The caller reads the files.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::credentials::{self, CredentialsSpec};
use super::expose::Expose;
use super::grant::GrantSpec;
use super::login::LoginSpec;
use super::object_reader::ObjectReader;
use super::preset::{self, Preset, ReadFile};
use super::problem::{PolicyProblem, Problems};
use super::regions::Regions;
use super::registry::RegistryRights;
use crate::strict_json;
use wasm_cpi_checks::Check;

/// The operator's policy with all of its presets, before properties are filled in.
///
/// The default is a policy that grants nothing. [`Policy::resolve`](crate::Policy::resolve)
/// turns it into the policy of one call.
#[derive(Clone, Debug, Default)]
pub struct PolicyFile {
    pub(super) trust_undeclared: bool,
    pub(super) expose: Expose,
    pub(super) registry: RegistryRights,
    /// The regions that a cpi-config may choose. Presets cannot add any.
    pub(super) regions: Regions,
    pub(super) credentials: BTreeMap<String, CredentialsSpec>,
    pub(super) logins: BTreeMap<String, LoginSpec>,
    pub(super) http: Vec<GrantSpec>,
}

pub(super) const MAX_DEPTH: usize = 64;

impl PolicyFile {
    /// Parses the text of a policy. Returns all problems at once, each with the path of its
    /// key. Rejects a policy that names presets, since their files are not available here.
    ///
    /// ```
    /// use wasm_cpi_policy::PolicyFile;
    ///
    /// assert!(PolicyFile::parse(r#"{"version": 1}"#).is_ok());
    /// let problems = PolicyFile::parse(r#"{"version": 1, "htpp": []}"#).unwrap_err();
    /// assert_eq!(problems[0].key, "htpp");
    /// ```
    pub fn parse(text: &str) -> Result<PolicyFile, Vec<PolicyProblem>> {
        PolicyFile::parse_with(text, &|_, _| Err("is not read here".to_owned()))
    }

    /// Parses the text of a policy and of the presets it names, whose files `read` provides.
    /// Returns all problems at once, each with the path of its key.
    pub fn parse_with(text: &str, read: ReadFile<'_>) -> Result<PolicyFile, Vec<PolicyProblem>> {
        let problems = Problems::default();
        let file = PolicyFile::read(text, read, &problems).unwrap_or_default();
        problems.into_result(file)
    }

    fn read(text: &str, read: ReadFile<'_>, problems: &Problems) -> Option<PolicyFile> {
        let value = match strict_json::parse(text, MAX_DEPTH) {
            Ok(value) => value,
            Err(error) => {
                let problem = PolicyProblem::new("", format!("the policy is not valid JSON: {error}"), "correct it");
                problems.push(PolicyProblem { check: error.check(), ..problem });
                return None;
            }
        };
        let mut reader = ObjectReader::open(&value, "", problems)?;
        check_version(&mut reader)?;
        let trust_undeclared = reader.flag("trust_undeclared");
        let presets = preset::read_all(&mut reader, read, MAX_DEPTH, problems);
        let mut expose = Expose::read(&mut reader);
        let mut registry = RegistryRights::read(&mut reader);
        let regions = Regions::read(&mut reader);
        let mut credentials = reader.members("credentials");
        let mut logins = reader.members("logins");
        let mut http = reader.list("http");
        reader.accept_schema();
        reader.close();
        for Preset { at, value } in &presets {
            let mut reader = ObjectReader::open(value, at.clone(), problems)?;
            check_version(&mut reader)?;
            expose.extend(Expose::read(&mut reader));
            registry.extend(RegistryRights::read(&mut reader));
            for (at, name, value) in reader.members("credentials") {
                if credentials.iter().any(|(_, known, _)| *known == name) {
                    problems.add(&at, "has the name of other credentials", "rename your own");
                }
                credentials.push((at, name, value));
            }
            for (at, name, login) in reader.members("logins") {
                if logins.iter().any(|(_, known, _)| *known == name) {
                    problems.add(&at, "has the name of another login", "rename your own");
                }
                logins.push((at, name, login));
            }
            http.extend(reader.list("http"));
            reader.accept_schema();
            reader.close();
        }
        check_names(&logins, &http, problems);
        credentials::check_names(&credentials, credentials_in(&http), problems);
        let read_credentials = |(at, name, value): &(String, &String, &Value)| {
            Some(((*name).clone(), CredentialsSpec::read(name, value, at.clone(), problems)?))
        };
        let credentials = credentials.iter().filter_map(read_credentials).collect();
        let read = |(at, name, value): &(String, &String, &Value)| {
            Some(((*name).clone(), LoginSpec::read(name, value, at.clone(), problems)?))
        };
        let logins = logins.iter().filter_map(read).collect();
        let http: Vec<GrantSpec> =
            http.iter().filter_map(|(at, value)| GrantSpec::read(value, at.clone(), problems)).collect();
        check_captures(&http, problems);
        Some(PolicyFile { trust_undeclared, expose, registry, regions, credentials, logins, http })
    }
}

/// Returns `None` if the version is one that this runtime does not know.
fn check_version(reader: &mut ObjectReader<'_>) -> Option<()> {
    let Some(version) = reader.value("version") else {
        reader.problem("version", "is missing", "add \"version\": 1");
        return Some(());
    };
    let known = reader.ensure(Check::UnknownVersion, *version == 1, "version", || {
        ("is unknown to this runtime", "write \"version\": 1, or install the runtime that knows it")
    });
    known.then_some(())
}

/// Checks that the ids of grants are unique and that logins are defined and used. Looks at the
/// JSON as it is written, so that a grant with a problem does not make its login look unused.
fn check_names<'a>(logins: &[(String, &String, &Value)], http: &'a [(String, &'a Value)], problems: &Problems) {
    let mut ids: HashSet<&str> = HashSet::new();
    for (at, grant) in http {
        let Some(id) = grant.get("id").and_then(Value::as_str) else { continue };
        problems.ensure(Check::DuplicateName, ids.insert(id), || {
            PolicyProblem::new(
                format!("{at}.id"),
                format!("is `{id}`, which is the id of an earlier grant"),
                "give each grant its own id",
            )
        });
    }
    let used = |(at, grant): &'a (String, &'a Value)| Some((at, grant.get("auth")?.get("login")?.as_str()?));
    let used: Vec<(&String, &str)> = http.iter().filter_map(used).collect();
    for (at, name) in &used {
        problems.ensure(Check::UnusedLogin, logins.iter().any(|(_, login, _)| login == name), || {
            let what = format!("names the login `{name}`, which the policy does not describe");
            PolicyProblem::new(format!("{at}.auth.login"), what, "describe it under `logins`")
        });
    }
    for (at, name, _) in logins {
        problems.ensure(Check::UnusedLogin, used.iter().any(|(_, login)| login == name), || {
            PolicyProblem::new(at, "is used by no grant", "name it in a grant's `auth`, or remove it")
        });
    }
}

/// Returns the names of the credentials in grants, with their paths.
fn credentials_in<'a>(http: &[(String, &'a Value)]) -> Vec<(String, &'a str)> {
    let named = |(at, grant): &(String, &'a Value)| {
        let name = grant.get("auth")?.get("sigv4")?.get("credentials")?.as_str()?;
        Some((format!("{at}.auth.sigv4.credentials"), name))
    };
    http.iter().filter_map(named).collect()
}

fn check_captures(http: &[GrantSpec], problems: &Problems) {
    let mut names: HashSet<&str> = HashSet::new();
    for grant in http {
        for (index, capture) in grant.captures.iter().enumerate() {
            problems.ensure(Check::DuplicateName, names.insert(&capture.name), || {
                let at = format!("{}.captures[{index}].as", grant.at());
                let what = format!("is `{}`, which is the name of an earlier capture", capture.name);
                PolicyProblem::new(at, what, "give each capture its own name")
            });
        }
    }
}
