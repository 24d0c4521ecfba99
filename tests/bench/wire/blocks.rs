//! The upload of an image in blocks, compared with 16 processes of `curl`, each of which
//! sends every sixteenth block from a file of its own over one kept connection.

use super::link::Link;
use crate::program::Program;
use crate::report::{Report, Target};
use crate::startup::{call, megabytes, request};
use crate::stemcell::{image, speedup};
use crate::{Bench, discard};
use serde_json::json;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use tests::servers::{Authority, Validity, grant, with};
use tests::{Job, cloud, dist};

const BLOCK: usize = 512 << 10;
/// The number of processes of `curl`, and of blocks that the runtime sends at once.
const AT_ONCE: usize = 16;

pub(super) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let mebibytes = if bench.quick { 256 } else { 4096 };
    let authority = Authority::new();
    let server = discard::tls(authority.issue(&["127.0.0.1"], Validity::Now).server(None));
    let link = Link::to(server.address());
    let origin = format!("https://{}", link.address());
    let ca = bench.write("blocks-ca.pem", authority.pem());
    let allowed = json!({"methods": ["PUT"], "blocks": true, "block_headers": ["x-checksum"], "tls": {"ca": ca}});
    let job = cloud::job(json!([with(grant("blocks", &origin), allowed)]));
    let failed = |error: io::Error| format!("the blocks cannot be written: {error}");
    let (small, large) =
        (image(bench, "small.img", 64).map_err(failed)?, image(bench, "large.img", mebibytes).map_err(failed)?);
    let ours = upload(bench, &job, &large, &origin);
    let theirs = curls(bench, &large, &origin, &ca).map_err(failed)?;
    let name = format!("{mebibytes} MiB in blocks of 512 KiB");
    report.figure(
        format!("{name}: throughput vs. {AT_ONCE} processes of curl"),
        speedup(&ours, &theirs)?,
        "x",
        Target::AtLeast(0.8),
    );
    let (few, many) = (upload(bench, &job, &small, &origin).memory()?, ours.memory()?);
    report.figure(format!("{name}: peak memory"), megabytes(many), "MB", Target::AtMost(32.0));
    report.figure(
        format!("{name}: peak memory vs. image of 64 MiB"),
        many as f64 / few as f64,
        "x",
        Target::AtMost(1.1),
    );
    Ok(())
}

/// Returns a `create_stemcell` that uploads this image in blocks, each with its digest.
fn upload(bench: &Bench, job: &Job, image: &Path, origin: &str) -> Program {
    let script = json!([
        {"op": "http.blocks", "url": format!("{origin}/blocks/{{index}}"), "block_bytes": BLOCK,
            "headers": {"x-checksum": "{sha256-base64}"}},
        {"op": "result", "json": "stemcell-1"},
    ]);
    let body = request("create_stemcell", json!([image, {"probe": script}]));
    let name = image.file_stem().unwrap_or_default().to_string_lossy();
    let file = bench.write(&format!("blocks-{name}.json"), body.to_string());
    call("blocks", &dist::hot(), &job.config_file(), &file)
}

/// Cuts the image into one file per block, and returns a program that uploads them.
fn curls(bench: &Bench, image: &Path, origin: &str, ca: &Path) -> io::Result<Program> {
    let mut configs = vec![String::new(); AT_ONCE];
    let mut image = File::open(image)?;
    for (number, config) in (0..).zip((0..AT_ONCE).cycle()) {
        let mut block = Vec::with_capacity(BLOCK);
        if image.by_ref().take(BLOCK as u64).read_to_end(&mut block)? == 0 {
            break;
        }
        let file: PathBuf = bench.write(&format!("block-{number}"), block);
        let (file, url) = (file.display(), format!("{origin}/blocks/{number}"));
        let _ = write!(configs[config], "upload-file = \"{file}\"\nurl = \"{url}\"\noutput = \"/dev/null\"\n");
    }
    let mut line = "set -e\npids=\n".to_owned();
    for (number, config) in configs.iter().enumerate() {
        let config = bench.write(&format!("curl-{number}"), config);
        let _ = write!(
            line,
            "curl --silent --fail --header Expect: --cacert {} --config {} &\npids=\"$pids $!\"\n",
            ca.display(),
            config.display()
        );
    }
    line += "for pid in $pids; do wait $pid; done\necho done\n";
    let script = bench.write("curls.sh", line);
    Ok(Program::new("curl", &[Path::new("/bin/sh"), &script], Path::new("/dev/null")).expecting("done"))
}
