//! Tests of single rules. The published vectors, and a comparison with another implementation, are in
//! `tests/sigv4`.

use super::*;

const PLAIN: PathRules = PathRules { encodes_twice: true, normalizes: true };
const OBJECTS: PathRules = PathRules { encodes_twice: false, normalizes: false };

#[test]
fn paths_are_encoded_once_more_except_those_of_objects() {
    for (path, plain, objects) in [
        ("", "/", "/"),
        ("/", "/", "/"),
        ("/a-b_c.d~e", "/a-b_c.d~e", "/a-b_c.d~e"),
        ("/a%20b", "/a%2520b", "/a%20b"),
        ("/a:b@c", "/a%3Ab%40c", "/a%3Ab%40c"),
        ("//a//b/", "/a/b/", "//a//b/"),
        ("/a/./b/../c", "/a/c", "/a/./b/../c"),
        ("/a/..", "/", "/a/.."),
        ("/%e1%88%b4", "/%25e1%2588%25b4", "/%E1%88%B4"),
        ("/100%", "/100%25", "/100%25"),
    ] {
        assert_eq!((PLAIN.canonical(path).as_str(), OBJECTS.canonical(path).as_str()), (plain, objects), "{path}");
    }
    assert_eq!((PathRules::of_service("s3"), PathRules::of_service("ebs")), (OBJECTS, PLAIN));
}

#[test]
fn parameters_are_sorted_by_their_encoded_names_and_values() {
    for (query, expected) in [
        ("", ""),
        ("b=2&a=1", "a=1&b=2"),
        ("a=2&a=1&A=0", "A=0&a=1&a=2"),
        ("acl", "acl="),
        ("a=b=c", "a=b%3Dc"),
        ("a=x+y&b=x%20y&c=%2b", "a=x%20y&b=x%20y&c=%2B"),
        ("a=%e4%7e", "a=%E4~"),
        ("&a=1&", "a=1"),
    ] {
        assert_eq!(canonical::query(query), expected, "{query}");
    }
}

#[test]
fn headers_are_sorted_and_joined_and_lose_their_padding() {
    let headers = [("B", "  two   words "), ("a", "3"), ("A", "1")];
    assert_eq!(canonical::headers(&headers), "a:3,1\nb:two words\n");
    assert_eq!(canonical::header_names(&headers), "a;b");
}

#[test]
fn a_key_belongs_to_its_day_region_and_service() {
    let scope = Scope { timestamp: "20150830T123600Z", region: "us-east-1", service: "one" };
    let key = |scope: &Scope<'_>| SigningKey::derive("secret", scope).to_hex();
    let first = key(&scope);
    assert_eq!(first, key(&Scope { timestamp: "20150830T235959Z", ..scope }));
    for other in [
        Scope { timestamp: "20150831T123600Z", ..scope },
        Scope { region: "us-west-2", ..scope },
        Scope { service: "two", ..scope },
    ] {
        assert_ne!(first, key(&other));
    }
    assert_ne!(first, SigningKey::derive("Secret", &scope).to_hex());
}
