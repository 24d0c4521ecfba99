use super::*;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::join;
use futures_util::{FutureExt, StreamExt};
use proptest::prelude::*;
use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::symlink;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn image_of(bytes: &[u8]) -> (TempDir, Image) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("image");
    fs::write(&path, bytes).unwrap();
    let image = Image::open(&path, &[]).unwrap();
    (directory, image)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn add(builder: &mut Builder<Vec<u8>>, kind: EntryType, name: &str, content: &[u8]) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, name, content).unwrap();
}

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, content) in members {
        add(&mut builder, EntryType::Regular, name, content);
    }
    builder.into_inner().unwrap()
}

/// Returns a header with this name, size and type, and a correct checksum.
fn header(name: &[u8], size: u64, kind: u8) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkflag = [kind];
    header.set_size(size);
    header.set_cksum();
    header.as_bytes().to_vec()
}

async fn collect(image: &Image, part: ImagePart) -> Result<Vec<u8>, String> {
    let (length, mut body) = image.body(&part).await.map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await {
        bytes.extend_from_slice(&chunk.map_err(|error| error.to_string())?);
    }
    assert_eq!(bytes.len() as u64, length);
    Ok(bytes)
}

fn names(image: &Image) -> Vec<String> {
    run(image.members()).unwrap().into_iter().map(|member| member.name).collect()
}

#[test]
fn only_a_regular_file_is_opened_and_the_message_says_what_to_do() {
    let directory = TempDir::new().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("file"), "x").unwrap();
    symlink(at("file"), at("link")).unwrap();
    fs::create_dir(at("dir")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), rustix::fs::Mode::RUSR).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    for (path, expected) in [
        (at("link"), "is a symbolic link, and links are not followed"),
        (at("dir"), "is a directory; pass the path of the image file"),
        (at("fifo"), "is a named pipe; copy"),
        (at("socket"), "is not a regular file; copy"),
        (PathBuf::from("/dev/null"), "is a device; copy"),
        (at("nothing"), "must exist and be readable"),
        (at("nowhere/image"), "must exist and be readable"),
        (at("file/image"), "must exist and be readable"),
        (at("dir/.."), "names no file"),
        (PathBuf::from("/"), "names no file"),
        (PathBuf::from(""), "names no file"),
        (PathBuf::from("a\0b"), "cannot be opened"),
    ] {
        let failure = Image::open(&path, &[]).err().unwrap();
        assert_eq!(failure.who, crate::failure::Who::Request);
        assert!(failure.message.contains(expected), "{path:?}: {failure}");
    }
    drop(socket);
    assert_eq!(Image::open(&at("file"), &[]).unwrap().size(), 1);
}

#[test]
fn an_image_outside_of_image_dirs_is_refused() {
    let directory = TempDir::new().unwrap();
    let (inside, outside) = (directory.path().join("in"), directory.path().join("in-and-out"));
    for parent in [&inside, &outside] {
        fs::create_dir_all(parent.join("deep")).unwrap();
        fs::write(parent.join("deep/image"), "x").unwrap();
    }
    // A linked directory is judged by its target.
    symlink(&outside, inside.join("link-out")).unwrap();
    symlink(&inside, directory.path().join("link-in")).unwrap();
    let allowed = [directory.path().join("missing"), inside.clone()];
    for (path, fine) in [
        (inside.join("deep/image"), true),
        (inside.join("deep/../deep/image"), true),
        (directory.path().join("link-in/deep/image"), true),
        (outside.join("deep/image"), false),
        (inside.join("link-out/deep/image"), false),
        (inside.join("../in-and-out/deep/image"), false),
    ] {
        match Image::open(&path, &allowed) {
            Ok(_) => assert!(fine, "{path:?}"),
            Err(failure) => {
                assert!(!fine && failure.message.contains("is outside of `image_dirs`"), "{path:?}: {failure}");
            }
        }
    }
}

#[test]
fn reads_end_at_the_end_of_the_image() {
    let (_directory, image) = image_of(b"0123456789");
    for (offset, length, expected) in [(0, 4, "0123"), (8, 100, "89"), (10, 1, ""), (0, 0, ""), (3, 1, "3")] {
        assert_eq!(image.read(offset, length).unwrap(), expected.as_bytes(), "{offset} {length}");
    }
    for (offset, length, expected) in
        [(11, 1, "beyond the end"), (u64::MAX, 1, "beyond the end"), (0, MAX_READ + 1, "too many")]
    {
        let error = image.read(offset, length).unwrap_err();
        assert!(matches!(&error, ImageError::Invalid { message, .. } if message.contains(expected)), "{error}");
    }
}

#[test]
fn the_digest_covers_the_whole_file() {
    let (_directory, image) = image_of(b"abc");
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(run(image.sha256()).unwrap(), expected);
    assert_eq!(run(image.sha256()).unwrap(), expected);
}

