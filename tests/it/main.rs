//! Black-box tests of the built binaries, one module per subject.

mod author;
mod configs;
mod conformance;
mod describes;
mod endings;
mod limits;
mod prepared;
mod requests;
mod traps;
mod wasi;
