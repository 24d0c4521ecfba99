//! The operator's properties: those of bosh-openstack-cpi's job spec without their
//! prefix, and `endpoints`. A value that cannot work is rejected when the guest
//! opens, and the error says what to do instead. Secrets arrive sealed: this
//! module only checks whether they are set.

#[cfg(test)]
mod spec;

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use wasm_cpi_sdk::{Error, config};

#[cfg(test)]
pub(crate) use spec::{SPEC, Treatment};

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Properties {
    auth_url: Option<String>,
    username: Option<String>,
    api_key: Option<Value>,
    application_credential_id: Option<String>,
    application_credential_secret: Option<Value>,
    tenant: Option<String>,
    project: Option<String>,
    pub(crate) project_id: Option<String>,
    domain: Option<String>,
    user_domain_name: Option<String>,
    project_domain_name: Option<String>,
    pub(crate) region: Option<String>,
    endpoint_type: Option<String>,
    state_timeout: Option<u64>,
    boot_from_volume: Option<bool>,
    stemcell_public_visibility: Option<bool>,
    connection_options: Option<Map<String, Value>>,
    pub(crate) default_key_name: Option<String>,
    default_security_groups: Option<Vec<String>>,
    pub(crate) default_volume_type: Option<String>,
    wait_resource_poll_interval: Option<u64>,
    config_drive: Option<String>,
    use_dhcp: Option<bool>,
    ignore_server_availability_zone: Option<bool>,
    human_readable_vm_names: Option<bool>,
    use_nova_networking: Option<bool>,
    enable_auto_anti_affinity: Option<bool>,
    /// The URLs of the services, by their names.
    endpoints: Option<Map<String, Value>>,
}

/// The properties that are not strings. A seal is one, so they cannot be read if they are sealed.
const NOT_TEXTS: [&str; 9] = [
    "state_timeout",
    "boot_from_volume",
    "stemcell_public_visibility",
    "wait_resource_poll_interval",
    "use_dhcp",
    "ignore_server_availability_zone",
    "human_readable_vm_names",
    "use_nova_networking",
    "enable_auto_anti_affinity",
];

/// The device that is the config drive in the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigDrive {
    Cdrom,
    Disk,
}

impl Properties {
    pub(crate) fn read() -> Result<Self, Error> {
        let properties: Result<Self, Error> = config::properties();
        // A seal is a string, whatever the property is: it may be the reason why they cannot be read.
        if properties.as_ref().map_or(true, |read| read.auth_url.as_deref().is_some_and(is_sealed)) {
            check_exposed(&config::properties()?)?;
        }
        let properties = properties?;
        properties.check()?;
        Ok(properties)
    }