#[test]
fn a_large_image_is_streamed_in_small_chunks() {
    const SIZE: u64 = 3 * 1024 * 1024 * 1024 + 5;
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("image");
    let mut file = File::create(&path).unwrap();
    file.seek(SeekFrom::Start(SIZE - 3)).unwrap();
    file.write_all(b"end").unwrap();
    let image = Image::open(&path, &[]).unwrap();
    run(async {
        let (length, mut body) = image.body(&ImagePart::Whole).await.unwrap();
        let (mut counted, mut last, mut largest) = (0, Bytes::new(), 0);
        while let Some(chunk) = body.next().await {
            last = chunk.unwrap();
            counted += last.len() as u64;
            largest = largest.max(last.len());
        }
        assert_eq!((length, counted), (SIZE, SIZE));
        assert!(last.ends_with(b"end") && largest <= stream::CHUNK);
    });
}

#[test]
fn bodies_of_one_image_are_independent() {
    let content: Vec<u8> = (0..900_000_u32).map(|n| n as u8).collect();
    let (_directory, image) = image_of(&content);
    run(async {
        let (first, second) = join(collect(&image, ImagePart::Whole), collect(&image, ImagePart::Whole)).await;
        assert!(first.unwrap() == content && second.unwrap() == content);
    });
}

#[test]
fn a_file_that_shrinks_ends_the_body_with_an_error() {
    let (directory, image) = image_of(&[7; 1000]);
    fs::write(directory.path().join("image"), "short").unwrap();
    let error = run(collect(&image, ImagePart::Whole)).unwrap_err();
    assert!(error.contains("became shorter"), "{error}");
}

#[test]
fn threads_end_when_their_result_is_not_needed() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("image");
    File::create(&path).unwrap().set_len(100 << 30).unwrap();
    let image = Image::open(&path, &[]).unwrap();
    assert!(image.sha256().now_or_never().is_none());
    run(async {
        let (_, mut body) = image.body(&ImagePart::Whole).await.unwrap();
        body.next().await.unwrap().unwrap();
    });
    // Each reader holds the file, so the count shows when the last thread has ended.
    for _ in 0..500 {
        if Arc::strong_count(&image.0.file) == 1 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("a thread still reads");
}

#[test]
fn members_of_tar_and_tar_gz_are_listed_in_the_order_of_the_archive() {
    let long = format!("{}/disk.img", "d".repeat(200));
    let mut builder = Builder::new(Vec::new());
    add(&mut builder, EntryType::Directory, "dir/", b"");
    add(&mut builder, EntryType::Regular, "dir/a", b"first");
    add(&mut builder, EntryType::Symlink, "link", b"");
    builder.append_pax_extensions([("path", b"p\xc3\xa4x\nname".as_slice()), ("mtime", b"1.5")]).unwrap();
    add(&mut builder, EntryType::Regular, "short", &[3; 700]);
    add(&mut builder, EntryType::Regular, &long, &[9; 1024]);
    add(&mut builder, EntryType::Regular, "dir/a", b"second");
    let mut tar = builder.into_inner().unwrap();
    // The names of members are not interpreted as paths.
    let end = tar.len() - 1024;
    tar.splice(end..end, [header(b"../../etc/passwd", 2, b'0'), [b"hi".to_vec(), vec![0; 510]].concat()].concat());
    for bytes in [tar.clone(), gzip(&tar), [gzip(&tar[..1536]), gzip(&tar[1536..])].concat()] {
        let (_directory, image) = image_of(&bytes);
        let members = run(image.members()).unwrap();
        let expected = [("dir/a", 5), ("päx\nname", 700), (&long, 1024), ("dir/a", 6), ("../../etc/passwd", 2)];
        let found: Vec<_> = members.iter().map(|member| (member.name.as_str(), member.size)).collect();
        assert_eq!(found, expected);
        assert_eq!(run(image.read_member("dir/a", 100)).unwrap(), b"first");
        assert_eq!(run(image.read_member("../../etc/passwd", 1)).unwrap(), b"h");
        assert_eq!(run(collect(&image, ImagePart::Member("päx\nname".into()))).unwrap(), [3; 700]);
        assert_eq!(run(collect(&image, ImagePart::Member(long.clone()))).unwrap(), [9; 1024]);
        let error = run(collect(&image, ImagePart::Member("b".into()))).unwrap_err();
        assert!(error.contains("no member `b`; its members are: `dir/a`, "), "{error}");
    }
}

#[test]
fn gaps_of_a_sparse_member_are_filled_with_zeros() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("disk");
    let mut file = File::create(&path).unwrap();
    for (offset, text) in [(0, "start"), (4_000_000, "middle")] {
        file.seek(SeekFrom::Start(offset)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }
    file.set_len(9_000_000).unwrap();
    let content = fs::read(&path).unwrap();
    let mut builder = Builder::new(Vec::new());
    builder.append_path_with_name(&path, "disk").unwrap();
    let tar = builder.into_inner().unwrap();
    for bytes in [tar.clone(), gzip(&tar)] {
        let (_directory, image) = image_of(&bytes);
        assert_eq!(run(image.members()).unwrap(), [Member { name: "disk".into(), size: 9_000_000 }]);
        assert!(run(collect(&image, ImagePart::Member("disk".into()))).unwrap() == content);
        assert_eq!(run(image.read_member("disk", 5)).unwrap(), b"start");
    }
}

