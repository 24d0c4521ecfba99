//! One module per subcommand (the hidden `compile-guest` is `component::compile`), the command line (`cli`), and what
//! several subcommands share (`calling_user`, `context_file`, `report`). Only `run` is part of the hot program.

#[cfg(feature = "compiler")]
pub mod call;
#[cfg(feature = "compiler")]
mod calling_user;
#[cfg(feature = "compiler")]
pub mod check;
#[cfg(feature = "compiler")]
pub mod cli;
#[cfg(feature = "compiler")]
mod context_file;
#[cfg(feature = "compiler")]
pub mod explain;
#[cfg(feature = "compiler")]
pub mod forget_leaks;
#[cfg(feature = "compiler")]
pub mod forget_tokens;
#[cfg(feature = "compiler")]
pub mod inspect;
#[cfg(feature = "compiler")]
pub mod new;
#[cfg(feature = "compiler")]
pub mod prepare;
#[cfg(feature = "compiler")]
pub mod registry;
#[cfg(feature = "compiler")]
mod report;
pub mod run;
