//! What a guest can do with the image, and changes to the file during the call.

use super::{CLASS, outcomes, unwrap_io};
use crate::case::{self, Case};
use crate::row;
use crate::world::{Served, World};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tests::archive::tar;
use tests::job::write;
use tests::{Job, cloud, dist};

/// Returns a job that grants PUT to `api.iaas.test`.
fn job(world: &World) -> Job {
    row::job(world, &json!({"grant": {"methods": ["GET", "PUT"]}}))
}

fn put(url: &str, part: Value) -> Value {
    let mut operation = json!({"op": "http", "method": "PUT", "url": url});
    if let Some((operation, part)) = operation.as_object_mut().zip(part.as_object()) {
        operation.extend(part.clone());
    }
    operation
}

const API: &str = "https://api.iaas.test/v1/image";

/// Runs a script, and changes the image when its first request has arrived.
fn with_change(
    world: &World,
    change: impl Fn(&Path) + Send + Sync + 'static,
    then: Vec<Value>,
) -> Result<Vec<Value>, String> {
    let job = job(world);
    let image = job.path("image");
    write(&image, &[b'a'; 100_000]);
    world.reset(row::names(&Value::Null), Served::default())?;
    let path = image.clone();
    world.on_request(move |arrived| {
        if arrived.request.method() == "GET" {
            change(&path);
        }
    });
    let mut script = vec![json!({"op": "http", "url": "https://api.iaas.test/v1/now"})];
    script.extend(then);
    let outcomes = outcomes(&job, &image, &json!(script));
    match outcomes[0]["ok"]["status"].as_u64() {
        Some(200) => Ok(outcomes),
        _ => Err(format!("{}", outcomes[0])),
    }
}

