use serde_json::{Value, json};
use tests::cloud::*;
use tests::servers::{Answer, Server, with};
use rustix::process::Signal;

#[test]
fn header() {
    let server = Server::answering(Answer::ok(""));
    let o = outcomes(&job(json!([server.grant("api")])), &json!([with(get(&server.url("/")), json!({"headers": {"X-A": "é"}})), with(get(&server.url("/")), json!({"headers": {"X-A": " a "}})), with(get(&server.url("/")), json!({"headers": {"X-A": "\u{200b}\u{202e}"}}))]));
    eprintln!("{o:#?} {:?}", server.requests().iter().map(|s| s.headers.clone()).collect::<Vec<_>>());
}
#[test]
fn head() {
    let server = Server::answering(Answer::bytes("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"));
    let o = outcomes(&job(json!([server.grant("api")])), &json!([{"op": "http", "method": "HEAD", "url": server.url("/")}]));
    eprintln!("{o:#?}");
}
#[test]
fn perf() {
    for (name, body) in [("text", "abcdefghijklmnop".repeat(1<<20).into_bytes()), ("backslashes", "\\n\\u0041%41&amp;".repeat(1<<20).into_bytes()), ("slashes", b"\\".repeat(16<<20)), ("amp", b"&".repeat(16<<20)), ("nl", b"a\n".repeat(8<<20)), ("xml", b"<a>userdata".repeat((16<<20)/12)), ("json", [&b"{\"userdata\":["[..], &b"1,".repeat(7<<20), b"1]}"].concat())] {
        let len = body.len();
        let server = Server::answering(Answer::ok(body));
        let job = job(json!([server.grant("api")])).properties(json!({"a": "secret-number-one", "b": "secret-number-two", "c": {"d": "-----BEGIN X-----\nabcdefghijklmnopqrstuvwxyzabcdefghijklmnop\n-----END X-----"}}));
        let r = call(&job, &json!([with(get(&server.url("/")), json!({"keep": 1}))]));
        eprintln!("{name} {len} {:?} {}", r.took, &r.message()[..200.min(r.message().len())]);
    }
}
#[test]
fn signal() {
    let server = Server::answering(Answer::stall(""));
    let job = job(json!([server.grant("api")])).limits(json!({"cleanup_seconds": 1}));
    let r = job.script(json!([{"op": "log", "message": "asking"}, {"op": "http", "method": "POST", "url": server.url("/vms?q=secret")}])).signal_at("asking", Signal::TERM).run();
    eprintln!("{:?} {}", r.took, r.json);
    let r = job.script(json!([{"op": "http", "method": "POST", "url": server.url("/vms"), "timeout_ms": 200}, {"op": "trap"}])).run();
    eprintln!("{:?} {}", r.took, r.json);
}
#[test]
fn abort() {
    let dir = tempfile::tempdir().unwrap();
    let registry = tests::registry_server::RegistryServer::start(dir.path());
    let server = Server::answering(Answer::ok("a secret of the job"));
    let job = job(json!([server.grant("api")])).properties(json!({"p": "a secret of the job"})).configure(|c| c["registry"] = registry.section());
    let r = create_vm(&job, &json!([{"op": "agent.bootstrap"}, {"op": "agent.created", "vm": "vm-1", "key": "vm-1"}, get(&server.url("/")), get(&server.url("/")), {"op": "result", "json": "vm-1"}])).stemcell(1).run();
    eprintln!("{} {:?}", r.json, registry.get("vm-1"));
    let job = job.limits(json!({"wall_seconds": 1, "cleanup_seconds": 2}));
    let r = create_vm(&job, &json!([{"op": "agent.bootstrap"}, {"op": "agent.created", "vm": "vm-1", "key": "vm-1"}, {"op": "clock.sleep", "ms": 10000}, {"op": "error", "kind": "cloud", "message": "x"}])).stemcell(1).run();
    eprintln!("{} {:?}", r.json, registry.get("vm-1"));
    let r = create_vm(&job, &json!([{"op": "agent.bootstrap"}, {"op": "agent.created", "vm": "vm-1", "key": "vm-1"}, {"op": "loop"}])).stemcell(1).run();
    eprintln!("{} {:?}", r.json, registry.get("vm-1"));
}
