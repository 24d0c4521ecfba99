//! The interfaces of WASI that guests may import.
//!
//! Programs with a standard library import clocks, randomness, standard streams and a file system
//! even if they never use them. Clocks, randomness and streams work, with an empty context. The
//! file system and sockets are stubs that return errors. All other imports are rejected before
//! compilation.

use crate::host::GuestState;
use wasmtime::component::types::{ComponentInstance, ComponentItem, Type};
use wasmtime::component::{Component, HasData, Linker, ResourceTable, ResourceType, Val};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::cli::WasiCli;
use wasmtime_wasi::cli::WasiCliView;
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::{cli, clocks, random};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi_io::bindings::wasi::io;

type Link = fn(&mut Linker<GuestState>) -> wasmtime::Result<()>;

/// How an interface is offered.
enum Offer {
    /// wasmtime's implementation with an empty context.
    Real(Link),
    /// An implementation of this module for what every guest calls at its start, so that most
    /// guests need no context.
    Minimal(fn(&mut Linker<GuestState>, &str) -> wasmtime::Result<()>),
    /// A stub that returns errors.
    Stub,
}

/// All interfaces that are offered, by their names without version. Any version 0.2 is accepted.
const OFFERED: &[(&str, Offer)] = &[
    ("wasi:cli/environment", Offer::Minimal(environment)),
    ("wasi:cli/exit", Offer::Real(|l| cli::exit::add_to_linker::<_, WasiCli>(l, GuestState::cli))),
    ("wasi:cli/stderr", Offer::Real(|l| cli::stderr::add_to_linker::<_, WasiCli>(l, GuestState::cli))),
    ("wasi:cli/stdin", Offer::Real(|l| cli::stdin::add_to_linker::<_, WasiCli>(l, GuestState::cli))),
    ("wasi:cli/stdout", Offer::Real(|l| cli::stdout::add_to_linker::<_, WasiCli>(l, GuestState::cli))),
    ("wasi:cli/terminal-input", Offer::Real(|l| cli::terminal_input::add_to_linker::<_, WasiCli>(l, GuestState::cli))),
    (
        "wasi:cli/terminal-output",
        Offer::Real(|l| cli::terminal_output::add_to_linker::<_, WasiCli>(l, GuestState::cli)),
    ),
    (
        "wasi:cli/terminal-stderr",
        Offer::Real(|l| cli::terminal_stderr::add_to_linker::<_, WasiCli>(l, GuestState::cli)),
    ),
    ("wasi:cli/terminal-stdin", Offer::Real(|l| cli::terminal_stdin::add_to_linker::<_, WasiCli>(l, GuestState::cli))),
    (
        "wasi:cli/terminal-stdout",
        Offer::Real(|l| cli::terminal_stdout::add_to_linker::<_, WasiCli>(l, GuestState::cli)),
    ),
    (
        "wasi:clocks/monotonic-clock",
        Offer::Real(|l| clocks::monotonic_clock::add_to_linker::<_, WasiClocks>(l, GuestState::clocks)),
    ),
    (
        "wasi:clocks/wall-clock",
        Offer::Real(|l| clocks::wall_clock::add_to_linker::<_, WasiClocks>(l, GuestState::clocks)),
    ),
    ("wasi:filesystem/preopens", Offer::Stub),
    ("wasi:filesystem/types", Offer::Stub),
    ("wasi:io/error", Offer::Real(|l| io::error::add_to_linker::<_, Table>(l, |state| state.ctx().table))),
    ("wasi:io/poll", Offer::Real(|l| io::poll::add_to_linker::<_, Table>(l, |state| state.ctx().table))),
    ("wasi:io/streams", Offer::Real(|l| io::streams::add_to_linker::<_, Table>(l, |state| state.ctx().table))),
    (
        "wasi:random/insecure",
        Offer::Real(|l| random::insecure::add_to_linker::<_, WasiRandom>(l, |s| s.ctx().ctx.random())),
    ),
    ("wasi:random/insecure-seed", Offer::Minimal(seed)),
    (
        "wasi:random/random",
        Offer::Real(|l| random::random::add_to_linker::<_, WasiRandom>(l, |s| s.ctx().ctx.random())),
    ),
    ("wasi:sockets/instance-network", Offer::Stub),
    ("wasi:sockets/ip-name-lookup", Offer::Stub),
    ("wasi:sockets/network", Offer::Stub),
    ("wasi:sockets/tcp", Offer::Stub),
    ("wasi:sockets/tcp-create-socket", Offer::Stub),
    ("wasi:sockets/udp", Offer::Stub),
    ("wasi:sockets/udp-create-socket", Offer::Stub),
];

struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// Returns true if a component may import this interface of WASI.
pub fn is_offered(import: &str) -> bool {
    offer(import).is_some()
}

