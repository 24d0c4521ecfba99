//! The stemcell image as the body of a request: complete, with the right length, and
//! never in memory as a whole.

use serde_json::{Value, json};
use std::fs::{File, FileTimes};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tests::archive::{gzip, tar};
use tests::cloud::{answered, denied, failed, job, outcome, with_policy};
use tests::servers::{Answer, Server, with};
use tests::{Job, job as files, probe};

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| u8::try_from(index * 31 % 251).unwrap()).collect()
}

/// Runs `create_stemcell` with this image and script and returns the outcomes.
fn stemcell(job: &Job, image: &Path, script: Value) -> Vec<Value> {
    let response = job.call("create_stemcell", json!([image, {"probe": script}])).run();
    probe::outcomes(response.result())
}

fn put(server: &Server, path: &str, part: Value) -> Value {
    with(json!({"op": "http", "method": "PUT", "url": server.url(path)}), part)
}

#[test]
fn a_whole_image_or_one_member_of_it_arrives_complete() {
    let server = Server::answering(Answer::new(201, "stored"));
    let (disk, small) = (content(3 << 20), b"hello".to_vec());
    let archive = tar(&[("first", &small), ("image/root.img", &disk), ("last", b"")]);
    let job = job(json!([server.grant("images")])).limits(json!({"http_request_mib": 1, "http_total_mib": 1}));
    for (name, bytes, part, expected) in [
        ("whole", disk.clone(), json!({"image": true}), disk.clone()),
        ("empty", Vec::new(), json!({"image": true}), Vec::new()),
        ("tar", archive.clone(), json!({"image_member": "image/root.img"}), disk.clone()),
        ("tar, whole", archive.clone(), json!({"image": true}), archive.clone()),
        ("tar, empty member", archive.clone(), json!({"image_member": "last"}), Vec::new()),
        ("tar.gz", gzip(&archive), json!({"image_member": "image/root.img"}), disk.clone()),
        ("tar.gz, first", gzip(&archive), json!({"image_member": "first"}), small.clone()),
        ("tar.gz, whole", gzip(&archive), json!({"image": true}), gzip(&archive)),
    ] {
        let image = job.path("image");
        files::write(&image, &bytes);
        let outcomes = stemcell(
            &job,
            &image,
            json!([put(&server, &format!("/{}", name.replace(", ", "-").replace(' ', "-")), part)]),
        );
        answered(&outcomes[0], 201);
        let seen = server.requests().pop().unwrap();
        assert_eq!(
            (seen.length, seen.digest.as_str()),
            (expected.len() as u64, blake3::hash(&expected).to_string().as_str()),
            "{name}"
        );
        assert_eq!(seen.header("content-length"), Some(expected.len().to_string().as_str()), "{name}");
        assert_eq!(seen.header("transfer-encoding"), None, "{name}");
    }
}

#[test]
fn an_image_is_sent_with_the_auth_of_the_grant_and_only_to_granted_paths() {
    let server = Server::answering(Answer::ok(""));
    let guarded = with(
        server.grant("images"),
        json!({"methods": ["PUT"], "paths": ["/images/*"], "auth": {"bearer": "${password}"}, "plain_http": true}),
    );
    let job = with_policy(json!({"http": [guarded]})).properties(json!({"password": "an image's token"}));
    let image = job.path("image");
    files::write(&image, b"image");
    let whole = json!({"image": true});
    let script = json!([
        put(&server, "/images/1", whole.clone()),
        put(&server, "/elsewhere", whole.clone()),
        put(&server, "/images/2", json!({"image_member": "x"}))
    ]);
    let outcomes = stemcell(&job, &image, script);
    answered(&outcomes[0], 200);
    denied(&outcomes[1], "path", &[]);
    failed(&outcomes[2], "invalid-request", false, &["not a tar or tar.gz archive"]);
    assert_eq!(server.request().header("authorization"), Some("Bearer an image's token"));
    // Other methods have no image.
    let other = outcome(&job, put(&server, "/images/3", whole));
    failed(&other, "invalid-request", false, &["only `create_stemcell` has one"]);
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_image_that_becomes_shorter_during_the_upload_is_an_error() {
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(64 << 20).unwrap();
    let path = image.path().to_owned();
    let server = Server::with_handler("http", move |mut stream| {
        let _ = stream.read(&mut [0; 1000]);
        File::options().write(true).open(&path).and_then(|file| file.set_len(1 << 20)).unwrap();
        let mut chunk = vec![0; 1 << 16];
        while stream.read(&mut chunk).is_ok_and(|count| count > 0) {}
    });
    let job = job(json!([server.grant("images")]));
    let outcomes = stemcell(&job, image.path(), json!([put(&server, "/", json!({"image": true}))]));
    failed(&outcomes[0], "truncated", true, &["the request body could not be sent completely", "became shorter"]);
}

#[test]
fn an_image_that_is_overwritten_during_the_upload_is_an_error() {
    // Whoever can write the file can also set its time of modification back.
    for restores_the_time in [false, true] {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(64 << 20).unwrap();
        // Longer ago than a tick of the file system's clock.
        std::thread::sleep(Duration::from_millis(50));
        let path = image.path().to_owned();
        let received = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&received);
        let server = Server::with_handler("http", move |mut stream| {
            let _ = stream.read(&mut [0; 1000]);
            let mut file = File::options().write(true).open(&path).unwrap();
            let modified = file.metadata().unwrap().modified().unwrap();
            file.write_all(b"another image").unwrap();
            if restores_the_time {
                file.set_times(FileTimes::new().set_modified(modified)).unwrap();
            }
            let mut chunk = vec![0; 1 << 16];
            while let Ok(read @ 1..) = stream.read(&mut chunk) {
                count.fetch_add(read as u64, Ordering::SeqCst);
            }
        });
        let job = job(json!([server.grant("images")]));
        let outcomes = stemcell(&job, image.path(), json!([put(&server, "/", json!({"image": true}))]));
        failed(&outcomes[0], "truncated", true, &["the stemcell image was changed while it was sent"]);
        // The server did not get a complete body.
        assert!(received.load(Ordering::SeqCst) < 64 << 20, "restores the time: {restores_the_time}");
    }
}