#[test]
fn a_pax_sparse_member_is_refused_with_the_remedy() {
    let mut builder = Builder::new(Vec::new());
    builder.append_pax_extensions([("GNU.sparse.major", b"1".as_slice()), ("GNU.sparse.name", b"disk")]).unwrap();
    add(&mut builder, EntryType::Regular, "GNUSparseFile.0/disk", b"1\n0\n1\n");
    let (_directory, image) = image_of(&builder.into_inner().unwrap());
    let error = run(image.read_member("disk", 1)).unwrap_err().to_string();
    assert!(error.contains("`disk` is a sparse file in pax format") && error.contains("--sparse"), "{error}");
}

#[test]
fn files_that_are_not_archives_and_broken_archives_are_refused() {
    let tar = archive(&[("a", &[1; 5000]), ("b", b"x")]);
    let packed = gzip(&tar);
    let noise = gzip(&(0..3000_u32).map(|n| ((n * n) >> 3) as u8).collect::<Vec<_>>());
    let mut bad_sum = tar.clone();
    bad_sum[512 + 5120 + 3] ^= 1;
    let pax = |record: &str| [header(b"p", record.len() as u64, b'x'), record.into(), vec![0; 600]].concat();
    let many: Vec<u8> = std::iter::repeat_n(header(b"a", 0, b'0'), 10_001).flatten().collect();
    for (bytes, expected) in [
        (b"".to_vec(), "not a tar or tar.gz archive"),
        (b"qcow".to_vec(), "not a tar or tar.gz archive"),
        (vec![0; 4096], "not a tar or tar.gz archive"),
        (vec![0x1f, 0x8b], "not a tar or tar.gz archive"),
        (noise, "not a tar or tar.gz archive"),
        (tar[..3000].to_vec(), "broken or truncated after 1 members"),
        (packed[..packed.len() - 30].to_vec(), "broken or truncated after"),
        (bad_sum, "broken or truncated after 1 members (a header's checksum is invalid)"),
        (header(b"a", u64::MAX - 5, b'0'), "size of a member is invalid"),
        (header(b"a", 10 << 40, b'L'), "a header is longer than 65536 bytes"),
        (header(b"a", 10 << 40, b'x'), "a header is longer than 65536 bytes"),
        (header(b"a", 4, b'S'), "numeric field was not a number"),
        (pax("9 path=a\n\n"), "pax header is invalid"),
        (pax("999999999999999999999 path=a\n"), "pax header is invalid"),
        (pax("11 size=-1\n"), "pax header is invalid"),
        (many, "more than 10000 members"),
    ] {
        let (_directory, image) = image_of(&bytes);
        let error = run(image.members()).unwrap_err();
        assert!(
            matches!(&error, ImageError::Invalid { message, .. } if message.contains(expected)),
            "{expected}: {error}"
        );
    }
}

#[test]
fn a_cut_off_member_ends_the_body_with_an_error() {
    let noise: Vec<u8> = (0..400_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let tar = archive(&[("disk", &noise)]);
    let packed = gzip(&tar);
    for bytes in [&tar[..tar.len() / 2], &packed[..packed.len() / 2]] {
        let (_directory, image) = image_of(bytes);
        assert!(run(collect(&image, ImagePart::Member("disk".into()))).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packed_members_are_found_unchanged(
        members in prop::collection::vec(("[a-z./ä]{1,150}", prop::collection::vec(any::<u8>(), 0..2000)), 1..6),
        packed in any::<bool>(),
    ) {
        let members: Vec<_> = members.iter().enumerate().map(|(n, (name, bytes))| (format!("f{n}{name}x"), bytes)).collect();
        let mut builder = Builder::new(Vec::new());
        for (name, content) in &members {
            // The name is a pax path, because the crate `tar` refuses to write `..` in names.
            builder.append_pax_extensions([("path", name.as_bytes())]).unwrap();
            add(&mut builder, EntryType::Regular, "placeholder", content);
        }
        let tar = builder.into_inner().unwrap();
        let (_directory, image) = image_of(&if packed { gzip(&tar) } else { tar });
        prop_assert_eq!(names(&image), members.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
        for (name, content) in &members {
            prop_assert_eq!(&&run(collect(&image, ImagePart::Member(name.clone()))).unwrap(), content);
        }
    }

    #[test]
    fn a_damaged_archive_never_panics(at in 0..3072_usize, value in any::<u8>(), cut in 0..3072_usize) {
        let mut tar = archive(&[("a", &[1; 600]), ("b", b"x")]);
        tar[at] = value;
        for bytes in [tar[..cut].to_vec(), tar.clone()] {
            let (_directory, image) = image_of(&bytes);
            let _ = run(image.members());
            let _ = run(collect(&image, ImagePart::Member("a".into())));
        }
    }
}
