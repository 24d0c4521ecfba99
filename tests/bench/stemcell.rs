//! The upload of a stemcell's image to a cloud: a raw image compared with `curl`, and
//! the member of a compressed archive compared with `tar | curl`.

use crate::program::Program;
use crate::report::{Report, Target};
use crate::rounds::{quantile, ratio};
use crate::startup::{call, megabytes, request};
use crate::{Bench, discard};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use tests::servers::with;
use tests::{archive, cloud, dist};

const MEMBER: &str = "root.img";
const BLOCK: usize = 1 << 20;

pub(crate) fn measure(bench: &Bench, report: &mut Report) -> Result<(), String> {
    let blocks = if bench.quick { 256 } else { 4096 };
    let server = discard::plain();
    let url = server.url("/image");
    let job = cloud::job(json!([with(server.grant("cloud"), json!({"plain_http": true}))]));
    let config = job.config_file();
    let upload = |name: &str, image: &Path, operation: Value| {
        let operation = with(operation, json!({"op": "http", "method": "PUT", "url": url}));
        let script = json!([operation, {"op": "result", "json": "stemcell-1"}]);
        let body = request("create_stemcell", json!([image, {"probe": script}]));
        call(name, &dist::hot(), &config, &bench.write(&format!("{name}.json"), body.to_string()))
    };
    let shell = |name: &str, line: String| {
        let script = bench.write(&format!("{name}.sh"), format!("set -e\n{line}\necho done\n"));
        Program::new(name, &[Path::new("/bin/sh"), &script], Path::new("/dev/null")).expecting("done")
    };
    let failed = |error: std::io::Error| format!("the image cannot be written: {error}");
    let curl = format!("curl --silent --fail --output /dev/null --header Expect: --upload-file - {url}");
    let (small, raw) =
        (image(bench, "small.img", 64).map_err(failed)?, image(bench, "raw.img", blocks).map_err(failed)?);
    let packed = packed(bench, &raw, blocks).map_err(failed)?;
    let ours = upload("image", &raw, json!({"image": true}));
    let theirs = shell("curl", curl.replace("--upload-file -", &format!("--upload-file {}", raw.display())));
    report.figure("image upload: throughput vs. curl", speedup(&ours, &theirs)?, "x", Target::AtLeast(0.85));
    let (few, many) = (upload("small-image", &small, json!({"image": true})).memory()?, ours.memory()?);
    report.figure("image upload: peak memory", megabytes(many), "MB", Target::AtMost(24.0));
    report.figure("image upload: peak memory vs. image of 64 MiB", many as f64 / few as f64, "x", Target::AtMost(1.1));
    let ours = upload("member", &packed, json!({"image": true, "image_member": MEMBER}));
    let theirs = shell("tar-curl", format!("tar -xzOf {} {MEMBER} | {curl}", packed.display()));
    report.figure(
        "tar.gz member upload: throughput vs. tar and curl",
        speedup(&ours, &theirs)?,
        "x",
        Target::AtLeast(0.9),
    );
    Ok(())
}

/// Returns how many times as fast `ours` is, by the medians of three runs in turns.
pub(crate) fn speedup(ours: &Program, theirs: &Program) -> Result<f64, String> {
    let mut times = [ours, theirs].map(|_| Vec::new());
    for _ in 0..3 {
        for (program, times) in [ours, theirs].into_iter().zip(&mut times) {
            times.push(program.run()?.wall);
        }
    }
    let [ours, theirs] = times.map(|times| quantile(times, 50));
    Ok(ratio(theirs, ours))
}

/// Returns a block like those of a system disk: half empty, half compressible.
fn block(at: usize) -> Vec<u8> {
    let mut state = at as u64 + 1;
    let mut block = vec![0; BLOCK];
    for word in block[..BLOCK / 2].chunks_exact_mut(4) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Two of four bytes are random, which compresses about as well as installed programs.
        word[..2].copy_from_slice(&state.to_le_bytes()[4..6]);
    }
    block
}

/// Writes an image of so many MiB.
pub(crate) fn image(bench: &Bench, name: &str, blocks: usize) -> std::io::Result<PathBuf> {
    let path = bench.files.path().join(name);
    let mut file = File::create(&path)?;
    (0..blocks).try_for_each(|at| file.write_all(&block(at)))?;
    Ok(path)
}

fn packed(bench: &Bench, raw: &Path, blocks: usize) -> std::io::Result<PathBuf> {
    let path = bench.files.path().join("image.tgz");
    let mut gzip = GzEncoder::new(File::create(&path)?, Compression::fast());
    gzip.write_all(&archive::header(MEMBER, tar::EntryType::Regular, (blocks * BLOCK) as u64))?;
    std::io::copy(&mut File::open(raw)?, &mut gzip)?;
    gzip.write_all(&archive::with_end_marker(Vec::new()))?;
    gzip.finish()?;
    Ok(path)
}
