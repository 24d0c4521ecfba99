use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};
use wasm_cpi_policy::secret::Secret;
use wasm_cpi_policy::{AGENT, PathPattern};

const SECRET: &str = "settings \"with\" <hard> & characters";
const PASSWORD: &str = "correct horse battery";

type Headers = Vec<(String, String)>;

fn slot(method: &str, path: &str, place: &str, takes: &[&str]) -> Slot {
    Slot {
        method: method.to_owned(),
        path: PathPattern::parse(path).unwrap(),
        operation: None,
        place: place.parse().unwrap(),
        takes: takes.iter().map(|name| (*name).to_owned()).collect(),
        show: Vec::new(),
        max_bytes: None,
    }
}

fn slots() -> Vec<Slot> {
    vec![
        slot("POST", "/v1/*/servers", "json:/server/user_data", &[AGENT]),
        slot("POST", "/v1/*/servers", "header:x-password", &["auth.password"]),
        slot("POST", "/v1/*/servers", "header:x-password", &["token"]),
        slot("POST", "/form", "form:UserData", &[AGENT]),
        slot("POST", "/xml", "xml:/r/UserData", &[AGENT]),
        slot("POST", "/part", "part:data", &[AGENT]),
        slot("PUT", "/body", "body", &[AGENT]),
        slot("PUT", "/cookie", "cookie:session", &["token"]),
    ]
}

/// Returns a vault, and the seals of `agent` (call), `auth.password` (job) and `token` (context).
fn vault() -> (Vault, String, String, String) {
    let vault = Vault::new();
    let agent = vault.seal(AGENT, Secret::new(SECRET), Layer::Call);
    let password = vault.seal("auth.password", Secret::new(PASSWORD), Layer::Job);
    let token = vault.seal("token", Secret::new("token-of-the-context"), Layer::Context);
    (vault, agent, password, token)
}

fn typed(content_type: &str) -> Headers {
    vec![("Content-Type".to_owned(), content_type.to_owned())]
}

fn send(
    vault: &Vault,
    origin: Layer,
    line: (&str, &str),
    mut headers: Headers,
    body: impl Into<Vec<u8>>,
) -> (Result<FilledSecrets, SlotError>, Headers, String) {
    let (method, path) = line;
    let mut body = body.into();
    let url = format!("https://api.test{path}?limit=1");
    let request = RequestToFill { method, path, operation: None, url: &url, headers: &mut headers, body: &mut body };
    let filled = fill(vault, &slots(), origin, request);
    (filled, headers, String::from_utf8(body).unwrap())
}

/// Returns a form with one part.
fn part(value: &str) -> String {
    format!("--b\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{value}\r\n--b--\r\n")
}

const SERVERS: (&str, &str) = ("POST", "/v1/p/servers");

