//! This library is empty: only its lock file, and the sources that it pins, are used.
