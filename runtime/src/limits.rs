//! All limits of a call, each with its name, default and largest value.
//!
//! The code that enforces a limit reports it with `Failure::limit`. Mutation tests lift each
//! limit, and fail if no test notices.

use serde::{Deserialize, Serialize};

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $default:expr, $max:expr;)*) => {
        #[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
        #[serde(deny_unknown_fields, default)]
        pub struct Limits {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($name: $default,)* }
            }
        }

        /// The names of all limits, for mutation tests.
        #[cfg(feature = "mutation-testing")]
        pub const NAMES: &[&str] = &[$(stringify!($name),)*];

        impl Limits {
            /// Lifts the limit that a mutation test turned off.
            #[cfg(feature = "mutation-testing")]
            #[must_use]
            pub fn lifted(mut self) -> Limits {
                let name = wasm_cpi_checks::mutant().strip_prefix("limit-").unwrap_or_default();
                // The engine reserves memory for these, so they keep a value that it can reserve.
                let reserved = ["memory_mib", "stack_kib"].contains(&name);
                $(if name == stringify!($name) {
                    self.$name = if reserved { $max } else { $max * 1024 };
                })*
                self
            }

            /// Returns the limits unchanged, because only mutation tests lift one.
            #[cfg(not(feature = "mutation-testing"))]
            #[must_use]
            pub fn lifted(self) -> Limits {
                self
            }

            /// Returns a sentence for each limit that is out of range.
            pub fn problems(&self) -> Vec<String> {
                let mut problems = Vec::new();
                $(if self.$name == 0 || self.$name > $max {
                    problems.push(format!("`limits.{}` is {}; it must be from 1 to {}", stringify!($name), self.$name, $max));
                })*
                problems
            }
        }
    };
}

const MIB_MAX: u64 = 64 * 1024;
const SECONDS_MAX: u64 = 7 * 24 * 3600;

limits! {
    /// The time for the whole call, including waiting. Compiling the guest does not count, and
    /// reading the request has the same time of its own.
    wall_seconds: 3600, SECONDS_MAX;
    /// The time for `create_stemcell`, which transfers gigabytes.
    create_stemcell_wall_seconds: 14_400, SECONDS_MAX;
    /// The CPU time of guest code. Waiting and long work of the host do not count.
    cpu_seconds: 60, SECONDS_MAX;
    /// The time in which the guest may clean up after a deadline or a signal.
    cleanup_seconds: 120, SECONDS_MAX;
    /// The linear memory of the guest.
    memory_mib: 256, 4096;
    stack_kib: 1024, 8192;
    /// The elements in all tables together. Go's compiler needs one for each function.
    tables: 100_000, 10_000_000;
    /// The resource handles that are open at once.
    handles: 1_000, 1_000_000;
    host_calls: 100_000, 100_000_000;
    /// The data of one host call, in each direction.
    hostcall_mib: 24, 1024;
    request_mib: 16, 1024;
    result_kib: 1_024, 1024 * 1024;
    /// The nesting of a result. Ruby's parser rejects more than 100 levels.
    result_depth: 90, 90;
    wasm_mib: 64, 1024;
    compile_seconds: 120, 3600;
    compile_mib: 2_048, MIB_MAX;
    http_requests: 5_000, 1_000_000;
    http_request_mib: 16, 1024;
    http_response_mib: 16, 1024;
    /// All HTTP bodies of a call together, except images.
    http_total_mib: 256, MIB_MAX;
    http_headers: 64, 1000;
    header_kib: 32, 256;
    url_bytes: 8_192, 1024 * 1024;
    connect_seconds: 10, 3600;
    first_byte_seconds: 60, 3600;
    idle_seconds: 30, 3600;
    log_lines: 2_000, 1_000_000;
    line_bytes: 4_096, 1024 * 1024;
    log_kib: 512, 64 * 1024;
    registry_kib: 256, 16 * 1024;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_range() {
        assert_eq!(Limits::default().problems(), Vec::<String>::new());
    }

    #[test]
    fn a_limit_out_of_range_is_named() {
        let limits = Limits { memory_mib: 0, ..Limits::default() };
        assert_eq!(limits.problems(), ["`limits.memory_mib` is 0; it must be from 1 to 4096"]);
    }

    #[test]
    fn an_unknown_limit_is_rejected() {
        let error = serde_json::from_str::<Limits>(r#"{"memory_mb": 1}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `memory_mb`"), "{error}");
    }
}
