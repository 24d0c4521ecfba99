//! Recognises by an error of the engine which of its own limits was reached.
//!
//! wasmtime has a public type for one of these errors only, so this module compares the texts of
//! the others. The tests of `hostcall_mib` and `handles` in `tests/it/limits.rs` reach both
//! limits, so they fail if a new wasmtime changes these texts.

use wasmtime::component::ResourceTableError;

/// A limit that the engine enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineLimit {
    /// The data of one host call, `hostcall_mib`.
    HostCallData,
    /// The resources that are open at once, `handles`.
    Handles,
}

const HOST_CALL_DATA: &str =
    "too much data is being copied between the host and the guest: fuel allocated for hostcalls has been exhausted";

const HANDLES: [&str; 2] = [
    "cannot allocate another handle: store handle limit exceeded",
    "cannot lend resource: store handle limit exceeded",
];

impl EngineLimit {
    /// Returns the limit that an error of the engine is about, if it is about one.
    pub fn of(error: &wasmtime::Error) -> Option<EngineLimit> {
        if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
            return Some(EngineLimit::Handles);
        }
        let cause = error.root_cause().to_string();
        if cause == HOST_CALL_DATA {
            return Some(EngineLimit::HostCallData);
        }
        HANDLES.contains(&cause.as_str()).then_some(EngineLimit::Handles)
    }
}
