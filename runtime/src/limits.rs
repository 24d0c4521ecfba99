//! All limits of a call, each with its name, default and largest value.
//!
//! The code that enforces a limit reports it with `Failure::limit`. Mutation tests lift each
//! limit, and fail if no test notices.

use serde::{Deserialize, Serialize};

/// A limit with its default and its largest value.
pub struct Limit {
    pub name: &'static str,
    pub default: u64,
    pub max: u64,
    /// What it limits, in sentences that operators read. Starts with a blank.
    pub meaning: &'static str,
}

/// The name and the configured value of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedLimit {
    pub name: &'static str,
    pub value: u64,
}

macro_rules! limits {
    ($($(#[doc = $meaning:literal])+ $name:ident: $default:expr, $max:expr;)*) => {
        #[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
        #[serde(deny_unknown_fields, default)]
        pub struct Limits {
            $($(#[doc = $meaning])+ pub $name: u64,)*
        }

        impl Default for Limits {
            fn default() -> Self {
                Limits { $($name: $default,)* }
            }
        }

        /// Every limit, for `explain`.
        pub const ALL: &[Limit] =
            &[$(Limit { name: stringify!($name), default: $default, max: $max, meaning: concat!($($meaning),+) },)*];

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
    /// The time for the whole call, including waiting. Compiling the guest does not count. Reading
    /// the request has a separate time of the same length.
    wall_seconds: 3600, SECONDS_MAX;
    /// The time for the whole call of `create_stemcell`, which moves gigabytes.
    create_stemcell_wall_seconds: 14_400, SECONDS_MAX;
    /// The CPU time of guest code. Waiting and long work of the host do not count.
    cpu_seconds: 60, SECONDS_MAX;
    /// The time to clean up after a deadline, a signal, a leak or a lost caller, and the time to
    /// delete what an undelivered call created.
    cleanup_seconds: 120, SECONDS_MAX;
    /// The linear memory of the guest.
    memory_mib: 256, 4096;
    /// The stack of the guest.
    stack_kib: 1024, 8192;
    /// The number of elements in all tables of the guest. A Go guest has one for each function.
    tables: 100_000, 10_000_000;
    /// The number of resource handles that are open at once.
    handles: 1_000, 1_000_000;
    /// The number of calls from the guest to the host.
    host_calls: 100_000, 100_000_000;
    /// The data of one call between guest and host.
    hostcall_mib: 24, 1024;
    /// The size of the request of the Director or the CLI.
    request_mib: 16, 1024;
    /// The size of the guest's result.
    result_kib: 1_024, 1024 * 1024;
    /// The nesting of the guest's result. Ruby's parser stops at 100.
    result_depth: 90, 90;
    /// The size of the guest's file.
    wasm_mib: 64, 1024;
    /// The time to compile the guest.
    compile_seconds: 120, 3600;
    /// The address space to compile the guest and to run its `describe`.
    compile_mib: 2_048, MIB_MAX;
    /// The number of HTTP requests of a call.
    http_requests: 5_000, 1_000_000;
    /// The size of the body of one request.
    http_request_mib: 16, 1024;
    /// The size of the body of one response, as the guest gets it. The host reads twice `http_request_mib` more (at most 64 MiB), and 1 MiB, because a server may send back the request with secrets that are removed.
    http_response_mib: 16, 1024;
    /// The size of all bodies of a call together, as the guest sends and gets them, except stemcell
    /// images. Secrets in slots, captured values and what is removed from responses do not count.
    http_total_mib: 256, MIB_MAX;
    /// The number of blocks of uploads in blocks of a call. They do not count as HTTP requests.
    http_blocks: 200_000, 100_000_000;
    /// The memory for blocks: up to 16 that are sent at once, and two that are read ahead. Larger blocks are sent fewer at once.
    http_blocks_mib: 64, 4096;
    /// The number of headers of one message.
    http_headers: 64, 1000;
    /// The size of all headers of one message; those of a response as the guest gets them.
    header_kib: 32, 256;
    /// The length of a URL.
    url_bytes: 8_192, 1024 * 1024;
    /// The time to connect.
    connect_seconds: 10, 3600;
    /// The time from the request to the first byte of the response.
    first_byte_seconds: 60, 3600;
    /// The time without any progress in a body.
    idle_seconds: 30, 3600;
    /// The number of log lines of the guest.
    log_lines: 2_000, 1_000_000;
    /// The length of one log line.
    line_bytes: 4_096, 1024 * 1024;
    /// The size of all log lines of the guest together.
    log_kib: 512, 64 * 1024;
    /// The size of the registry settings of one instance. `disks` and `networks`, which guests
    /// change, and all other settings are limited separately.
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

    #[test]
    fn the_page_about_the_config_lists_every_limit() {
        let page = include_str!("../../docs/configuration.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.ends_with(" |") && line.starts_with("| `")).collect();
        for Limit { name, default, max, meaning } in ALL {
            let row = format!("| `{name}` | {default} | {max} |{meaning} |");
            assert!(rows.iter().any(|line| line.replace(',', "") == row.replace(',', "")), "no row: {row}");
        }
    }
}
