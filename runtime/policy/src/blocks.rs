//! Uploads of the stemcell image in blocks, which a grant allows with `blocks`.

use serde_json::{Value, json};

use super::auth::check_header_name;
use super::grant::Grant;
use super::object_reader::ObjectReader;
use super::problem::PolicyProblem;
use super::request_head::normalize_header_name;

/// The right to upload the image in blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// The headers in which the host may put the length or the digest of a block, normalised.
    headers: Vec<String>,
}

impl Blocks {
    /// Reads `blocks` and `block_headers` of a grant; `None` if the grant does not allow blocks.
    pub(super) fn read(reader: &mut ObjectReader<'_>) -> Option<Blocks> {
        let allowed = reader.flag("blocks");
        let listed = reader.texts("block_headers");
        if !allowed {
            if !listed.is_empty() {
                reader.problem(
                    "block_headers",
                    "has no effect without `blocks`",
                    "add \"blocks\": true, or remove this",
                );
            }
            return None;
        }
        for (at, name) in &listed {
            if let Err(error) = check_header_name(name) {
                let problem = PolicyProblem::new(at, error.to_string(), error.remedy());
                reader.problems().push(PolicyProblem { check: error.check(), ..problem });
            }
        }
        Some(Blocks { headers: listed.iter().map(|(_, name)| normalize_header_name(name)).collect() })
    }

    /// Lets a grant, as it is written, allow uploads in blocks with these computed headers. Such a grant has no slots.
    pub(super) fn allow_in(grant: &mut Value, headers: &[String]) {
        grant.as_object_mut().map(|grant| grant.remove("slots"));
        grant["blocks"] = true.into();
        if !headers.is_empty() {
            grant["block_headers"] = json!(headers);
        }
    }

    /// Returns the line that lets `grant` allow an upload in blocks with these computed headers, for operators.
    pub fn missing_in(grant: &Grant, headers: &[String]) -> String {
        let id = &grant.id;
        match &grant.blocks {
            None if !grant.slots.is_empty() => format!(
                "the grant `{id}` has slots, so write a grant of its own, for a more specific path, with \"blocks\": true"
            ),
            None => {
                let mut lines = json!({});
                Blocks::allow_in(&mut lines, headers);
                format!("add to the grant `{id}`: {}", lines.to_string().trim_matches(['{', '}']))
            }
            Some(blocks) => {
                let unlisted: Vec<&String> = headers.iter().filter(|name| !blocks.computes_header(name)).collect();
                let names = json!(unlisted).to_string();
                if blocks.headers.is_empty() {
                    return format!("add to the grant `{id}`: \"block_headers\": {names}");
                }
                format!("add to `block_headers` of the grant `{id}`: {}", names.trim_matches(['[', ']']))
            }
        }
    }

    /// Returns true if the host may put the length or the digest of a block into this header.
    pub fn computes_header(&self, name: &str) -> bool {
        self.headers.contains(&normalize_header_name(name))
    }
}
