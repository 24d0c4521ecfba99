//! The operator's properties: those of bosh-aws-cpi's job spec without their prefix `aws.`, and `ebs_endpoint`. A
//! value that cannot work is rejected when the guest opens, and the error says what to do instead. Keys are the
//! host's: this module only checks whether they are set.

mod endpoints;
#[cfg(test)]
mod spec;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use wasm_cpi_sdk::{Error, config};

pub(crate) use endpoints::Endpoints;
#[cfg(test)]
pub(crate) use spec::{SPEC, Treatment};

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Properties {
    credentials_source: Option<String>,
    access_key_id: Option<Value>,
    secret_access_key: Option<Value>,
    session_token: Option<Value>,
    /// Sealed by a preset that assumes the role, and exposed by one that does not.
    role_arn: Option<Value>,
    region: Option<String>,
    ec2_endpoint: Option<String>,
    elb_endpoint: Option<String>,
    ebs_endpoint: Option<String>,
    dualstack: Option<bool>,
    max_retries: Option<Value>,
    default_key_name: Option<String>,
    default_iam_instance_profile: Option<String>,
    default_security_groups: Option<Vec<String>>,
    encrypted: Option<bool>,
    kms_key_arn: Option<String>,
    /// The options of the metadata service, in snake case.
    metadata_options: Option<BTreeMap<String, Value>>,
    enable_describe_instance_types: Option<bool>,
    fast_path_delete: Option<bool>,
    /// Cloud properties that lie over those of stemcells.
    stemcell: Option<Map<String, Value>>,
}

/// The properties that are not texts. A seal is one, so they cannot be read if they are sealed.
const NOT_TEXTS: [&str; 7] = [
    "dualstack",
    "default_security_groups",
    "encrypted",
    "metadata_options",
    "enable_describe_instance_types",
    "fast_path_delete",
    "stemcell",
];

impl Properties {
    pub(crate) fn read() -> Result<Self, Error> {
        check_exposed(&config::properties()?)?;
        let properties: Self = config::properties()?;
        properties.check()?;
        Ok(properties)
    }

    fn check(&self) -> Result<(), Error> {
        self.check_credentials()?;
        match text(&self.region) {
            None => Err(invalid("region", "is missing", "set it to the name of the region, such as eu-central-1")),
            Some(region) if !is_region(region) => Err(invalid(
                "region",
                &format!("`{region}` does not look like a region"),
                "set it to a name such as eu-central-1",
            )),
            Some(_) => Ok(()),
        }
    }

    fn check_credentials(&self) -> Result<(), Error> {
        let has = |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_null() && value != "");
        let is_assumed = self.role_arn.as_ref().and_then(Value::as_str).is_some_and(is_sealed);
        if has(&self.role_arn) && !is_assumed {
            return Err(invalid(
                "role_arn",
                "is set, but the preset does not assume a role",
                "use the preset aws-assumed-role.json, aws-assumed-role-of-instance.json or aws-china-assumed-role.json, or \
                 remove role_arn; a policy of your own that assumes the role must not expose role_arn",
            ));
        }
        let keys = [has(&self.access_key_id), has(&self.secret_access_key)];
        match text(&self.credentials_source).unwrap_or("static") {
            "static" if keys == [true, true] => Ok(()),
            "static" => Err(Error::cpi(
                "properties: credentials_source is `static`, which needs access_key_id and secret_access_key; set both, or set \
                 credentials_source to env_or_profile and use the preset aws-instance-profile.json",
            )),
            "env_or_profile" if keys == [false, false] && !has(&self.session_token) => Ok(()),
            "env_or_profile" => Err(Error::cpi(
                "properties: credentials_source is `env_or_profile`, which takes the keys of this machine's instance profile, but \
                 keys are set; remove access_key_id, secret_access_key and session_token, or set credentials_source to static",
            )),
            other => Err(invalid(
                "credentials_source",
                &format!("`{other}` is not a source of credentials"),
                "use static or env_or_profile",
            )),
        }
    }

    /// Returns the region, which was checked.
    pub(crate) fn region(&self) -> &str {
        text(&self.region).unwrap_or_default()
    }

    pub(crate) fn endpoints(&self) -> Result<Endpoints, Error> {
        Endpoints::of(
            self.region(),
            self.dualstack.unwrap_or(false),
            [("ec2", text(&self.ec2_endpoint)), ("elb", text(&self.elb_endpoint)), ("ebs", text(&self.ebs_endpoint))],
        )
    }

    /// Returns true if `max_retries` is set, which the guest's own budget of time replaces.
    pub(crate) fn has_max_retries(&self) -> bool {
        self.max_retries.as_ref().is_some_and(|value| !value.is_null())
    }

    pub(crate) fn default_key_name(&self) -> Option<&str> {
        text(&self.default_key_name)
    }

    pub(crate) fn default_iam_instance_profile(&self) -> Option<&str> {
        text(&self.default_iam_instance_profile)
    }

    pub(crate) fn default_security_groups(&self) -> &[String] {
        self.default_security_groups.as_deref().unwrap_or_default()
    }

    /// Returns true if disks and stemcells are encrypted that do not say otherwise.
    pub(crate) fn encrypted(&self) -> bool {
        self.encrypted.unwrap_or(false)
    }

    pub(crate) fn kms_key_arn(&self) -> Option<&str> {
        text(&self.kms_key_arn)
    }

    pub(crate) fn metadata_options(&self) -> Option<&BTreeMap<String, Value>> {
        self.metadata_options.as_ref()
    }

    /// Returns true if the guest may ask EC2 what instance types are.
    pub(crate) fn describes_instance_types(&self) -> bool {
        self.enable_describe_instance_types.unwrap_or(true)
    }

    /// Returns true if deletions are not waited for.
    pub(crate) fn deletes_fast(&self) -> bool {
        self.fast_path_delete.unwrap_or(false)
    }

    pub(crate) fn stemcell(&self) -> Option<&Map<String, Value>> {
        self.stemcell.as_ref()
    }
}

/// Returns the text unless it is empty: job templates render a property that is not set as null or as an empty
/// string.
fn text(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|text| !text.is_empty())
}

fn is_region(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() >= 3
        && parts
            .iter()
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()))
}

/// Returns an error if the policy does not expose a property that the guest reads.
fn check_exposed(properties: &Map<String, Value>) -> Result<(), Error> {
    let sealed = |name: &str| properties.get(name).and_then(Value::as_str).is_some_and(is_sealed);
    match ["region", "credentials_source"].into_iter().chain(NOT_TEXTS).find(|name| sealed(name)) {
        None => Ok(()),
        Some(name) => Err(invalid(
            name,
            "is sealed, because the policy does not expose it to the guest",
            "use a preset of this guest, or list what the guest reads under `expose` of the policy",
        )),
    }
}

/// Returns true if the text looks like a seal: a random word of this length.
fn is_sealed(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

pub(crate) fn invalid(name: &str, what: &str, remedy: &str) -> Error {
    Error::cpi(format!("properties.{name}: {what}; {remedy}"))
}
