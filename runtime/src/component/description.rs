//! Who a guest is, from two sources: what its file declares, read before any of
//! its code ran, and what its `describe` answers, which is only its word.

use crate::rpc::method::Named;
use serde::{Deserialize, Serialize};
use wasm_cpi_checks::Check;

/// Who a guest says it is, and what it asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    pub name: String,
    pub version: String,
    pub stemcell_formats: Vec<String>,
    pub methods: Vec<String>,
    /// The text of its needs section, if it has one.
    pub needs: Option<String>,
    /// Whether backtraces can name functions.
    pub has_names: bool,
}

/// What the file declares.
#[derive(Debug, Serialize, Deserialize)]
pub struct Declared {
    pub needs: Option<String>,
    pub has_names: bool,
}

/// What `describe` answers.
#[derive(Debug, Serialize, Deserialize)]
pub struct Described {
    pub name: String,
    pub version: String,
    pub stemcell_formats: Vec<String>,
    pub methods: Vec<String>,
}

impl Described {
    pub fn with(self, declared: Declared) -> Description {
        let Described { name, version, stemcell_formats, methods } = self;
        let Declared { needs, has_names } = declared;
        Description { name, version, stemcell_formats, methods, needs, has_names }
    }

    /// It becomes file content, log prefix and `info`: keep it plain.
    pub fn check(&self) -> Result<(), String> {
        if !Check::DescriptionForm.on() {
            return Ok(());
        }
        let plain = |text: &str, max: usize| {
            !text.is_empty() && text.len() <= max && text.chars().all(|c| c.is_ascii_graphic())
        };
        let name_is_plain = plain(&self.name, 64)
            && self.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if self.name == "wasm-cpi" {
            return Err("`describe` answers the name `wasm-cpi`, which is the runtime's in logs".into());
        }
        if !name_is_plain {
            return Err("`describe` answers a name that does not match [a-z0-9-]{1,64}".into());
        }
        if !plain(&self.version, 64) {
            return Err("`describe` answers a version that is not 1 to 64 printable ASCII characters".into());
        }
        if self.stemcell_formats.len() > 100 || !self.stemcell_formats.iter().all(|format| plain(format, 100)) {
            return Err("`describe` answers stemcell formats that are not short printable ASCII".into());
        }
        match self.methods.iter().find(|method| !matches!(Named::from_name(method), Named::Known(_))) {
            Some(method) => Err(format!("`describe` lists the method {method:?}, which the contract does not have")),
            None => Ok(()),
        }
    }
}
