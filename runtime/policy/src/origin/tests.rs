use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::Properties;
use crate::object_reader::ObjectReader;
use crate::problem::Problems;
use crate::regions::Regions;
use crate::secret::Layer;

fn origin(text: &str) -> Origin {
    Origin::parse(text).unwrap_or_else(|why| panic!("{text}: {why:?}"))
}

fn host(text: &str) -> Destination {
    Destination::parse(text, 8192).unwrap()
}

const METADATA_V6: &str = concat!("http://[fd00:e", "c2::254]");

#[test]
fn origins_print_as_they_were_written() {
    for text in [
        "https://api.iaas.test",
        "https://api.iaas.test:8774",
        "http://api.iaas.test:443",
        "https://*.iaas.test",
        "https://*.any.test:8443",
        "https://10.0.0.5",
        "https://[fd01::1]:5000",
        "https://127.0.0.1:8080",
        "https://localhost:8080",
        "https://xn--bcher-kva.test",
    ] {
        assert_eq!(origin(text).to_string(), text);
    }
    assert_eq!(origin("https://api.iaas.test:443"), origin("https://api.iaas.test"));
}

#[test]
fn an_invalid_origin_is_refused_with_a_remedy() {
    for (text, remedy) in [
        ("", "write it like"),
        ("api.iaas.test", "write it like"),
        ("*", "write it like"),
        ("*://api.iaas.test", "write it like"),
        ("https:api.iaas.test", "write it like"),
        ("ftp://api.iaas.test", "write it like"),
        ("https://", "write it like"),
        ("https://*", "name the host"),
        ("https://*:443", "name the host"),
        ("https://*.test", "name more of it"),
        ("https://*.iaas.*", "write it like"),
        ("https://a.*.iaas.test", "write it like"),
        ("https://a*.iaas.test", "write it like"),
        ("https://*.10.0.0.5", "write it like"),
        ("https://api.iaas.test/", "paths go into `paths`"),
        ("https://api.iaas.test/v1", "paths go into `paths`"),
        ("https://api.iaas.test?x", "paths go into `paths`"),
        ("https://user@api.iaas.test", "write it like"),
        ("https://api.iaas.test.", "write it like"),
        ("https://.iaas.test", "write it like"),
        ("https://api.iaas.test:", "write it like"),
        ("https://api.iaas.test:0", "write it like"),
        ("https://API.iaas.test", "write it as `https://api.iaas.test`"),
        ("https://*.IAAS.test", "write it as `https://*.iaas.test`"),
        ("HTTPS://api.iaas.test", "write it as `https://api.iaas.test`"),
        ("https://bücher.test", "write it as `https://xn--bcher-kva.test`"),
        ("https://2130706433", "write it as `https://127.0.0.1`"),
        ("https://[::ffff:10.0.0.5]:8443", "write it as `https://10.0.0.5:8443`"),
        ("https://[0::1]", "write it as `https://[::1]`"),
        ("http://169.254.169.254", "remove the grant"),
        ("http://0.0.0.0", "remove the grant"),
        ("http://[fe80::1]", "remove the grant"),
        ("http://[::]", "remove the grant"),
        (METADATA_V6, "remove the grant"),
    ] {
        let error = Origin::parse(text).unwrap_err();
        let (what, advice) = (error.to_string(), error.remedy());
        assert!(advice.contains(remedy), "{text}: {what}; {advice}");
    }
}

#[test]
fn a_wildcard_stands_for_exactly_one_label() {
    let wildcard = origin("https://*.iaas.test");
    for (url, matches) in [
        ("https://a.iaas.test/", true),
        ("https://A.iaas.test/x", true),
        ("https://iaas.test/", false),
        ("https://a.b.iaas.test/", false),
        ("https://.iaas.test/", false),
        ("https://aiaas.test/", false),
        ("https://a.iaas.test./", false),
        ("https://a.iaas.test.evil.test/", false),
        ("https://a.iaas.test:8443/", false),
        ("http://a.iaas.test/", false),
    ] {
        assert_eq!(wildcard.matches(&host(url)), matches, "{url}");
    }
    assert!(wildcard.covers(&origin("https://a.iaas.test")) && wildcard.covers(&wildcard));
    assert!(!wildcard.covers(&origin("https://a.b.iaas.test")) && !origin("https://a.iaas.test").covers(&wildcard));
}

