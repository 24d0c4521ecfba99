//! Parts of multipart forms.

use super::*;

#[test]
fn a_part_that_servers_could_read_under_the_same_name_makes_the_value_ambiguous() {
    let part = |head: &str| format!("--b0\r\nContent-Disposition: form-data; {head}\r\n\r\nw\r\n");
    let read = |parts: &[&str]| {
        let body = format!("{}--b0--", parts.iter().map(|head| part(head)).collect::<String>());
        "part:Action".parse::<Place>().unwrap().read(&Message { headers: &headers(MULTI), body: body.as_bytes() })
    };
    for other in [
        "name=action",
        "name=\"Action[]\"",
        "name=\" Action\"",
        "name=\"[Action\"",
        "name='Action'",
        "name=Action x",
        "name=\"=?utf-8?B?QWN0aW9u?=\"",
        "name=\"Act=?utf-8?Q?ion?=\"",
        "name*0=Act; name*1=ion",
        "name*=utf-8''Action",
    ] {
        for parts in [["name=\"Action\"", other], [other, "name=\"Action\""]] {
            let refused = read(&parts).expect_err(other).to_string();
            assert!(["more than once", "encoded word", "Content-Disposition"].iter().any(|why| refused.contains(why)));
        }
    }
    for other in ["name=\"Reaction\"", "name=\"an Action\"", "name=x; filename=Action", "name=\"it's\""] {
        assert_eq!(read(&["name=\"Action\"", other]).unwrap().as_deref(), Some("w"), "{other}");
    }
    assert_eq!(read(&["name=action"]), Ok(None));
}

#[test]
fn a_form_gets_another_boundary_and_keeps_its_parts() {
    let part = "--b0\r\nContent-Disposition: form-data; name=n\r\nX-A: b\r\n\r\nv\r\n--b0--";
    let (mut headers, mut body) = (headers(MULTI), part.as_bytes().to_vec());
    set_boundary(&mut headers, &mut body, "other").unwrap();
    assert_eq!(headers[0].1, "multipart/form-data; boundary=other");
    assert_eq!(String::from_utf8(body).unwrap(), part.replace("b0", "other") + "\r\n");

    let (mut json, mut body) = (self::headers("application/json"), b"{}".to_vec());
    set_boundary(&mut json, &mut body, "other").unwrap();
    assert_eq!((json[0].1.as_str(), body.as_slice()), ("application/json", b"{}".as_slice()));
    let mut broken = b"--b0--x".to_vec();
    assert!(set_boundary(&mut self::headers(MULTI), &mut broken, "other").is_err());
}
