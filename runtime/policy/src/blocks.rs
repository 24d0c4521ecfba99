//! Uploads of the stemcell image in blocks, which a grant allows with `blocks`.

use super::auth::check_header_name;
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

    /// Returns true if the host may put the length or the digest of a block into this header.
    pub fn computes_header(&self, name: &str) -> bool {
        self.headers.contains(&normalize_header_name(name))
    }
}