#[test]
fn a_seal_in_its_slot_is_replaced_and_encoded_for_the_place() {
    let (vault, agent, _, _) = vault();
    let quoted = json!(SECRET).to_string();
    let escaped: String = agent.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let xml = "settings &quot;with&quot; &lt;hard&gt; &amp; characters";
    let table = [
        (
            SERVERS,
            "application/json",
            format!(r#"{{"server": {{"z": 1, "user_data": "{agent}"}}}}"#),
            format!(r#"{{"server":{{"z":1,"user_data":{quoted}}}}}"#),
        ),
        (
            SERVERS,
            "application/json",
            format!(r#"{{"server":{{"user_data":"{escaped}"}}}}"#),
            format!(r#"{{"server":{{"user_data":{quoted}}}}}"#),
        ),
        (
            ("POST", "/form"),
            "application/x-www-form-urlencoded",
            format!("Action=Run&UserData={agent}"),
            "Action=Run&UserData=settings+%22with%22+%3Chard%3E+%26+characters".to_owned(),
        ),
        (
            ("POST", "/xml"),
            "text/xml",
            format!("<r><UserData>{agent}</UserData></r>"),
            format!("<r><UserData>{xml}</UserData></r>"),
        ),
        (("PUT", "/body"), "text/plain", agent.clone(), SECRET.to_owned()),
    ];
    for (line, content_type, body, expected) in table {
        let (filled, _, sent) = send(&vault, Layer::Context, line, typed(content_type), body.clone());
        assert_eq!(filled.unwrap().names, [AGENT], "{body}");
        assert_eq!(sent, expected, "{body}");
    }
}

#[test]
fn a_body_that_a_server_could_read_as_a_form_is_not_filled() {
    let (vault, agent, _, _) = vault();
    let json = format!(r#"{{"server":{{"a":"&description=","user_data":"{agent}"}}}}"#);
    let xml = format!("<r><![CDATA[&description=]]><UserData>{agent}</UserData></r>");
    let form = format!("UserData={agent}");
    for (line, content_type, body) in [
        (SERVERS, "", &json),
        (SERVERS, "application/x-www-form-urlencoded, application/json", &json),
        (SERVERS, "application/json; x=application/x-www-form-urlencoded", &json),
        (SERVERS, "application/x-www-form-urlencoded+json", &json),
        (("POST", "/xml"), "", &xml),
        (("POST", "/xml"), "application/x-www-form-urlencoded, text/xml", &xml),
        (("POST", "/form"), "", &form),
        (("POST", "/form"), "application/x-www-form-urlencoded, text/xml", &form),
        (("PUT", "/body"), "application/x-www-form-urlencoded", &agent),
    ] {
        let headers = if content_type.is_empty() { Vec::new() } else { typed(content_type) };
        let (filled, after, sent) = send(&vault, Layer::Job, line, headers.clone(), body.clone());
        let error = filled.unwrap_err();
        assert_eq!((error.check, &after, &sent), (Some(Check::PlaceType), &headers, body), "{content_type}: {error}");
        assert!(error.message.contains("the Content-Type is not"), "{error}");
    }
    let file = part(&agent).replace("name=\"data\"", "name=\"data\"; filename=\"f\"");
    let (filled, _, _) = send(&vault, Layer::Job, ("POST", "/part"), typed("multipart/form-data; boundary=b"), file);
    assert_eq!(filled.unwrap_err().check, Some(Check::PartFile));
    // The host says that a body which is a secret as a whole has no format.
    let (filled, headers, sent) = send(&vault, Layer::Job, ("PUT", "/body"), Vec::new(), agent.clone());
    assert_eq!((filled.unwrap().names.as_slice(), sent.as_str()), (&[AGENT.to_owned()][..], SECRET));
    assert_eq!(headers, [("content-type".to_owned(), "application/octet-stream".to_owned())]);
}

#[test]
fn the_host_chooses_the_boundary_of_a_form_that_holds_a_secret() {
    let line = ("POST", "/part");
    for secret in [SECRET, "x\r\n--b\r\nContent-Disposition: form-data; name=\"admin\"\r\n\r\ntrue\r\n--b--"] {
        let vault = Vault::new();
        let agent = vault.seal(AGENT, Secret::new(secret), Layer::Call);
        let (filled, headers, sent) =
            send(&vault, Layer::Job, line, typed("multipart/form-data; boundary=b"), part(&agent));
        assert_eq!(filled.unwrap().names, [AGENT]);
        let boundary = headers[0].1.strip_prefix("multipart/form-data; boundary=").unwrap();
        assert!(boundary.len() == 40 && boundary != "b", "{boundary}");
        let place: Place = "part:data".parse().unwrap();
        let message = Message { headers: &headers, body: sent.as_bytes() };
        assert_eq!(place.read(&message).unwrap().as_deref(), Some(secret), "{sent}");
    }
}

#[test]
fn several_slots_are_filled_at_once() {
    let (vault, agent, password, token) = vault();
    let mut headers = typed("application/json");
    headers.push(("X-Password".to_owned(), password));
    let body = json!({"server": {"user_data": agent}}).to_string();
    let (filled, headers, sent) = send(&vault, Layer::Job, SERVERS, headers, body);
    assert_eq!(filled.unwrap().names, [AGENT, "auth.password"]);
    assert_eq!(headers[1].1, PASSWORD);
    assert_eq!(sent, json!({"server": {"user_data": SECRET}}).to_string());

    let cookies = vec![("cookie".to_owned(), format!("a=1; session={token}"))];
    let (filled, headers, _) = send(&vault, Layer::Job, ("PUT", "/cookie"), cookies, "");
    assert_eq!(filled.unwrap().names, ["token"]);
    assert_eq!(headers[0].1, "a=1; session=token-of-the-context");
}

#[test]
fn a_request_without_seals_is_sent_as_it_is() {
    let (vault, ..) = vault();
    for body in ["{\"server\" : {\"user_data\":\"x\"} , \"a\":1,\"a\":2}", "", "\u{0}<broken"] {
        let (filled, headers, sent) = send(&vault, Layer::Job, SERVERS, typed("application/json"), body);
        assert_eq!((filled, headers, sent.as_str()), (Ok(FilledSecrets::default()), typed("application/json"), body));
    }
}

#[test]
fn a_request_with_a_seal_outside_its_slot_is_refused() {
    let (vault, agent, password, token) = vault();
    let json = "application/json";
    let in_slot = |value: &str| json!({"server": {"user_data": value}}).to_string();
    type Row = ((&'static str, &'static str), Headers, String, &'static str, &'static str);
    let table: Vec<Row> = vec![
        (
            SERVERS,
            typed(json),
            json!({"server": {"name": agent}}).to_string(),
            AGENT,
            "in `json:/server/name`, where the grant has no slot",
        ),
        (
            SERVERS,
            typed(json),
            json!({"server": {"user_data": agent, "l": ["x", agent]}}).to_string(),
            AGENT,
            "`json:/server/l/1`",
        ),
        (SERVERS, typed(json), json!({"server": {agent.as_str(): 1}}).to_string(), AGENT, "a key of the JSON body"),
        (
            SERVERS,
            typed(json),
            in_slot(&format!("x{agent}")),
            AGENT,
            "within a longer text in `json:/server/user_data`",
        ),
        (SERVERS, typed(json), in_slot(&format!("{agent}{agent}")), AGENT, "complete value"),
        (
            SERVERS,
            typed(json),
            json!({"server": {"user_data": {"x": agent}}}).to_string(),
            AGENT,
            "not a single plain value",
        ),
        (
            SERVERS,
            typed(json),
            format!(r#"{{"server":{{"user_data":"x","user_data":"{agent}"}}}}"#),
            AGENT,
            "a key twice",
        ),
        (SERVERS, typed("text/plain"), in_slot(&agent), AGENT, "Content-Type is not JSON"),
        (SERVERS, typed(json), in_slot(&password), "auth.password", "slot takes `agent` only"),
        (
            SERVERS,
            vec![("x-password".to_owned(), agent.clone())],
            String::new(),
            AGENT,
            "slot takes `auth.password`, `token` only",
        ),
        (SERVERS, vec![("x-name".to_owned(), token.clone())], String::new(), "token", "in `header:x-name`"),
        (SERVERS, vec![(password.clone(), "x".to_owned())], String::new(), "auth.password", "name of a header"),
        (
            SERVERS,
            vec![("x-password".to_owned(), token.clone()), ("X-Password".to_owned(), token.clone())],
            String::new(),
            "token",
            "more than once",
        ),
        (("PUT", "/v1/p/servers"), typed(json), in_slot(&agent), AGENT, "no slot"),
        (("POST", "/v1/p/servers/x"), typed(json), in_slot(&agent), AGENT, "no slot"),
        (("POST", "/form"), typed("application/x-www-form-urlencoded"), format!("Name={agent}"), AGENT, "`form:Name`"),
        (
            ("POST", "/form"),
            typed("application/x-www-form-urlencoded"),
            format!("UserData={agent}&UserData=x"),
            AGENT,
            "more than once",
        ),
        (
            ("POST", "/xml"),
            typed("text/xml"),
            format!("<r a=\"{agent}\"><UserData>x</UserData></r>"),
            AGENT,
            "the body",
        ),
        (
            ("POST", "/xml"),
            typed("text/xml"),
            format!("<r><UserData>x</UserData><!--{agent}--></r>"),
            AGENT,
            "the body",
        ),
        (("PUT", "/body"), typed("text/plain"), format!("{agent}\n"), AGENT, "the body"),
        (
            SERVERS,
            typed(json),
            in_slot(&STANDARD.encode(&agent)),
            AGENT,
            "changed by base64; the guest must send it as it is, and name the encoding",
        ),
        // The last letter and not the first: the escape of a digit ends in that digit.
        (SERVERS, typed(json), in_slot(&format!("{}%{:x}", &agent[..39], agent.as_bytes()[39])), AGENT, "changed by"),
        (SERVERS, typed(json), in_slot(&agent.to_lowercase()), AGENT, "changed by changing its case"),
        (
            SERVERS,
            typed(json),
            json!([&password[..20], &password[20..]]).to_string(),
            "auth.password",
            "changed by splitting",
        ),
    ];
    for (line, headers, body, name, why) in table {
        let (filled, headers_after, body_after) = send(&vault, Layer::Job, line, headers.clone(), body.clone());
        let error = filled.expect_err(&body);
        assert_eq!(error.name, name, "{error}");
        assert!(error.message.contains(why), "{why}: {error}");
        assert_eq!((headers_after, body_after), (headers, body), "a refused request stays as it is");
        for secret in [SECRET, PASSWORD, "token-of-the-context"] {
            assert!(!format!("{error:?}").contains(secret), "{error:?}");
        }
    }
}

#[test]
fn a_slot_of_an_operation_is_filled_in_no_other_one() {
    let (vault, agent, ..) = vault();
    let bound = |operation: Option<&str>| Slot {
        operation: operation.map(str::to_owned),
        ..slot("POST", "/", "form:UserData", &[AGENT])
    };
    let send = |slot: &Slot, operation: Option<&str>, place: &str| {
        let mut headers = typed("application/x-www-form-urlencoded");
        let mut body = format!("Action=Any&{place}={agent}").into_bytes();
        let request = RequestToFill {
            method: "POST",
            path: "/",
            operation,
            url: "https://api.test/",
            headers: &mut headers,
            body: &mut body,
        };
        fill(&vault, std::slice::from_ref(slot), Layer::Job, request).map_err(|error| error.check)
    };
    for (slot, operation, fills) in [
        (Some("Run"), Some("Run"), true),
        (Some("Run"), Some("Tag"), false),
        (Some("Run"), Some("run"), false),
        (Some("Run"), None, false),
        (None, Some("Run"), true),
        (None, None, true),
    ] {
        let filled = send(&bound(slot), operation, "UserData");
        if fills {
            assert_eq!(filled.unwrap().names, [AGENT], "{slot:?} {operation:?}");
        } else {
            assert_eq!(filled.unwrap_err(), Some(Check::SealOutsideSlot), "{slot:?} {operation:?}");
        }
    }
    assert_eq!(send(&bound(Some("Run")), Some("Run"), "Name").unwrap_err(), Some(Check::SealOutsideSlot));
}

#[test]
fn a_seal_in_the_url_is_refused_even_if_it_is_encoded() {
    let (vault, agent, ..) = vault();
    let escaped: String = agent.bytes().map(|byte| format!("%{byte:02X}")).collect();
    for text in [agent.clone(), STANDARD.encode(&agent), escaped] {
        for url in [
            format!("https://api.test/{text}"),
            format!("https://api.test/?q=x{text}"),
            format!("https://{text}.test/"),
        ] {
            let (headers, body) = (&mut Vec::new(), &mut Vec::new());
            let request = RequestToFill { method: "GET", path: "/", operation: None, url: &url, headers, body };
            let error = fill(&vault, &slots(), Layer::Job, request).unwrap_err();
            assert_eq!((error.name.as_str(), error.place, error.check), (AGENT, None, Some(Check::SealInUrl)));
        }
    }
}

#[test]
fn a_refusal_holds_the_place_of_a_seal_only_if_a_policy_can_name_it() {
    let (_, agent, ..) = vault();
    for (key, nameable) in [("a", true), ("a`", true), ("a\u{200b}", false), (&"a".repeat(300), false)] {
        let found = seal_location::locate(&agent, &[], json!({key: agent}).to_string().as_bytes());
        assert_eq!(found.place, nameable.then(|| Place::Json(vec![key.to_owned()])), "{key}");
    }
    let found = seal_location::locate(&agent, &[], json!({&agent: 1}).to_string().as_bytes());
    assert_eq!((found.place, found.text.as_str()), (None, "a key of the JSON body"));
}

#[test]
fn secrets_are_sent_to_origins_of_an_allowed_layer_only() {
    let (vault, agent, password, token) = vault();
    let table = [
        (&password, Layer::Job, true),
        (&password, Layer::Context, false),
        (&token, Layer::Job, true),
        (&token, Layer::Context, true),
    ];
    for (seal, origin, allowed) in table {
        let headers = vec![("x-password".to_owned(), seal.clone())];
        let (filled, ..) = send(&vault, origin, SERVERS, headers, "");
        assert_eq!(filled.is_ok(), allowed, "{filled:?}");
        assert!(allowed || filled.unwrap_err().message.contains("comes from the job's configuration"));
    }
    for origin in [Layer::Job, Layer::Context] {
        let body = json!({"server": {"user_data": agent}}).to_string();
        assert!(send(&vault, origin, SERVERS, typed("application/json"), body).0.is_ok());
    }
}

#[test]
fn a_secret_that_does_not_fit_its_slot_is_not_sent() {
    let vault = Vault::new();
    let token = vault.seal("token", Secret::new("two\r\nlines: of it"), Layer::Call);
    let (filled, headers, _) = send(&vault, Layer::Job, SERVERS, vec![("x-password".to_owned(), token.clone())], "");
    assert!(filled.unwrap_err().message.contains("cannot be put into its slot"));
    assert_eq!(headers[0].1, token);
}

/// Generates JSON with marks for seals: `0` becomes a seal, `1` another one, `2` a seal within a text.
fn json_with_seal_marks() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(json!(null)), Just(json!("text")), (0..3u8).prop_map(|n| json!(n))];
    let tree = leaf.prop_recursive(3, 12, 3, |inner| {
        let key = prop_oneof![Just("server"), Just("user_data"), Just("name")].prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map(key, inner, 0..3).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    });
    prop_oneof![tree.clone(), tree.prop_map(|inner| json!({"server": {"user_data": 0, "name": inner}}))]
}

proptest! {
    #[test]
    fn no_seal_or_secret_is_sent_outside_a_slot(
        tree in json_with_seal_marks(),
        header in prop_oneof![Just("x-password"), Just("x-other")],
        value in 0..5u8,
        origin in prop_oneof![Just(Layer::Job), Just(Layer::Context)],
    ) {
        let (vault, agent, password, _) = vault();
        let stamp = |text: String| text.replace('0', &format!("\"{agent}\"")).replace('1', &format!("\"{password}\"")).replace('2', &format!("\"x{agent}\""));
        let value = [agent.as_str(), password.as_str(), "text", "", "x"][usize::from(value)];
        let mut headers = typed("application/json");
        headers.push((header.to_owned(), value.to_owned()));
        let (filled, headers, body) = send(&vault, origin, SERVERS, headers, stamp(tree.to_string()));
        if filled.is_ok() {
            prop_assert!(seals(&vault, &headers, body.as_bytes()).is_empty());
            let mut sent: Value = serde_json::from_str(&body).unwrap();
            if let Some(slot) = sent.pointer_mut("/server/user_data") && *slot == json!(SECRET) {
                *slot = json!("");
            }
            let in_slot = header == "x-password" && origin == Layer::Job && headers[1].1 == PASSWORD;
            prop_assert!(in_slot || vault.leak_in(headers[1].1.as_bytes()).unwrap().is_none());
            prop_assert_eq!(vault.leak_in(sent.to_string().as_bytes()).unwrap(), None);
        } else {
            prop_assert_eq!(vault.leak_in(body.as_bytes()).unwrap(), None);
            prop_assert_eq!(vault.leak_in(headers[1].1.as_bytes()).unwrap(), None);
        }
    }

    #[test]
    fn no_body_makes_filling_panic(body in prop::collection::vec(any::<u8>(), 0..40), at in 0..41usize, path in 0..5usize) {
        let (vault, agent, ..) = vault();
        let mut body = body;
        let at = at.min(body.len());
        body.splice(at..at, agent.bytes());
        let before = body.clone();
        let (method, path, kind) = [
            ("POST", "/v1/p/servers", "application/json"),
            ("POST", "/form", "application/x-www-form-urlencoded"),
            ("POST", "/xml", "text/xml"),
            ("POST", "/part", "multipart/form-data; boundary=b"),
            ("PUT", "/body", ""),
        ][path];
        let (url, headers) = ("https://api.test/", &mut typed(kind));
        let request = RequestToFill { method, path, operation: None, url, headers, body: &mut body };
        if fill(&vault, &slots(), Layer::Job, request).is_err() {
            prop_assert_eq!(body, before);
        }
    }
}
