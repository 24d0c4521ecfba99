//! Archives with wrong sizes, names, checksums and ends. Nothing is unpacked to a disk,
//! and no archive needs more than a few buffers.

use super::{CLASS, create, outcomes};
use crate::case::Case;
use serde_json::{Value, json};
use tar::EntryType;
use tests::Job;
use tests::archive::{entry, gzip, header, patch_header, pax, tar, with_end_marker};
use tests::job::write;

/// Returns what the guest gets for the list of members and for `root.img`.
fn read_archive(bytes: &[u8]) -> Vec<Value> {
    let job = Job::default();
    write(&job.path("image"), bytes);
    let script = json!([{"op": "image.members"}, {"op": "image.read_member", "name": "root.img", "length": 100}]);
    outcomes(&job, &job.path("image"), &script)
}

#[track_caller]
fn assert_invalid(bytes: &[u8], said: &str) {
    let members = &read_archive(bytes)[0];
    let message = members["error"]["message"].as_str().unwrap_or_default();
    assert!(members["error"]["kind"] == "invalid" && message.contains(said), "no `{said}` in {members}");
}

fn regular(name: &str, content: &[u8]) -> Vec<u8> {
    entry(name, EntryType::Regular, content)
}

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "member names that look like paths are only names", &[], || {
            let names = ["../../../etc/passwd", "/etc/shadow", "./x", "a//b", "\u{1b}[2J", "C:\\x"];
            let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (*name, b"content".as_slice())).collect();
            let job = Job::default();
            write(&job.path("image"), &tar(&entries));
            let mut script = vec![json!({"op": "image.members"})];
            script.extend(names.iter().map(|name| json!({"op": "image.read_member", "name": name, "length": 100})));
            let outcomes = outcomes(&job, &job.path("image"), &json!(script));
            let listed: Vec<&Value> =
                outcomes[0]["ok"].as_array().into_iter().flatten().map(|member| &member["name"]).collect();
            assert_eq!(json!(listed), json!(names));
            assert!(outcomes[1..].iter().all(|outcome| outcome["ok"]["text"] == "content"), "{outcomes:?}");
        }),
        Case::offline(CLASS, "two members with the same name", &[], || {
            let outcomes = read_archive(&tar(&[("root.img", b"the first"), ("root.img", b"the second")]));
            assert_eq!(outcomes[1]["ok"]["text"], "the first");
        }),
        Case::offline(CLASS, "links and devices in an archive", &[], || {
            let mut entries = Vec::new();
            for kind in [
                EntryType::Symlink,
                EntryType::Link,
                EntryType::Char,
                EntryType::Block,
                EntryType::Fifo,
                EntryType::Directory,
            ] {
                let link = patch_header(header("root.img", kind, 0), 157, b"/etc/passwd");
                entries.extend(link);
            }
            let outcomes = read_archive(&with_end_marker(entries));
            assert_eq!((&outcomes[0]["ok"], &outcomes[1]["error"]["kind"]), (&json!([]), &json!("invalid")));
        }),
        Case::offline(CLASS, "sizes that are larger than the archive", &[], || {
            let field = |bytes: &[u8; 12]| {
                with_end_marker(
                    [patch_header(header("root.img", EntryType::Regular, 0), 124, bytes), vec![b'x'; 512]].concat(),
                )
            };
            let exabytes = b"\x80\0\0\0\x0f\xff\xff\xff\xff\xff\xff\xff";
            for size in [
                b"77777777777\0",
                exabytes,
                b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
                b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            ] {
                assert_invalid(&field(size), "broken or truncated after ");
            }
            for size in ["18446744073709551615", "9223372036854775807", "-1", "x", "99999999999999999999999"] {
                assert_invalid(
                    &with_end_marker([pax(&[("size", size)]), regular("root.img", b"x")].concat()),
                    "broken or truncated after ",
                );
            }
        }),
        Case::offline(CLASS, "sizes that are not numbers", &[], || {
            for bytes in [b"zzzzzzzzzzz\0", b"-0000000001\0", b"0x10\0\0\0\0\0\0\0\0"] {
                assert_invalid(
                    &with_end_marker(patch_header(header("root.img", EntryType::Regular, 0), 124, bytes)),
                    "broken or truncated after 0 members",
                );
            }
        }),
        Case::offline(CLASS, "an archive that is cut off at any place", &[], || {
            let whole = tar(&[("first", &[b'x'; 2000]), ("root.img", &[b'y'; 2000])]);
            // Cuts inside the final empty blocks are left out, as the archive is complete without them.
            for end in (100..whole.len() - 1100).step_by(333) {
                let members = &read_archive(&whole[..end])[0];
                assert!(members["error"]["kind"] == "invalid" || end % 512 == 0, "{end}: {members}");
            }
        }),
        Case::offline(CLASS, "headers whose checksum is wrong", &[], || {
            let mut archive = tar(&[("first", b"x"), ("root.img", b"y")]);
            archive[1024] ^= 1;
            assert_invalid(&archive, "a header's checksum is invalid");
            archive[0] ^= 1;
            assert_invalid(&archive, "is not a tar or tar.gz archive");
        }),
        Case::offline(CLASS, "more than ten thousand members", &["archive-bounds"], || {
            assert_invalid(
                &with_end_marker(header("x", EntryType::Regular, 0).repeat(10_001)),
                "more than 10000 members",
            );
        }),
        Case::offline(CLASS, "names and headers that are too long", &["archive-bounds"], || {
            let long = "x".repeat(2000);
            assert_invalid(
                &with_end_marker([pax(&[("path", &long)]), regular("x", b"")].concat()),
                "longer than 1024 bytes",
            );
            assert_invalid(
                &with_end_marker([entry("l", EntryType::GNULongName, long.as_bytes()), regular("x", b"")].concat()),
                "longer than 1024 bytes",
            );
            assert_invalid(
                &with_end_marker([pax(&[("comment", &"x".repeat(100_000))]), regular("x", b"")].concat()),
                "longer than 65536 bytes",
            );
        }),
        Case::offline(CLASS, "malformed pax headers", &[], || {
            for records in [
                "x",
                "5 a\n",
                "999 path=x\n",
                "0 path=x\n",
                "-1 path=x\n",
                "6 ath=x",
                "\0",
                "18446744073709551615 path=x\n",
            ] {
                assert_invalid(
                    &with_end_marker([entry("p", EntryType::XHeader, records.as_bytes()), regular("x", b"")].concat()),
                    "a pax header is invalid",
                );
            }
        }),
        Case::offline(CLASS, "sparse files with a wrong map", &["archive-bounds"], || {
            // The header has offsets and lengths at 386, and the real size at 483.
            let sparse = |map: &[(&str, &str)], real: &str| {
                let mut block = header("root.img", EntryType::GNUSparse, 512);
                for (index, (offset, length)) in map.iter().enumerate() {
                    let at = 386 + 24 * index;
                    block[at..at + 12].copy_from_slice(format!("{offset:0>11}\0").as_bytes());
                    block[at + 12..at + 24].copy_from_slice(format!("{length:0>11}\0").as_bytes());
                }
                with_end_marker(
                    [patch_header(block, 483, format!("{real:0>11}\0").as_bytes()), vec![b'x'; 512]].concat(),
                )
            };
            for (map, real) in [
                (&[("0", "1000"), ("100", "1000")][..], "77777777777"),
                (&[("77777777777", "1000")], "1000"),
                (&[("0", "77777777777")], "77777777777"),
                (&[("1000", "100"), ("0", "100")], "10000"),
            ] {
                assert_invalid(&sparse(map, real), "the map of a sparse member is invalid");
            }
            // Gigabytes of a hole cost only what is read of them.
            let outcomes = read_archive(&sparse(&[("0", "1000")], "77777777777"));
            assert_eq!(outcomes[1]["ok"]["bytes"], 100, "{outcomes:?}");
            let endless =
                [patch_header(header("root.img", EntryType::GNUSparse, 0), 482, b"\x0100000000000\0"), endless_map()]
                    .concat();
            assert_invalid(&with_end_marker(endless), "more than 100000 ranges");
        }),
        Case::offline(CLASS, "sparse files in a format that is not supported", &[], || {
            let outcomes = read_archive(&with_end_marker(
                [
                    pax(&[
                        ("GNU.sparse.major", "1"),
                        ("GNU.sparse.name", "root.img"),
                        ("GNU.sparse.realsize", "999999999999"),
                    ]),
                    regular("x", b"content"),
                ]
                .concat(),
            ));
            let message = outcomes[1]["error"]["message"].as_str().unwrap_or_default();
            assert!(message.contains("is a sparse file in pax format, which is not supported"), "{}", outcomes[1]);
        }),
        Case::offline(
            CLASS,
            "an archive that decompresses to gigabytes",
            &["limit-create_stemcell_wall_seconds"],
            || {
                let job = Job::default().limits(json!({"create_stemcell_wall_seconds": 1, "cleanup_seconds": 2}));
                write(&job.path("image"), &bomb());
                // The start can be read at once. Listing the members would take too long.
                let script = json!([{"op": "image.read_member", "name": "bomb", "length": 100}, {"op": "image.members", "on_cancel": []}]);
                create(&job, &job.path("image"), &script).reaches("create_stemcell_wall_seconds");
            },
        ),
        Case::offline(CLASS, "damaged compressed archives", &[], || {
            let whole = gzip(&tar(&[("first", &[b'x'; 100_000]), ("root.img", b"y")]));
            for end in [3, 12, whole.len() / 2, whole.len() - 20] {
                assert_eq!(read_archive(&whole[..end])[0]["error"]["kind"], "invalid", "cut at {end}");
            }
            for at in [2, 3] {
                let mut bytes = whole.clone();
                bytes[at] ^= 0x55;
                assert_eq!(read_archive(&bytes)[0]["error"]["kind"], "invalid", "changed at {at}");
            }
            assert_invalid(&gzip(&whole), "is not a tar or tar.gz archive");
        }),
        Case::offline(CLASS, "images that are not an archive", &[], || {
            for bytes in [&b""[..], b"x", &[0; 512], &[0xff; 4096], b"\x1f\x8b", b"QFI\xfb\0\0\0\x03", b"PK\x03\x04"] {
                assert_invalid(bytes, "is not a tar or tar.gz archive");
            }
        }),
    ]
}

/// Returns a map of a sparse file in which each block says that another one follows.
fn endless_map() -> Vec<u8> {
    let mut part = [b"00000000000\x0000000000000\0".repeat(21), vec![1], vec![0; 7]].concat();
    part.truncate(512);
    part.repeat(5_000)
}

/// Returns a header followed by gigabytes of zeros. Many gzip streams, one after the
/// other, are one valid file.
fn bomb() -> Vec<u8> {
    let size = b"\x80\0\0\0\0\0\x01\0\0\0\0\0";
    let header = gzip(&patch_header(header("bomb", EntryType::Regular, 0), 124, size));
    [header, gzip(&vec![0; 16 << 20]).repeat(4000)].concat()
}
