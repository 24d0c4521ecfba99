//! Bodies for the fuzzer: each drives one reader of the runtime with whatever
//! bytes it is given, and asserts what must hold for the answer.
//!
//! Not panicking is the least of it. Each body has an opinion of its own about
//! the right answer, written without the runtime's help where that is possible.
//! Bodies reach no further than loopback and a temporary directory, and wait
//! for nothing but the code that they drive.

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

pub type Body = fn(&[u8]);

/// By name; each has its seeds in `corpus/<name>`.
pub const TARGETS: &[(&str, Body)] = &[
    ("config", config::body),
    ("destination", destination::body),
    ("dns", dns::answer),
    ("exchange", exchange::body),
    ("gate", gate::body),
    ("image", image::body),
    ("json", json::body),
    ("log", log::body),
    ("names", dns::files),
    ("needs", needs::body),
    ("policy", policy::body),
    ("registry", registry::body),
    ("request", request::body),
    ("screen", screen::body),
    ("settings", settings::body),
    ("slots", slots::body),
    ("surface", surface::body),
    ("vault", vault::body),
];
