//! Fuzz targets. Each one runs a parser of the runtime on arbitrary bytes, and
//! asserts properties of the result.
//!
//! A target checks more than the absence of panics: where possible it computes the
//! right result itself, without the runtime's code. Targets use only loopback and a
//! temporary directory, and wait only for the code that they test.

mod bytes;
mod config;
mod destination;
mod dns;
mod exchange;
mod gate;
mod http;
mod image;
mod input;
mod json;
mod log;
mod loopback;
mod needs;
mod policy;
mod registry;
mod request;
mod screen;
mod settings;
mod slots;
mod surface;
mod vault;

/// Runs a parser on these bytes. Panics if a property does not hold.
pub type Target = fn(&[u8]);

/// The targets, sorted by name. Each has its seeds in `corpus/<name>`.
pub const TARGETS: &[(&str, Target)] = &[
    ("config", config::fuzz),
    ("destination", destination::fuzz),
    ("dns", dns::fuzz_answer),
    ("exchange", exchange::fuzz),
    ("gate", gate::fuzz),
    ("image", image::fuzz),
    ("json", json::fuzz),
    ("log", log::fuzz),
    ("needs", needs::fuzz),
    ("policy", policy::fuzz),
    ("registry", registry::fuzz),
    ("request", request::fuzz),
    ("resolver-files", dns::fuzz_resolver_files),
    ("screen", screen::fuzz),
    ("settings", settings::fuzz),
    ("slots", slots::fuzz),
    ("surface", surface::fuzz),
    ("vault", vault::fuzz),
];