#[test]
fn a_response_that_arrives_before_the_end_of_the_upload_is_returned() {
    let server = Server::with_handler("http", |mut stream| {
        let _ = stream.read(&mut [0; 1000]);
        let _ = stream.write_all(b"HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\nConnection: close\r\n\r\nlarge");
        let _ = stream.flush();
        let mut chunk = vec![0; 1 << 16];
        while stream.read(&mut chunk).is_ok_and(|count| count > 0) {}
    });
    let job = job(json!([server.grant("images")]));
    let image = job.path("image");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let outcomes = stemcell(&job, &image, json!([put(&server, "/", json!({"image": true}))]));
    assert_eq!(answered(&outcomes[0], 413)["body"], "large");
}

/// Returns the peak memory of the process in KiB.
fn peak(pid: u64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

#[test]
fn a_large_image_takes_no_more_memory_than_a_small_one() {
    let (pid, measured) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (of, to) = (Arc::clone(&pid), Arc::clone(&measured));
    // The server measures when the whole image has arrived and the process waits for the response.
    let server = Server::start(move |_| {
        to.store(peak(of.load(Ordering::SeqCst)), Ordering::SeqCst);
        Answer::ok("")
    });
    let job = job(json!([server.grant("images")]));
    let (before, after) = ("--b\r\nContent-Disposition: form-data; name=f\r\n\r\n", "\r\n--b--\r\n");
    let headers = json!({"Content-Type": "multipart/form-data; boundary=b"});
    let form = json!({"op": "http", "method": "POST", "url": server.url("/form"), "headers": headers,
        "parts": [before, {"image": true}, after]});
    for (upload, before, after) in [(put(&server, "/", json!({"image": true})), "", ""), (form, before, after)] {
        let mut peaks = Vec::new();
        for mib in [1_u64, 400] {
            let image = job.path("image");
            let mut file = File::create(&image).unwrap();
            file.set_len(mib << 20).unwrap();
            for at in (0..mib).step_by(7) {
                file.seek(SeekFrom::Start(at << 20)).unwrap();
                file.write_all(&content(5000)).unwrap();
            }
            let call = job.call("create_stemcell", json!([image, {"probe": [upload]}]));
            let mut child =
                call.command().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
            pid.store(u64::from(child.id()), Ordering::SeqCst);
            child.stdin.take().unwrap().write_all(call.request().as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            let response: Value = serde_json::from_slice(&output.stdout).unwrap();
            answered(&probe::outcomes(&response["result"])[0], 200);
            let mut expected = blake3::Hasher::new();
            expected.update(before.as_bytes());
            std::io::copy(&mut File::open(&image).unwrap(), &mut expected).unwrap();
            expected.update(after.as_bytes());
            let length = (before.len() + after.len()) as u64 + (mib << 20);
            let seen = server.requests().pop().unwrap();
            assert_eq!((seen.length, seen.digest), (length, expected.finalize().to_string()));
            peaks.push(measured.load(Ordering::SeqCst));
        }
        assert!(peaks[0] > 1000 && peaks[1] < peaks[0] + (16 << 10), "{peaks:?} KiB for {upload}");
    }
}