fn offer(import: &str) -> Option<&'static Offer> {
    let (name, version) = import.split_once('@')?;
    // All versions 0.2 are compatible, and the linker uses the newest one.
    version.strip_prefix("0.2.")?;
    OFFERED.iter().find(|(offered, _)| *offered == name).map(|(_, offer)| offer)
}

/// Links only those interfaces of the list that the component imports, because each one costs time.
pub fn link(linker: &mut Linker<GuestState>, component: &Component) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    for (name, item) in component.component_type().imports(&engine) {
        match (offer(name), item.ty) {
            #[cfg(feature = "mutation-testing")]
            (Some(Offer::Stub), _) if crate::host::mutants::files(linker, name)? => {}
            (Some(Offer::Real(link)), _) => link(linker)?,
            (Some(Offer::Minimal(link)), _) => link(linker, name)?,
            (Some(Offer::Stub), ComponentItem::ComponentInstance(instance)) => stub(linker, name, &instance)?,
            _ => {}
        }
    }
    Ok(())
}

/// Links `environment` without variables, arguments and directory.
fn environment(linker: &mut Linker<GuestState>, name: &str) -> wasmtime::Result<()> {
    #[cfg(feature = "mutation-testing")]
    if crate::host::mutants::environment() {
        return cli::environment::add_to_linker::<_, WasiCli>(linker, GuestState::cli);
    }
    let mut target = linker.instance(name)?;
    target.func_wrap("get-environment", |_, (): ()| Ok((Vec::<(String, String)>::new(),)))?;
    target.func_wrap("get-arguments", |_, (): ()| Ok((Vec::<String>::new(),)))?;
    target.func_wrap("initial-cwd", |_, (): ()| Ok((None::<String>,)))
}

/// Links `insecure-seed`, which returns two random numbers.
fn seed(linker: &mut Linker<GuestState>, name: &str) -> wasmtime::Result<()> {
    linker.instance(name)?.func_wrap("insecure-seed", |_, (): ()| {
        let number = || getrandom::u64().map_err(|error| wasmtime::format_err!("cannot get random numbers: {error}"));
        Ok(((number()?, number()?),))
    })
}

/// Defines every function of the interface as one that returns an error.
fn stub(linker: &mut Linker<GuestState>, name: &str, instance: &ComponentInstance) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    let mut target = linker.instance(name)?;
    for (item_name, item) in instance.exports(&engine) {
        match item.ty {
            ComponentItem::ComponentFunc(function) => {
                let results: Vec<Type> = function.results().collect();
                target.func_new(item_name, move |_, _, _, answers| {
                    for (answer, ty) in answers.iter_mut().zip(&results) {
                        *answer = refusal(ty)?;
                    }
                    Ok(())
                })?;
            }
            ComponentItem::Resource(_) if OWN_RESOURCES.contains(&item_name) => {
                target.resource(item_name, ResourceType::host::<Stubbed>(), |_, _| Ok(()))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A resource of a stub, which is never created.
struct Stubbed;

/// The resources that the stubbed interfaces define. Other resources they only use.
const OWN_RESOURCES: &[&str] = &[
    "descriptor",
    "directory-entry-stream",
    "incoming-datagram-stream",
    "network",
    "outgoing-datagram-stream",
    "resolve-address-stream",
    "tcp-socket",
    "udp-socket",
];

/// Returns the error value of a function's result type.
fn refusal(ty: &Type) -> wasmtime::Result<Val> {
    Ok(match ty {
        Type::Result(result) => Val::Result(Err(result.err().map(|ty| refusal(&ty)).transpose()?.map(Box::new))),
        // `access` in file systems, `unknown` or `access-denied` in sockets.
        Type::Enum(cases) => {
            let names: Vec<&str> = cases.names().collect();
            let name = ["access", "access-denied"].into_iter().find(|name| names.contains(name));
            Val::Enum(name.or(names.first().copied()).unwrap_or_default().to_owned())
        }
        Type::Option(_) => Val::Option(None),
        Type::List(_) => Val::List(Vec::new()),
        Type::Bool => Val::Bool(false),
        _ => wasmtime::bail!("this interface is a stub, because guests have no files and no sockets"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_27_sorted_names_and_no_wasi_http() {
        let names: Vec<&str> = OFFERED.iter().map(|(name, _)| *name).collect();
        assert!(names.is_sorted());
        assert_eq!(names.len(), 27, "a change of this list is a change of what guests can do: say so in CHANGELOG.md");
        assert!(!names.iter().any(|name| name.starts_with("wasi:http")));
    }

    #[test]
    fn only_versions_0_2_are_accepted() {
        for (import, offered) in [
            ("wasi:io/poll@0.2.0", true),
            ("wasi:io/poll@0.2.6", true),
            ("wasi:io/poll@0.3.0", false),
            ("wasi:io/poll", false),
            ("wasi:http/outgoing-handler@0.2.0", false),
            ("wasi:keyvalue/store@0.2.0", false),
        ] {
            assert_eq!(is_offered(import), offered, "{import}");
        }
    }
}
