//! The description of a guest, from two sources: what its file declares, which is read before any
//! of its code runs, and what its `describe` returns, which cannot be verified.

use crate::failure::Problem;
use crate::rpc::method::MethodName;
use serde::{Deserialize, Serialize};
use wasm_cpi_checks::Check;

/// A guest's name, version, methods and needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestDescription {
    pub name: String,
    pub version: String,
    pub stemcell_formats: Vec<String>,
    pub methods: Vec<String>,
    /// The text of its needs section, if it has one.
    pub needs: Option<String>,
    /// True if backtraces can name functions.
    pub has_names: bool,
}

/// What a guest's file declares.
#[derive(Debug, Serialize, Deserialize)]
pub struct Declared {
    pub needs: Option<String>,
    pub has_names: bool,
}

/// What a guest's `describe` returns.
#[derive(Debug, Serialize, Deserialize)]
pub struct Described {
    pub name: String,
    pub version: String,
    pub stemcell_formats: Vec<String>,
    pub methods: Vec<String>,
}

impl Described {
    pub fn with(self, declared: Declared) -> GuestDescription {
        let Described { name, version, stemcell_formats, methods } = self;
        let Declared { needs, has_names } = declared;
        GuestDescription { name, version, stemcell_formats, methods, needs, has_names }
    }

    /// Rejects a description that is not plain text, because it becomes content of files, a prefix
    /// in logs and the answer to `info`.
    pub fn check(&self) -> Result<(), Problem> {
        Check::DescriptionForm.reject(self.problem(), Problem::new)
    }

    fn problem(&self) -> Option<String> {
        let plain = |text: &str, max: usize| {
            !text.is_empty() && text.len() <= max && text.chars().all(|c| c.is_ascii_graphic())
        };
        let name_is_plain = plain(&self.name, 64)
            && self.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if self.name == "wasm-cpi" {
            return Some(
                "`describe` returns the name `wasm-cpi`, which logs use for the runtime; return another name".into(),
            );
        }
        if !name_is_plain {
            return Some("`describe` returns a name that does not match [a-z0-9-]{1,64}; return one that does".into());
        }
        if !plain(&self.version, 64) {
            return Some(
                "`describe` returns a version that is not 1 to 64 printable ASCII characters; return one that is"
                    .into(),
            );
        }
        if self.stemcell_formats.len() > 100 || !self.stemcell_formats.iter().all(|format| plain(format, 100)) {
            return Some("`describe` returns stemcell formats that are not at most 100 short texts of printable ASCII; return such texts".into());
        }
        let unknown = self.methods.iter().find(|method| !matches!(MethodName::parse(method), MethodName::Known(_)))?;
        Some(format!("`describe` lists the method {unknown:?}, which is not a CPI method; leave it out"))
    }
}
