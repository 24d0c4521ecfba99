//! A cloud with a certificate of a private CA, which is a property of the job.

use super::Cpi;
use super::life::live;
use serde_json::{Value, json};
use tests::openstack::{Gateway, Simulator, on_each_secure_cloud};

#[test]
fn a_deployment_goes_through_a_front_with_a_private_ca() {
    on_each_secure_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway).set("enable_auto_anti_affinity", json!(true));
        for (endpoint, url) in cpi.cloud["endpoints"].as_object().into_iter().flatten() {
            assert!(url.as_str().is_some_and(|url| url.starts_with("https://")), "{name}: {endpoint} at {url}");
        }
        let before = cpi.api.contents();
        live(&cpi);
        cpi.drop_groups(&before);
        assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new(), "{name}");
    });
}

#[test]
fn no_other_ca_will_do() {
    let other = Gateway::secure(Simulator::new()).cloud()["ca"].clone();
    on_each_secure_cloud(|name, gateway| {
        for (options, said) in [
            (json!({"ca_cert": other}), "login `keystone` failed (tls)"),
            // Without one, only those that all the world trusts.
            (Value::Null, "connection_options.ca_cert"),
            (
                json!({"ca_cert": "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n"}),
                "config: login `keystone` failed (tls)",
            ),
        ] {
            let cpi = Cpi::new(gateway).set("connection_options", options.clone());
            gateway.forget();
            let response = cpi.ask("has_vm", json!(["vm"]));
            assert!(response.message().contains(said), "{name}: {options}: {}", response.message());
            assert_eq!(gateway.records().len(), 0, "{name}: {options}");
        }
    });
}
