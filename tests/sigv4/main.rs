//! Compares signatures with those of the published test vectors, and with those of another implementation for random
//! requests.

mod other_implementation;
mod vectors;