fn expect_same(what: &str, got: &Value, expected: &Value) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: {got}, expected {expected}")) }
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "the image in a call that has none", &[], || {
            let operations = json!([
                {"op": "image.size"}, {"op": "image.sha256"}, {"op": "image.read", "offset": 0, "length": 1},
                {"op": "image.members"}, {"op": "image.read_member", "name": "x", "length": 1},
            ]);
            for outcome in cloud::outcomes(&Job::default(), &operations) {
                assert_eq!(
                    outcome["error"],
                    json!({"kind": "denied", "message": "the image is available in create_stemcell only"})
                );
            }
        }),
        Case::new(CLASS, "the image as a body in a call that has none", &[], |world| {
            let job = job(world);
            world.reset(row::names(&Value::Null), Served::default())?;
            let outcome = cloud::outcome(&job, put(API, json!({"image": true})));
            expect_same("sent", &outcome["error"]["kind"], &json!("invalid-request"))
        }),
        Case::new(CLASS, "the image for a guest that does not declare it", &["needs-image"], |world| {
            let needs = json!({"version": 1, "http": [{"id": "a", "to": "*", "methods": ["*"], "paths": ["/**"], "slots": "*"}]});
            let job = job(world).guest_bytes(&cloud::probe_with_needs(&needs));
            write(&job.path("image"), b"image");
            world.reset(row::names(&Value::Null), Served::default())?;
            let script = json!([{"op": "image.size"}, {"op": "image.read", "offset": 0, "length": 1}, put(API, json!({"image": true}))]);
            let outcomes = outcomes(&job, &job.path("image"), &script);
            let kinds: Vec<&Value> = outcomes.iter().map(|outcome| &outcome["error"]["kind"]).collect();
            expect_same("kinds", &json!(kinds), &json!(["denied", "denied", "invalid-request"]))
        }),
        Case::offline(CLASS, "ranges beyond the end", &["image-range"], || {
            let job = Job::default();
            write(&job.path("image"), b"0123456789");
            let read = |offset: u64, length: u32| json!({"op": "image.read", "offset": offset, "length": length});
            let ranges = [
                (0, 100),
                (9, 100),
                (10, 1),
                (11, 1),
                (11, 0),
                (u64::MAX, 1),
                (u64::MAX, u32::MAX),
                (u64::MAX - 5, 10),
                (1 << 63, 1),
            ];
            let outcomes =
                outcomes(&job, &job.path("image"), &json!(ranges.map(|(offset, length)| read(offset, length))));
            for (outcome, bytes) in outcomes.iter().zip([10, 1, 0]) {
                assert_eq!(outcome["ok"]["bytes"], bytes, "{outcome}");
            }
            for outcome in &outcomes[3..] {
                assert_eq!(outcome["error"]["kind"], "invalid", "{outcome}");
            }
        }),
        Case::offline(CLASS, "gigabytes in one read", &["image-read-size"], || {
            let job = Job::default();
            unwrap_io(File::create(job.path("image")).and_then(|file| file.set_len(3 << 30)));
            let read = |length: u32| json!({"op": "image.read", "offset": 0, "length": length});
            let outcomes =
                outcomes(&job, &job.path("image"), &json!([read((1 << 20) + 1), read(u32::MAX), read(1000)]));
            assert_eq!(
                (&outcomes[0]["error"]["kind"], &outcomes[1]["error"]["kind"]),
                (&json!("invalid"), &json!("invalid"))
            );
            assert_eq!(outcomes[2]["ok"]["bytes"], 1000);
        }),
        Case::offline(CLASS, "another file than the image, by the name of a member", &[], || {
            let job = Job::default();
            let image = job.path("image");
            write(&image, &tar(&[("root.img", b"content")]));
            write(&job.path("other"), b"other");
            let names = [
                "/etc/passwd",
                "../other",
                "other",
                ".",
                "",
                "root.img/../other",
                "root.img\0",
                "/proc/self/environ",
                "ROOT.IMG",
                "./root.img",
            ];
            let script: Vec<Value> =
                names.iter().map(|name| json!({"op": "image.read_member", "name": name, "length": 10})).collect();
            let outcomes = outcomes(&job, &image, &json!(script));
            for outcome in &outcomes {
                assert_eq!(outcome["error"]["kind"], "invalid", "{outcome}");
            }
            assert!(
                !Value::from(outcomes).to_string().contains(&*job.path("").to_string_lossy()),
                "an error shows the path of the image"
            );
        }),
        Case::new(CLASS, "the image to a host that is not granted", &["grant-host"], |world| {
            let job = job(world);
            write(&job.path("image"), b"image");
            world.reset(row::names(&Value::Null), Served::default())?;
            let whole = json!({"image": true});
            let script = json!([
                put("https://evil.test/v1/image", whole.clone()),
                put("http://api.iaas.test/v1/image", whole.clone()),
                put("https://api.iaas.test/elsewhere", whole)
            ]);
            let outcomes = outcomes(&job, &job.path("image"), &script);
            let reasons: Vec<&Value> = outcomes.iter().map(|outcome| &outcome["error"]["reason"]).collect();
            expect_same("reasons", &json!(reasons), &json!(["host", "scheme", "path"]))
        }),
        Case::new(CLASS, "an image that is replaced during the call", &[], |world| {
            let replace = |path: &Path| {
                let new = path.with_file_name("new");
                write(&new, b"another one");
                unwrap_io(fs::rename(new, path));
            };
            let outcomes =
                with_change(world, replace, vec![json!({"op": "image.sha256"}), put(API, json!({"image": true}))])?;
            expect_same("digest", &outcomes[1]["ok"], &json!(dist::sha256(&[b'a'; 100_000])))?;
            expect_sent(world, 100_000, &[b'a'; 100_000])
        })
        .may_contact(case::API),
        Case::new(CLASS, "an image that is deleted during the call", &[], |world| {
            let delete = |path: &Path| unwrap_io(fs::remove_file(path));
            with_change(world, delete, vec![put(API, json!({"image": true}))])?;
            expect_sent(world, 100_000, &[b'a'; 100_000])
        })
        .may_contact(case::API),
        Case::new(CLASS, "an image that grows during the call", &[], |world| {
            let grow = |path: &Path| {
                unwrap_io(File::options().append(true).open(path).and_then(|mut file| file.write_all(&[b'b'; 50_000])))
            };
            let outcomes = with_change(
                world,
                grow,
                vec![
                    json!({"op": "image.size"}),
                    json!({"op": "image.read", "offset": 99_999, "length": 100}),
                    put(API, json!({"image": true})),
                ],
            )?;
            expect_same("size", &outcomes[1]["ok"], &json!(100_000))?;
            expect_same("read", &outcomes[2]["ok"]["bytes"], &json!(1))?;
            expect_sent(world, 100_000, &[b'a'; 100_000])
        })
        .may_contact(case::API),
        Case::new(CLASS, "an image that shrinks during the call", &[], |world| {
            let shrink =
                |path: &Path| unwrap_io(File::options().write(true).open(path).and_then(|file| file.set_len(1000)));
            let outcomes = with_change(
                world,
                shrink,
                vec![json!({"op": "image.read", "offset": 50_000, "length": 100}), put(API, json!({"image": true}))],
            )?;
            expect_same("read", &outcomes[1]["error"]["kind"], &json!("io"))?;
            expect_same("sent", &outcomes[2]["error"]["kind"], &json!("truncated"))?;
            // Only the first request arrived: the incomplete one does not count.
            expect_same("arrived", &json!(world.requests().len()), &json!(1))
        })
        .may_contact(case::API),
        Case::new(CLASS, "an image that is overwritten while it is sent", &["image-unchanged"], |world| {
            let job = job(world);
            let image = job.path("image");
            write(&image, &vec![b'a'; 32 << 20]);
            world.reset(row::names(&Value::Null), Served::default())?;
            let done = AtomicBool::new(false);
            let outcomes = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let file = unwrap_io(File::options().write(true).open(&image));
                    while !done.load(Ordering::SeqCst) {
                        unwrap_io(file.write_all_at(b"b", 1));
                        std::thread::sleep(Duration::from_millis(1));
                    }
                });
                let outcomes = outcomes(&job, &image, &json!([put(API, json!({"image": true}))]));
                done.store(true, Ordering::SeqCst);
                outcomes
            });
            expect_same("sent", &outcomes[0]["error"]["kind"], &json!("truncated"))?;
            expect_same("arrived", &json!(world.requests().len()), &json!(0))
        })
        .may_contact(case::API),
        Case::offline(CLASS, "an image that is one large hole", &[], || {
            let job = Job::default();
            unwrap_io(File::create(job.path("image")).and_then(|file| file.set_len(4 << 40)));
            let script = json!([{"op": "image.size"}, {"op": "image.read", "offset": (4_u64 << 40) - 10, "length": 100}, {"op": "image.members"}]);
            let outcomes = outcomes(&job, &job.path("image"), &script);
            assert_eq!((&outcomes[0]["ok"], &outcomes[1]["ok"]["bytes"]), (&json!(4_u64 << 40), &json!(10)));
            assert_eq!(outcomes[2]["error"]["kind"], "invalid", "{}", outcomes[2]);
        }),
    ]
}

/// Fails unless exactly one PUT arrived, with this content.
fn expect_sent(world: &World, length: u64, content: &[u8]) -> Result<(), String> {
    let arrived: Vec<_> = world.requests().into_iter().filter(|arrived| arrived.request.method() == "PUT").collect();
    match arrived.as_slice() {
        [put] if put.request.length == length && put.request.body == content => Ok(()),
        other => Err(format!("arrived: {:?}", other.iter().map(|put| put.request.length).collect::<Vec<_>>())),
    }
}