#[test]
fn a_property_is_the_whole_origin_or_one_label() {
    let job = json!({"url": "HTTPS://Api.iaas.test:5000/v3?x", "region": "RegionOne", "dotted": "a.b", "bad": "ftp://x",
                     "user": "https://u:p@a.test", "meta": "http://169.254.169.254/", "dot": "https://a.test./", "star": "https://*.a.test"});
    let context = json!({"zone": "z1"});
    let properties = Properties::merge(job.as_object().cloned().unwrap(), context.as_object().cloned().unwrap());
    let regions = json!({"regions": ["z1"]});
    let regions = Regions::read(&mut ObjectReader::open(&regions, "", &Problems::default()).unwrap());
    let resolve = |text: &str| {
        let problems = Problems::default();
        let spec = OriginSpec::parse(text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
        assert_eq!(spec.to_string(), text);
        let found =
            spec.resolve(&properties, &regions, "to", &problems).map(|found| (found.origin.to_string(), found.layer));
        (found, problems.into_vec())
    };
    for (text, origin, layer) in [
        ("${url}", "https://api.iaas.test:5000", Layer::Job),
        ("https://${region}.iaas.test", "https://regionone.iaas.test", Layer::Job),
        ("https://api.${zone}.iaas.test:8443", "https://api.z1.iaas.test:8443", Layer::Job),
        ("https://api.iaas.test", "https://api.iaas.test", Layer::Job),
    ] {
        assert_eq!(resolve(text), (Some((origin.to_owned(), layer)), Vec::new()), "{text}");
    }
    for text in [
        "${nothing}",
        "${bad}",
        "${user}",
        "${meta}",
        "${dot}",
        "${star}",
        "https://${dotted}.iaas.test",
        "https://${url}.iaas.test",
    ] {
        let (found, problems) = resolve(text);
        assert_eq!((found, problems.len()), (None, 1), "{text}: {problems:?}");
        assert!(!problems[0].to_string().contains("u:p"), "{}", problems[0]);
    }
    for text in [
        "${",
        "${a}${b}",
        "https://${a}.test",
        "ftp://${a}",
        "https://${a}/",
        "https://x@${a}",
        "https://${a}${b}",
        "https://${a}:443",
        "https://x-${a}.iaas.test",
        "https://${a}x.iaas.test",
        "https://${a}.${b}.iaas.test",
        "https://*.${a}.iaas.test",
        "${a}://api.iaas.test",
        "https://api.iaas.test:${a}",
        "https://api.iaas.test/${a}",
        "https://${a}.iaas.test/x",
        "https://${a}.IAAS.test",
    ] {
        assert!(OriginSpec::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_property_behind_a_scheme_is_a_host_or_a_url() {
    let resolve = |text: &str, value: &str| {
        let job = json!({"endpoint": value});
        let properties = Properties::merge(job.as_object().cloned().unwrap(), serde_json::Map::new());
        let problems = Problems::default();
        let spec = OriginSpec::parse(text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
        assert_eq!((spec.to_string().as_str(), spec.property().map(String::as_str)), (text, Some("endpoint")));
        let found = spec.resolve(&properties, &Regions::default(), "to", &problems);
        let found = found.map(|found| format!("{}{}", found.origin, found.base));
        found.ok_or_else(|| problems.into_vec().iter().map(ToString::to_string).collect::<String>())
    };
    for (text, value, origin) in [
        ("https://${endpoint}", "api.eu-1.cloud.test", "https://api.eu-1.cloud.test"),
        ("https://${endpoint}", "API.eu-1.cloud.test:8443", "https://api.eu-1.cloud.test:8443"),
        ("https://${endpoint}", "10.0.0.5:443", "https://10.0.0.5"),
        ("https://${endpoint}", "[fd01::1]:8443", "https://[fd01::1]:8443"),
        ("https://${endpoint}", "https://api.cloud.test", "https://api.cloud.test"),
        ("https://${endpoint}", "https://api.cloud.test:8443/base/", "https://api.cloud.test:8443/base"),
        ("https://${endpoint}", "http://api.cloud.test", "http://api.cloud.test"),
        ("http://${endpoint}", "api.cloud.test", "http://api.cloud.test"),
        ("http://${endpoint}", "https://api.cloud.test", "https://api.cloud.test"),
    ] {
        assert_eq!(resolve(text, value), Ok(origin.to_owned()), "{text} {value}");
    }
    for value in [
        "",
        "*.cloud.test",
        "api.cloud.test/",
        "api.cloud.test/v1",
        "api.cloud.test?x",
        "api.cloud.test#x",
        "hunter2@api.cloud.test",
        "api.cloud.test@evil.test",
        "api%2ecloud.test",
        "api.cloud.test:",
        "api.cloud.test:0",
        "api.cloud.test:+1",
        "api.cloud.test.",
        ".cloud.test",
        "api cloud.test",
        "https:api.cloud.test",
        "//api.cloud.test",
        "ftp://api.cloud.test",
        "https://*.cloud.test",
        "https://hunter2@api.cloud.test",
        "169.254.169.254",
        "0.0.0.0",
    ] {
        let refused = resolve("https://${endpoint}", value).unwrap_err();
        assert!(
            refused.contains("the value of the property `endpoint`") && !refused.contains("hunter2"),
            "{value}: {refused}"
        );
    }
}

proptest! {
    #[test]
    fn parsing_never_panics_and_what_it_accepts_is_stable(text in r"(https?|ftp|\*)?(://)?(\*\.)?[a-zA-Z0-9.\[\]:@%é-]{0,14}(\$\{[a-z.]{0,3}\}?)?(\.[a-z.]{1,6})?(:[0-9]{0,5})?") {
        if let Ok(spec) = OriginSpec::parse(&text) {
            prop_assert_eq!(OriginSpec::parse(&spec.to_string()), Ok(spec));
        }
    }
}
