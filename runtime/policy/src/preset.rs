//! A preset: a policy that comes with a guest and that the operator's policy names. It grants
//! what the guest uses, at origins that properties hold.
//!
//! The author of a preset cannot know the addresses, TLS settings and `plain_http` of an
//! installation. The operator writes them beside the name of the preset, and they replace
//! those of all its grants, logins and assumed roles. The caller reads the files.

use serde_json::{Map, Value};

use super::object_reader::ObjectReader;
use super::problem::Problems;
use crate::strict_json;

/// The keys with which the operator overrides those of a preset's grants, logins and assumed roles.
const LAID_OVER: [&str; 3] = ["addresses", "plain_http", "tls"];

/// The keys of a policy that a preset cannot have.
const OF_OPERATOR: [&str; 3] = ["presets", "regions", "trust_undeclared"];

/// The caller's function that reads the file of a preset. It receives the name of the package
/// (`None` for a file beside the policy) and the name of the file, and returns the text of the
/// file or what is wrong with it.
pub type ReadFile<'a> = &'a dyn Fn(Option<&str>, &str) -> Result<String, String>;

/// One preset with the overrides of the operator, to be parsed like the policy itself.
pub(super) struct Preset {
    /// The path within the policy file that problems name, such as `presets[0]`.
    pub(super) at: String,
    pub(super) value: Value,
}

/// Returns the presets that the policy names. A preset that cannot be used is a problem.
pub(super) fn read_all(
    reader: &mut ObjectReader<'_>,
    read: ReadFile<'_>,
    max_depth: usize,
    problems: &Problems,
) -> Vec<Preset> {
    let list = reader.list("presets");
    list.into_iter().filter_map(|(at, value)| one(value, at, read, max_depth, problems)).collect()
}

fn one(value: &Value, at: String, read: ReadFile<'_>, max_depth: usize, problems: &Problems) -> Option<Preset> {
    let mut reader = ObjectReader::open(value, at.clone(), problems)?;
    let package = reader.text("package");
    let file = reader.required_text("file", "cloud.json");
    let over: Vec<(&str, Value)> =
        LAID_OVER.iter().filter_map(|key| Some((*key, reader.value(key)?.clone()))).collect();
    reader.close();
    let unusable = |what: String| {
        problems.add(
            format!("{at}.file"),
            what,
            "name the policy file that came with the guest, and do not change that file",
        );
        None
    };
    let text = match read(package, file?) {
        Ok(text) => text,
        Err(what) => return unusable(what),
    };
    let mut preset = match strict_json::parse(&text, max_depth) {
        Ok(Value::Object(preset)) => preset,
        Ok(_) => return unusable("is not a JSON object".into()),
        Err(error) => return unusable(format!("is not valid JSON: {error}")),
    };
    for key in OF_OPERATOR {
        if preset.contains_key(key) {
            return unusable(format!("has the key `{key}`, which is for the operator's own policy"));
        }
    }
    let grants = preset.get_mut("http").and_then(Value::as_array_mut).into_iter().flatten();
    grants.filter_map(Value::as_object_mut).for_each(|grant| lay_over(grant, &over));
    let logins = preset.get_mut("logins").and_then(Value::as_object_mut).into_iter().flatten();
    logins.filter_map(|(_, login)| login.as_object_mut()).for_each(|login| lay_over(login, &over));
    let credentials = preset.get_mut("credentials").and_then(Value::as_object_mut).into_iter().flatten();
    let roles = credentials.filter_map(|(_, one)| one.get_mut("assume_role").and_then(Value::as_object_mut));
    roles.for_each(|role| lay_over(role, &over));
    Some(Preset { at, value: Value::Object(preset) })
}

fn lay_over(entry: &mut Map<String, Value>, over: &[(&str, Value)]) {
    for (key, value) in over {
        entry.insert((*key).to_owned(), value.clone());
    }
}
