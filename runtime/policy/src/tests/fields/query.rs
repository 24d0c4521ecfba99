//! Fields and query parameters of one name, which servers merge.

use super::*;

#[test]
fn a_query_parameter_with_the_name_of_a_limited_field_is_refused() {
    let entry =
        json!({"places": {"json:/HostConfig/Privileged": "absent", "json:/free": "any", "query:listed": "any"}});
    let judge = |entry: &Value, query: &str| {
        judged(&policy(entry), &format!("{URL}?{query}"), &headers("application/json"), br#"{"a": 1}"#)
    };
    for query in ["Privileged=true", "a=1&privileged=", "HostConfig.Privileged=1", "%48ostConfig=x", "x.PRIVILEGED=1"] {
        assert_eq!(judge(&entry, query), Err("field-query".to_owned()), "{query}");
    }
    assert_eq!(judge(&entry, "HostConfig[Privileged]=1"), Err("field-name".to_owned()));
    for query in ["", "a=1", "free=1", "listed=1", "Privilege=1"] {
        assert_eq!(judge(&entry, query), Ok(()), "{query}");
    }
    let listed = json!({"places": {"json:/name": {"is": "x"}, "query:name": {"is": "y"}}});
    assert_eq!(judge(&listed, "name=y"), Ok(()));
    assert_eq!(judge(&listed, "name=x"), Err("field-value".to_owned()));
}

#[test]
fn a_field_of_a_body_with_the_name_of_a_limited_query_parameter_is_refused() {
    let limited = json!({"places": {"query:size": {"is": "1"}, "query:free": "any"}});
    let part = |name: &str| format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n9\r\n--b--\r\n");
    for (content_type, body, expected) in [
        ("application/json", r#"{"size": 9}"#.to_owned(), "field-query"),
        ("application/json", r#"{"Size": 9}"#.to_owned(), "field-query"),
        ("application/json", r#"{"free": 9, "sizes": 1, "a": {"size": 9}}"#.to_owned(), ""),
        ("application/json", r#"{"a": 1, "a": 2}"#.to_owned(), "json-duplicate-key"),
        ("application/x-www-form-urlencoded", "a=1&si_ze=9".to_owned(), "field-query"),
        ("application/x-www-form-urlencoded", "a=1&free=9".to_owned(), ""),
        ("application/json, application/x-www-form-urlencoded", r#"{"size": 9}"#.to_owned(), "field-query"),
        ("multipart/form-data; boundary=b", part("size[]"), "field-query"),
        ("multipart/form-data; boundary=b", part("other"), ""),
        ("multipart/form-data; boundary=c", part("other"), "field-body"),
        ("application/octet-stream", "size=9".to_owned(), ""),
    ] {
        let expected = if expected.is_empty() { Ok(()) } else { Err(expected.to_owned()) };
        let found = judged(&policy(&limited), URL, &headers(content_type), body.as_bytes());
        assert_eq!(found, expected, "{content_type} {body}");
    }
    let both = json!({"places": {"query:size": {"is": "1"}, "json:/size": {"is": 2}}});
    assert_eq!(json_body(&both, r#"{"size": 2}"#), Ok(()));
}
