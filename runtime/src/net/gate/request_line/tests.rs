use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// Returns a block with this beginning, longer than a line can be.
fn block(beginning: &[u8]) -> Vec<u8> {
    [beginning, &b"\x90\0x\n\xe8 y/".repeat(LONGEST_LINE / 4)].concat()
}

/// Asserts that a block which begins like this ends its connection, whatever follows in it.
#[track_caller]
fn assert_ends(line: &[u8]) {
    let shown = String::from_utf8_lossy(line);
    assert!(may_be_request_line(line, true), "{shown:?} as a whole block");
    assert!(may_be_request_line(&block(line), true), "{shown:?} in a block");
    assert!(may_be_request_line(&block(line), false), "{shown:?} in an image");
}

#[test]
fn what_begins_like_an_ordinary_image_keeps_the_connection() {
    let beginnings: [&[u8]; 12] = [
        b"QFI\xfb\0\0\0\x03",
        b"\x7fELF\x02\x01\x01\0\0\0\0\n",
        b"\xeb\x63\x90",
        &[0x1f, 0x8b, 8, 0, b'\n', 0],
        b"ab\0\0cd\0\0",
        b"some text\nand more\n",
        b"#!/bin/sh\n",
        b"{\"a\": 1}\n",
        b"<a href=x>\n",
        b"root:x:0:0:root:/root:/bin/bash\n",
        b"see the page http://x/\r\n",
        b"2026-01-01 10:00:00 started\r\n",
    ];
    for beginning in beginnings {
        assert!(!may_be_request_line(&block(beginning), true), "{beginning:?}");
        assert!(!may_be_request_line(&block(beginning), false), "{beginning:?}");
    }
    for complete in [vec![0; 512 << 10], b"\0\r\n \x85\xa0".to_vec(), b"some text\r\n".to_vec(), b"{".to_vec(), vec![]]
    {
        assert!(!may_be_request_line(&complete, true), "{:?}", &complete[..complete.len().min(16)]);
    }
    assert!(!may_be_request_line(&vec![b'a'; 512 << 10], true));
    assert!(!may_be_request_line(&vec![b'a'; 512 << 10], false));
}

#[test]
fn what_a_server_could_read_as_a_request_line_ends_the_connection() {
    for line in [
        "DELETE /v2/x HTTP/1.1\r\nHost: x\r\nX: ",
        "\r\n\nDELETE /v2/x http/1.1\nX: ",
        "\0\0 GET /x HTTP/1.0\rX: ",
        "GET /v2/admin?\0x HTTP/1.1\r\nX: ",
        "DELETE\0/v2/x\0HTTP/1.1\r\nX: ",
        "GET /v2/x\rHTTP/1.1\r\nX: ",
        "GET /v2/x\r\nX: ",
        "get v2/x\r\nX: ",
        "LOCK http://x/v2\r\nX: ",
        "LOCK x:/v2 y\r\nX: ",
        "MKCOL\n/v2/x\r\nX: ",
        "MKCOL\nv2/x\nHTTP/1.1\r\nX: ",
        "MKCOL v2/x HTTP/1.1\r\nX: ",
        "GET /v2/admin?x=",
        "GET\u{a0}/x",
        "\"GET v2/x HTTP/1.1\r\nX: ",
        "\"GET /v2/x\nX: ",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        assert_ends(line.as_bytes());
    }
    // What comes next completes these.
    for line in ["PROP", " PROP", "\0PROP", "MKCOL v2/x ", "MKCOL\nv2/x\n", "M-SEARCH\0v2\0", "P"] {
        assert!(may_be_request_line(line.as_bytes(), true), "{line}");
    }
    let to_the_end: Vec<u8> = b"MKCOL v2/x".iter().copied().chain(std::iter::repeat_n(0, LONGEST_LINE - 16)).collect();
    assert!(may_be_request_line(&to_the_end, true));
    // The line may begin in the part of the image that is not known.
    assert!(may_be_request_line(&[0; 4 * LONGEST_LINE], false));
    let late = [&[b'\n'; 4 * LONGEST_LINE][..], b"\xff \"MKCOL v2/x "].concat();
    assert!(may_be_request_line(&late, false));
    assert!(!may_be_request_line(&late, true));
}

#[test]
fn every_blank_of_every_server_is_one() {
    let blanks = (0..=b' ').chain(0x7f..=0xff).map(|blank| vec![blank]);
    let of_unicode = ["\u{85}", "\u{a0}", "\u{2003}", "\u{2028}", "\u{3000}", "\u{feff}"];
    for blank in blanks.chain(of_unicode.map(|blank| blank.as_bytes().to_vec())) {
        assert_ends(&[&blank, &b"MKCOL"[..], &blank, b"v2/x", &blank, b"HTTP/1.1\r\nX: "].concat());
        assert_ends(&[&blank, &b"MKCOL"[..], &blank, b"/v2/x", &blank, b"x\r\nX: "].concat());
    }
}

/// A number of blanks as servers accept them: what is not visible.
fn blanks(at_least: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>().prop_filter("a visible byte", |byte| !byte.is_ascii_graphic()), at_least..4)
}

/// A word in which every letter is in upper or lower case.
fn in_any_case(word: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let upper = vec(any::<bool>(), word.len());
    upper.prop_map(|upper| {
        let letters = word.bytes().zip(upper);
        letters.map(|(byte, upper)| if upper { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() }).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_spelling_of_a_request_line_ends_the_connection(
        before in blanks(0),
        method in "[!-~]{1,20}",
        between in blanks(1),
        target in "[!-~]{1,40}",
        after in blanks(1),
        version in in_any_case("http/"),
        more in vec(any::<u8>(), 0..200),
    ) {
        // A CRLF ends the line for every server, and is skipped only before it.
        prop_assume!(![&between[..], &after].iter().any(|blank| memmem::find(blank, b"\r\n").is_some()));
        let line = [&before[..], method.as_bytes(), &between, target.as_bytes(), &after, &version, &more].concat();
        assert_ends(&line);
    }

    #[test]
    fn a_common_method_and_a_path_end_the_connection_without_a_version(
        before in blanks(0),
        method in proptest::sample::select(&METHODS[..]),
        other in "[A-Z]{3,12}",
        between in blanks(1),
        target in "[!-~]{0,40}",
        more in vec(any::<u8>(), 0..200),
    ) {
        assert_ends(&[&before[..], method.as_bytes(), &between, target.as_bytes(), &more].concat());
        assert_ends(&[&before[..], other.as_bytes(), &between, b"/", target.as_bytes(), &more].concat());
    }
}

#[test]
fn random_blocks_nearly_always_keep_the_connection() {
    // A generator with a fixed seed, so that the figures are the same in every run.
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = move |count: usize| -> Vec<u8> {
        let next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        std::iter::repeat_with(next).take(count).collect()
    };
    let mut closed = |count: usize, size: usize, character: fn(u8) -> u8| {
        let mut block = || random(size).into_iter().map(character).collect::<Vec<u8>>();
        (0..count).filter(|_| may_be_request_line(&block(), true)).count()
    };
    let of_text = |byte: u8| b"abcdefgh ijklmnop\n0123456789.,:;-_"[usize::from(byte) % 34];
    // Of the short ones, most do not end a line as all servers read it.
    assert!(closed(2000, 512, |byte| byte) < 100);
    assert!(closed(200, LONGEST_LINE + 4096, |byte| byte) < 6);
    assert!(closed(200, LONGEST_LINE + 4096, of_text) < 6);
}
