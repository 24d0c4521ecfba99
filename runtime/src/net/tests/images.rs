use super::fixture::{Fixture, request};
use super::server::{Server, response};
use crate::image::{Image, ImagePart};
use crate::limits::Limits;
use crate::net::error::HttpErrorKind;
use crate::net::gate::{GuestBody, GuestRequest};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn upload(url: String, part: ImagePart) -> GuestRequest {
    GuestRequest { body: GuestBody::Image(part), ..request("PUT", url) }
}

fn grants(server: &Server) -> serde_json::Value {
    json!([{"id": "images", "to": server.url(""), "methods": ["PUT"], "paths": ["/**"]}])
}

#[test]
fn a_large_image_is_streamed_and_does_not_count_against_body_limits() {
    const SIZE: u64 = 400 << 20;
    let received = Arc::new(AtomicU64::new(0));
    let count = received.clone();
    let server = Server::raw(move |mut stream, _| {
        let (mut head, mut byte, mut buffer) = (Vec::new(), [0], vec![0; 1 << 20]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        assert!(String::from_utf8(head).unwrap().contains(&format!("content-length: {SIZE}\r\n")));
        while count.load(Ordering::SeqCst) < SIZE {
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "the client hung up");
            count.fetch_add(read as u64, Ordering::SeqCst);
        }
        stream.write_all(&response("201 Created", "", "")).unwrap();
    });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    File::create(&path).unwrap().set_len(SIZE).unwrap();
    let image = Some(Arc::new(Image::open(&path, &[]).unwrap()));
    let limits = Limits { http_total_mib: 1, http_request_mib: 1, ..Limits::default() };
    let running = Fixture { image, limits, ..Fixture::new(grants(&server)) }.start();
    assert_eq!(running.send(upload(server.url("/i"), ImagePart::Whole)).unwrap().status, 201);
    assert_eq!(received.load(Ordering::SeqCst), SIZE);
    assert_eq!(running.gate.counts().bytes_sent, SIZE);
    assert_eq!(running.gate.changes(), [format!("PUT {} -> 201", server.url("/i"))]);
}

#[test]
fn a_server_that_stops_reading_ends_the_upload() {
    let deaf = Server::raw(|_stream, _| std::thread::sleep(Duration::from_secs(4)));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    File::create(&path).unwrap().set_len(100 << 20).unwrap();
    let image = Some(Arc::new(Image::open(&path, &[]).unwrap()));
    let running = Fixture { image, ..Fixture::new(grants(&deaf)) }.start();
    let error = running.send(upload(deaf.url("/i"), ImagePart::Whole)).unwrap_err();
    assert_eq!((error.kind, error.sent), (HttpErrorKind::Timeout, true));
    assert!(error.message.contains("limits.idle_seconds"), "{error}");
}

#[test]
fn a_missing_image_or_member_is_rejected() {
    let server = Server::answering(response("200 OK", "", ""));
    let running = Fixture::new(grants(&server)).start();
    let error = running.send(upload(server.url("/i"), ImagePart::Whole)).unwrap_err();
    assert_eq!((error.kind, error.sent), (HttpErrorKind::InvalidRequest, false));
    assert!(error.message.contains("only `create_stemcell` has one"), "{error}");

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image.tar");
    let mut archive = tar::Builder::new(File::create(&path).unwrap());
    let mut header = tar::Header::new_ustar();
    header.set_size(5);
    header.set_mode(0o644);
    archive.append_data(&mut header, "root.img", b"hello".as_slice()).unwrap();
    archive.finish().unwrap();
    let image = Some(Arc::new(Image::open(&path, &[]).unwrap()));
    let running = Fixture { image, ..Fixture::new(grants(&server)) }.start();
    let error = running.send(upload(server.url("/i"), ImagePart::Member("x".into()))).unwrap_err();
    assert!(error.kind == HttpErrorKind::InvalidRequest && error.message.contains("root.img"), "{error}");
    assert_eq!(server.connections(), 0);
    running.send(upload(server.url("/i"), ImagePart::Member("root.img".into()))).unwrap();
    assert_eq!(server.requests()[0].body, b"hello");
}

#[test]
fn a_response_before_the_end_of_the_upload_is_returned() {
    let hasty = Server::raw(|mut stream, _| {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        stream.write_all(&response("413 Content Too Large", "Connection: close\r\n", "too large")).unwrap();
        std::thread::sleep(Duration::from_millis(500));
    });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("image");
    File::create(&path).unwrap().set_len(100 << 20).unwrap();
    let image = Some(Arc::new(Image::open(&path, &[]).unwrap()));
    let running = Fixture { image, ..Fixture::new(grants(&hasty)) }.start();
    let response = running.send(upload(hasty.url("/i"), ImagePart::Whole)).unwrap();
    assert_eq!((response.status, response.body.as_slice()), (413, b"too large".as_slice()));
}
