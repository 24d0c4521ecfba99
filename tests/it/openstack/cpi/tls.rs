//! A cloud with a certificate of a private CA, which is a property of the job.

use super::Cpi;
use super::life::live;
use serde_json::{Value, json};
use tests::openstack::{Gateway, Real, Simulator, alone};

#[test]
fn a_deployment_goes_through_a_front_with_a_private_ca() {
    let gateway = Gateway::secure(Simulator::new());
    let cpi = Cpi::new(&gateway).set("enable_auto_anti_affinity", json!(true));
    live(&cpi);
    assert!(cpi.cloud["endpoints"]["compute"].as_str().is_some_and(|url| url.starts_with("https://")));
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that does nothing has to say so")]
fn real_services_are_behind_that_front_as_well() {
    let Some(real) = Real::from_environment() else {
        eprintln!("NOT RUN on real services: no cloud is named");
        return;
    };
    let _alone = alone();
    let gateway = Gateway::secure(real);
    let cpi = Cpi::new(&gateway);
    let before = cpi.api.contents();
    let stemcell = cpi.stemcell();
    let (vm, _) = cpi.create_vm(super::small(&cpi, &stemcell, "10.0.0.61"));
    assert!(cpi.api.user_data(&vm).is_some());
    cpi.ok("delete_vm", json!([vm]));
    cpi.ok("delete_stemcell", json!([stemcell]));
    assert_eq!(cpi.api.left_behind(&before), Vec::<String>::new());
}

#[test]
fn no_other_ca_will_do() {
    let gateway = Gateway::secure(Simulator::new());
    let other = Gateway::secure(Simulator::new()).cloud()["ca"].clone();
    for (options, said) in [
        (json!({"ca_cert": other}), "login `keystone` failed (tls)"),
        // Without one, only those that all the world trusts.
        (Value::Null, "connection_options.ca_cert"),
        (
            json!({"ca_cert": "-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n"}),
            "config: login `keystone` failed (tls)",
        ),
    ] {
        let cpi = Cpi::new(&gateway).set("connection_options", options.clone());
        gateway.forget();
        let response = cpi.ask("has_vm", json!(["vm"]));
        assert!(response.message().contains(said), "{options}: {}", response.message());
        assert_eq!(gateway.records().len(), 0, "{options}");
    }
}
