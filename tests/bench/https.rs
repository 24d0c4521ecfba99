//! Compares a method that makes one HTTPS request with a native program that uses the
//! same HTTP client and the same TLS library.

use crate::Bench;
use crate::report::{Report, Target};
use crate::rounds::run_interleaved;
use crate::startup::{call, request};
use serde_json::json;
use tests::servers::{Answer, Authority, Server, Validity, with};
use tests::{cloud, dist};

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let authority = Authority::new();
    let identity = authority.issue(&["127.0.0.1"], Validity::Now);
    let server = Server::tls(identity.server(None), |_| Answer::ok("hello"));
    let ca = bench.write("ca.pem", authority.pem());
    let job = cloud::job(json!([with(server.grant("cloud"), json!({"tls": {"ca": ca}}))]));
    let script = json!([{"op": "http", "url": server.url("/hello")}, {"op": "result", "json": "disk-1"}]);
    let disk = bench.write("https.json", request("create_disk", json!([1024, {"probe": script}, null])).to_string());
    let native = bench.write("https-peer.json", json!({"url": server.url("/hello"), "ca": ca}).to_string());
    let all = run_interleaved(
        &[
            call("one HTTPS request", &dist::hot(), &job.config_file(), &disk),
            call("Rust", &bench.peer("peer-https"), &native, &disk),
        ],
        bench.rounds(),
    )?;
    report.ratio("a guest method with one HTTPS request", &all[0], &all[1], Target::AtMost(1.3));
    report.runs("https", &all);
    Ok(())
}