    /// Returns the name of the policy preset for these properties, as the BOSH release ships it.
    pub(crate) fn preset(&self) -> &'static str {
        preset(non_empty(&self.application_credential_id).is_some(), non_empty(&self.project_id).is_some())
    }

    /// Returns the URL that the operator allows for a service.
    pub(crate) fn endpoint(&self, service: &str) -> Option<&str> {
        self.endpoints.as_ref()?.get(service)?.as_str().filter(|url| !url.is_empty())
    }

    fn check(&self) -> Result<(), Error> {
        self.check_identity()?;
        self.check_connection()?;
        if self.use_nova_networking == Some(true) {
            return Err(invalid("use_nova_networking", "OpenStack does not have Nova networks any more", "remove it"));
        }
        self.config_drive()?;
        self.interface()?;
        Ok(())
    }

    fn check_identity(&self) -> Result<(), Error> {
        let Some(url) = non_empty(&self.auth_url) else {
            return Err(invalid("auth_url", "is missing", "set it to Keystone's URL, e.g. https://keystone:5000/v3"));
        };
        if !url.trim_end_matches('/').ends_with("/v3") {
            return Err(invalid(
                "auth_url",
                &format!("`{url}` is not a Keystone v3 URL, and Keystone v2 is not supported"),
                "use the URL that ends in /v3, and set `project` and `domain`",
            ));
        }
        let password = non_empty(&self.username).is_some() && is_set(&self.api_key);
        let credential =
            non_empty(&self.application_credential_id).is_some() && is_set(&self.application_credential_secret);
        if password == credential {
            let what = if password { "both are set" } else { "neither is set completely" };
            return Err(Error::cpi(format!(
                "properties: username and api_key, or application_credential_id and application_credential_secret: \
                 {what}; set exactly one of the two pairs, and use the preset for it: openstack.json for project, \
                 openstack-project-id.json for project_id, openstack-application-credential.json for the second pair"
            )));
        }
        if !password {
            return Ok(());
        }
        if non_empty(&self.project).is_none() && non_empty(&self.project_id).is_none() {
            if non_empty(&self.tenant).is_some() {
                return Err(invalid(
                    "tenant",
                    "is for Keystone v2, which is not supported",
                    "set `project` and `domain` instead",
                ));
            }
            return Err(invalid("project", "is missing", "set it, or `project_id`"));
        }
        for (own, name) in
            [(&self.user_domain_name, "user_domain_name"), (&self.project_domain_name, "project_domain_name")]
        {
            let needed = name == "user_domain_name" || non_empty(&self.project_id).is_none();
            if needed && non_empty(own).is_none() && non_empty(&self.domain).is_none() {
                return Err(invalid("domain", "is missing", &format!("set it, or `{name}`")));
            }
        }
        Ok(())
    }

    fn check_connection(&self) -> Result<(), Error> {
        for (name, value) in self.connection_options.iter().flatten() {
            let key = format!("connection_options.{name}");
            match (name.as_str(), value) {
                ("ca_cert", _) | (_, Value::Null) | ("ssl_verify_peer", Value::Bool(true)) => {}
                ("ssl_verify_peer", _) => {
                    return Err(invalid(
                        &key,
                        "certificates are always verified",
                        "remove it, and set connection_options.ca_cert to the cloud's CA in PEM",
                    ));
                }
                ("ssl_ca_file" | "ssl_ca_path" | "ssl_cert_store", _) => {
                    return Err(invalid(&key, "is not supported", "set connection_options.ca_cert to the CA in PEM"));
                }
                _ => {
                    return Err(invalid(
                        &key,
                        "is not supported",
                        "remove it; timeouts are `limits` of cpi.json (connect_seconds, first_byte_seconds, \
                         idle_seconds)",
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the interface in the catalog for `endpoint_type`.
    pub(crate) fn interface(&self) -> Result<&str, Error> {
        match non_empty(&self.endpoint_type).unwrap_or("publicURL") {
            "publicURL" | "public" => Ok("public"),
            "internalURL" | "internal" => Ok("internal"),
            "adminURL" | "admin" => Ok("admin"),
            other => Err(invalid(
                "endpoint_type",
                &format!("`{other}` is not an endpoint type"),
                "use publicURL, internalURL or adminURL",
            )),
        }
    }

    pub(crate) fn config_drive(&self) -> Result<Option<ConfigDrive>, Error> {
        match non_empty(&self.config_drive) {
            None => Ok(None),
            Some("cdrom") => Ok(Some(ConfigDrive::Cdrom)),
            Some("disk") => Ok(Some(ConfigDrive::Disk)),
            Some(other) => {
                Err(invalid("config_drive", &format!("`{other}` is not a config drive"), "use cdrom or disk"))
            }
        }
    }

    pub(crate) fn state_timeout(&self) -> Duration {
        Duration::from_secs(self.state_timeout.unwrap_or(300))
    }

    pub(crate) fn poll_interval(&self) -> Duration {
        Duration::from_secs(self.wait_resource_poll_interval.unwrap_or(5).max(1))
    }

    pub(crate) fn boot_from_volume(&self) -> bool {
        self.boot_from_volume.unwrap_or(false)
    }

    pub(crate) fn public_stemcells(&self) -> bool {
        self.stemcell_public_visibility.unwrap_or(false)
    }

    pub(crate) fn default_security_groups(&self) -> &[String] {
        self.default_security_groups.as_deref().unwrap_or_default()
    }

    pub(crate) fn use_dhcp(&self) -> bool {
        self.use_dhcp.unwrap_or(true)
    }

    /// Returns true if disks and VMs may be in different zones.
    pub(crate) fn ignores_zones(&self) -> bool {
        self.ignore_server_availability_zone.unwrap_or(false)
    }

    pub(crate) fn readable_names(&self) -> bool {
        self.human_readable_vm_names.unwrap_or(false)
    }

    pub(crate) fn anti_affinity(&self) -> bool {
        self.enable_auto_anti_affinity.unwrap_or(false)
    }
}

/// Returns the text unless it is empty: job templates render a property that is not
/// set as null or as an empty string.
fn non_empty(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|text| !text.is_empty())
}

fn preset(has_credential: bool, has_project_id: bool) -> &'static str {
    match (has_credential, has_project_id) {
        (true, _) => "openstack-application-credential.json",
        (false, true) => "openstack-project-id.json",
        (false, false) => "openstack.json",
    }
}

/// Returns an error if the policy does not expose a property that the guest reads.
fn check_exposed(properties: &Map<String, Value>) -> Result<(), Error> {
    let sealed = |name: &str| properties.get(name).and_then(Value::as_str).is_some_and(is_sealed);
    let Some(name) = ["auth_url"].into_iter().chain(NOT_TEXTS).find(|name| sealed(name)) else {
        return Ok(());
    };
    let is_set = |name: &str| properties.get(name).is_some_and(|value| !value.is_null() && *value != "");
    let preset = preset(is_set("application_credential_id"), is_set("project_id"));
    Err(invalid(
        name,
        "is sealed, because the policy does not expose it to the guest",
        &format!("use the preset {preset} of this guest, or list what the guest reads under `expose` of the policy"),
    ))
}

/// Returns true if the text looks like a seal: a random word of this length.
fn is_sealed(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_set(value: &Option<Value>) -> bool {
    value.as_ref().is_some_and(|value| value != "")
}

fn invalid(name: &str, what: &str, remedy: &str) -> Error {
    Error::cpi(format!("properties.{name}: {what}; {remedy}"))
}
