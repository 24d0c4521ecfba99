//! A cloud whose certificate is from a private CA. The CA is a property of the job.

use super::Cpi;
use super::lifecycle::run_lifecycle;
use serde_json::{Value, json};
use tests::openstack::{Gateway, Simulator, on_each_secure_cloud};

#[test]
fn a_deployment_works_on_a_cloud_with_a_private_ca() {
    on_each_secure_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway).set("enable_auto_anti_affinity", json!(true));
        for (endpoint, url) in cpi.cloud["endpoints"].as_object().into_iter().flatten() {
            assert!(url.as_str().is_some_and(|url| url.starts_with("https://")), "{name}: {endpoint} at {url}");
        }
        let before = cpi.api.contents();
        run_lifecycle(&cpi);
        cpi.delete_new_server_groups(&before);
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}

#[test]
fn a_cloud_with_another_ca_is_refused() {
    let other = Gateway::secure(Simulator::new()).cloud()["ca"].clone();
    on_each_secure_cloud(|name, gateway| {
        for (options, expected) in [
            (json!({"ca_cert": other}), "login `keystone` failed (tls)"),
            // Without the property, only the public CAs are trusted.
            (Value::Null, "connection_options.ca_cert"),
            (
                json!({"ca_cert": "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n"}),
                "config: login `keystone` failed (tls)",
            ),
        ] {
            let cpi = Cpi::new(gateway).set("connection_options", options.clone());
            gateway.clear_records();
            let response = cpi.run("has_vm", json!(["vm"]));
            assert!(response.message().contains(expected), "{name}: {options}: {}", response.message());
            assert_eq!(gateway.records().len(), 0, "{name}: {options}");
        }
    });
}
