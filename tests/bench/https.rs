//! A method with one HTTPS request, beside a native program with the same client
//! and the same TLS.

use crate::Bench;
use crate::report::{Bar, Report};
use crate::rounds::interleaved;
use crate::starts::{call, request};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tests::servers::{Answer, Authority, Server, Validity, with};
use tests::{Job, cloud, dist};

/// One that says hello, as long as it lives.
pub(crate) struct Cloud {
    pub(crate) job: Job,
    /// Has the probe ask it once.
    pub(crate) request: Value,
    pub(crate) server: Server,
    ca: PathBuf,
}

impl Cloud {
    pub(crate) fn start(files: &Path) -> Cloud {
        let authority = Authority::new();
        let identity = authority.issue(&["127.0.0.1"], Validity::Now);
        let server = Server::tls(identity.server(None), |_| Answer::ok("hello"));
        let ca = files.join("ca.pem");
        tests::job::write(&ca, authority.pem().as_bytes());
        let job = cloud::job(json!([with(server.grant("cloud"), json!({"tls": {"ca": ca}}))]));
        let script = json!([{"op": "http", "url": server.url("/hello")}, {"op": "result", "json": "disk-1"}]);
        let request = request("create_disk", json!([1024, {"probe": script}, null]));
        Cloud { job, request, server, ca }
    }
}

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let Cloud { job, request, server, ca } = Cloud::start(bench.files.path());
    let disk = bench.write("https.json", request.to_string());
    let native = bench.write("https-peer.json", json!({"url": server.url("/hello"), "ca": ca}).to_string());
    let all = interleaved(
        &[
            call("one HTTPS request", &dist::hot(), &job.config_file(), &disk),
            call("Rust", &bench.peer("peer-https"), &native, &disk),
        ],
        bench.rounds(),
    )?;
    report.ratio("a guest method with one HTTPS request", &all[0], &all[1], Bar::AtMost(1.3));
    report.runs("https", &all);
    Ok(())
}
