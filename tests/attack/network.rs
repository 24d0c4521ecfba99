//! Two network namespaces, near and far, and a veth pair between them.
//!
//! The far namespace owns every address, so that every packet arrives there and is
//! seen. Neither namespace has another route, which is checked before the first
//! request.

use nix::sched::{CloneFlags, unshare};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::mpsc::channel;

/// These addresses are public ones, but in the namespaces they belong to the corpus.
pub(crate) const NEAR: &str = "5.6.7.1";
pub(crate) const FAR: &str = "5.6.7.2";
pub(crate) const NAME_SERVER: &str = "5.6.7.53";
pub(crate) const NEAR6: &str = "2a05:d000::1";
pub(crate) const FAR6: &str = "2a05:d000::2";

/// Starts this program again in its own network and mount namespaces.
pub(crate) fn enter(inside: &str, arguments: &[String]) -> Result<ExitCode, String> {
    let this = std::env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--propagation", "private"]);
    if !rustix::process::geteuid().is_root() {
        // The user is not mapped to root: the compiling child would then try to become `nobody`, which this
        // namespace does not have.
        command.args(["--user", "--map-current-user", "--keep-caps"]);
    }
    let possible = Command::new(command.get_program()).args(command.get_args()).arg("true").output();
    match possible {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(format!(
                "network namespaces are forbidden here ({why}), and the attacks need them: run it as root, or where user namespaces are allowed"
            ));
        }
        Err(error) => return Err(format!("`unshare` (package util-linux) cannot be started: {error}")),
    }
    let error = command.arg("--").arg(this).arg(inside).args(arguments).exec();
    Err(format!("`unshare` cannot be started: {error}"))
}

/// Replaces `hosts` and `resolv.conf` in this mount namespace.
pub(crate) fn mount_name_service(files: &Path) -> Result<(), String> {
    let hosts =
        "127.0.0.1 localhost\n::1 ip6-localhost\n127.0.0.1 pinned-in-hosts.test\n5.6.7.10 public-in-hosts.test\n";
    for (name, text) in [
        ("resolv.conf", format!("nameserver {NAME_SERVER}\noptions timeout:1 attempts:1\n")),
        ("hosts", hosts.to_owned()),
    ] {
        let file = files.join(name);
        tests::job::write(&file, text.as_bytes());
        tests::job::set_mode(&file, 0o644);
        run(Command::new("mount").arg("--bind").arg(&file).arg(Path::new("/etc").join(name)))?;
    }
    Ok(())
}

/// Creates the pair of namespaces, runs `far` in the far one, which is this thread's,
/// and then `near` in the near one.
pub(crate) fn run_in_pair<T: Send>(
    far: impl FnOnce() -> Result<(), String>,
    near: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    let (linked, is_linked) = channel();
    let (ready, is_ready) = channel();
    let here = std::process::id();
    std::thread::scope(|scope| {
        let running = scope.spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET)
                .map_err(|error| format!("cannot create the second network namespace: {error}"))?;
            ip(&format!("link add near0 type veth peer name far0 netns {here}"))?;
            linked.send(()).map_err(|error| error.to_string())?;
            is_ready.recv().map_err(|_| "the far side was not set up".to_owned())?;
            for arguments in [
                "link set lo up",
                &format!("addr add {NEAR}/24 dev near0"),
                &format!("addr add {NEAR6}/64 dev near0 nodad"),
                "link set near0 up",
                &format!("route add default via {FAR}"),
                &format!("-6 route add default via {FAR6}"),
            ] {
                ip(arguments)?;
            }
            check_isolation(&["lo", "near0"])?;
            near()
        });
        let far = || {
            is_linked.recv().map_err(|_| String::new())?;
            for arguments in [
                "link set lo up",
                &format!("addr add {FAR} peer {NEAR}/32 dev far0"),
                &format!("addr add {FAR6}/128 dev far0 nodad"),
                "link set far0 up",
                // Every address except the near side's is local.
                &format!("-6 route add {NEAR6}/128 dev far0 table local"),
                "route add local 0.0.0.0/0 dev lo",
                "-6 route add local ::/0 dev lo table local",
            ] {
                ip(arguments)?;
            }
            check_isolation(&["lo", "far0"])?;
            far()?;
            ready.send(()).map_err(|_| String::new())
        };
        let far = far();
        drop(ready);
        let near = running.join().unwrap_or_else(|_| Err("the near side panicked".to_owned()));
        match far {
            Err(why) if !why.is_empty() => Err(why),
            _ => near,
        }
    })
}

/// Fails if an interface other than these is up, or has a route.
fn check_isolation(known: &[&str]) -> Result<(), String> {
    let links = run(Command::new("ip").args(["-o", "link", "show", "up"]))?;
    let name = |line: &str| line.split(": ").nth(1).map(|name| name.split('@').next().unwrap_or(name).to_owned());
    let up: Vec<String> = links.lines().filter_map(name).collect();
    if up.iter().any(|name| !known.contains(&name.as_str())) {
        return Err(format!("only {known:?} may be up, but these interfaces are: {up:?}"));
    }
    for family in ["-4", "-6"] {
        let routes = run(Command::new("ip").args([family, "route", "show", "table", "all"]))?;
        let leads_out = |line: &&str| {
            let device = line.split_once(" dev ").and_then(|(_, rest)| rest.split(' ').next());
            device.is_some_and(|device| !known.contains(&device))
        };
        if let Some(route) = routes.lines().find(leads_out) {
            return Err(format!("there is a route out of the namespace: {route}"));
        }
    }
    Ok(())
}

fn ip(arguments: &str) -> Result<String, String> {
    run(Command::new("ip").args(arguments.split(' ')))
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
