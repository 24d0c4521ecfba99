//! One function per subcommand. Only `run` is in the hot binary.

#[cfg(feature = "compiler")]
pub mod call;
#[cfg(feature = "compiler")]
pub mod check;
#[cfg(feature = "compiler")]
pub mod cli;
#[cfg(feature = "compiler")]
pub mod inspect;
#[cfg(feature = "compiler")]
pub mod new;
#[cfg(feature = "compiler")]
pub mod prepare;
pub mod run;
