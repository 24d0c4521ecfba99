//! Empty: only this crate's lock file and the sources that it pins are used.
