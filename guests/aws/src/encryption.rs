//! Whether a disk or a stemcell is encrypted, and with which key: its own properties come before the operator's.

use wasm_cpi_sdk::Error;

use crate::properties::Properties;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encryption {
    pub(crate) encrypted: bool,
    /// The ARN of the key. Without one, AWS uses the account's default key.
    pub(crate) key: Option<String>,
}

impl Encryption {
    /// Returns the encryption for the `cloud_properties` of a disk or a stemcell. A key without encryption is an
    /// error: the data would not be encrypted, although its owner chose a key.
    pub(crate) fn of(encrypted: Option<bool>, key: Option<&str>, properties: &Properties) -> Result<Self, Error> {
        Self::of_part("cloud_properties", encrypted, key, properties)
    }

    /// The same for a part of the `cloud_properties`, such as `cloud_properties.root_disk`.
    pub(crate) fn of_part(
        part: &str,
        encrypted: Option<bool>,
        key: Option<&str>,
        properties: &Properties,
    ) -> Result<Self, Error> {
        let own = key.filter(|key| !key.is_empty());
        let encrypted = encrypted.unwrap_or(properties.encrypted());
        if own.is_some() && !encrypted {
            return Err(Error::cpi(format!(
                "{part}.kms_key_arn is set, but encryption is off; set {part}.encrypted to true, or remove the key"
            )));
        }
        let key = own.or(properties.kms_key_arn()).filter(|_| encrypted).map(str::to_owned);
        Ok(Self { encrypted, key })
    }
}
