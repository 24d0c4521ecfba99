//! The role that the host assumes, and the roles that a cpi-config may choose.
//!
//! The role is a literal of the operator, or one property. If the property is the job's, every role is allowed. If it
//! is the context's, the role must be on the list, which the operator writes into the policy or keeps in a property of
//! the job.

use serde_json::Value;

use super::object_reader::{ObjectReader, kind};
use super::one_property::{Form, OneProperty, OnePropertySpec};
use super::problem::{PolicyProblem, Problems};
use super::properties::Properties;
use super::template::Template;
use crate::secret::Layer;
use wasm_cpi_checks::Check;

const ROLE: Form =
    Form { key: "role", noun: "the full name (ARN) of a role", is_valid: is_role, check: Check::RoleForm };

/// The key of the list.
const ROLES: &str = "roles";

/// A role as it is written in the file.
#[derive(Clone, Debug)]
pub(super) struct RoleNameSpec {
    name: OnePropertySpec,
    list: RoleList,
}

#[derive(Clone, Debug)]
enum RoleList {
    Literals(Vec<String>),
    /// The property of the job that holds the list.
    Property(String),
}

impl RoleNameSpec {
    /// Reads a role that must be there, and the list.
    pub(super) fn read(reader: &mut ObjectReader<'_>) -> Option<RoleNameSpec> {
        let (name, list) = (OnePropertySpec::read(reader, &ROLE), RoleList::read(reader));
        Some(RoleNameSpec { name: name?, list: list? })
    }

    /// Returns the name of the property that holds the role, if one does.
    pub(super) fn property(&self) -> Option<&str> {
        self.name.property()
    }

    /// Returns the full name of the role. `at` is the path of the object that it is in.
    pub(super) fn resolve(&self, properties: &Properties, at: &str, problems: &Problems) -> Option<String> {
        let OneProperty { value, property, layer } = self.name.resolve(&ROLE, properties, at, problems)?;
        let Some(property) = property.filter(|_| layer != Layer::Job) else { return Some(value) };
        let listed = self.list.holds(&value, properties, at, problems);
        let allowed = problems.ensure(Check::RoleOfContext, listed, || {
            let what = format!("takes the property `{property}` from the context (a cpi-config)");
            let remedy = format!("list the allowed values in `{ROLES}`, or set the property in the job's properties");
            PolicyProblem::new(format!("{at}.{}", ROLE.key), what, remedy)
        });
        allowed.then_some(value)
    }
}

impl RoleList {
    fn read(reader: &mut ObjectReader<'_>) -> Option<RoleList> {
        let Some(Value::String(text)) = reader.value(ROLES) else {
            let mut literals = Vec::new();
            for (at, text) in reader.texts(ROLES) {
                let problem = || {
                    let remedy = "write the values out, or `${property}` in place of the list";
                    PolicyProblem::new(at, format!("is not {}", ROLE.noun), remedy)
                };
                if reader.problems().ensure(ROLE.check, is_role(text), problem) {
                    literals.push(text.to_owned());
                }
            }
            return Some(RoleList::Literals(literals));
        };
        let property = Template::parse(text).ok().and_then(|template| template.whole_property().map(str::to_owned));
        if property.is_none() {
            reader.problem(ROLES, "is neither a list nor one property", "write a list, or `${property}` alone");
        }
        property.map(RoleList::Property)
    }

    fn holds(&self, role: &str, properties: &Properties, at: &str, problems: &Problems) -> bool {
        let name = match self {
            RoleList::Literals(list) => return list.iter().any(|listed| listed == role),
            RoleList::Property(name) => name,
        };
        match properties.get(name) {
            // A preset names the property, and not every job sets it.
            None | Some((Value::Null, _)) => false,
            // A context that could set the list could choose every role.
            Some((_, layer)) if layer != Layer::Job => false,
            Some((Value::Array(list), _)) => list.iter().any(|listed| listed.as_str() == Some(role)),
            Some((other, _)) => {
                let what = format!("takes the property `{name}`, which is {}", kind(other));
                problems.add(format!("{at}.{ROLES}"), what, "set it to a list of strings");
                false
            }
        }
    }
}

/// Returns true for a name like `arn:PARTITION:iam::123456789012:role/path/name`.
fn is_role(text: &str) -> bool {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    let ["arn", partition, "iam", "", account, role] = parts.as_slice() else { return false };
    let is_word = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let is_name =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+=,.@_/-".contains(&b));
    let is_account = account.len() == 12 && account.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 2048 && is_word(partition) && is_account && role.strip_prefix("role/").is_some_and(is_name)
}
