//! Environment variables that other programs use. Most of them are rows; these name
//! files. The lock-down is off here, as it would prevent the process from opening
//! the files.

use crate::case::{API, Case};
use crate::row;
use serde_json::{Value, json};
use tests::job::write;
use tests::probe;

const CLASS: &str = "redirects and proxies";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new(CLASS, "SSL_CERT_FILE and similar variables name authorities", &["tls-environment"], |world| {
            let job = tests::Job::default().policy(json!({"version": 1, "http": [{
                "id": "api", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/v1/**"],
            }]}));
            let job = job.configure(|config| config["hardening"] = json!("off"));
            let file = job.path("authority.pem");
            write(&file, world.authority().as_bytes());
            let mut call = job.call("has_vm", json!([probe::cid(&get())]));
            for name in ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"] {
                call = call.env(name, file.as_os_str());
            }
            let call = call.env("SSL_CERT_DIR", job.path("")).env("OPENSSL_CONF", file.as_os_str());
            row::prepare(world, &Value::Null)?;
            expect(&probe::outcomes_in(call.run().message())[0]["error"]["kind"], &json!("tls"))?;
            expect(&json!(world.requests().len()), &json!(0))
        })
        .may_contact(API),
        Case::new(CLASS, "SSLKEYLOGFILE asks for the keys of connections", &["tls-key-log"], |world| {
            let job = row::job(world, &json!({"config": {"hardening": "off"}}));
            let file = job.path("keys");
            let call = job.call("has_vm", json!([probe::cid(&get())])).env("SSLKEYLOGFILE", file.as_os_str());
            row::prepare(world, &Value::Null)?;
            expect(&probe::outcomes_in(call.run().message())[0]["ok"]["status"], &json!(200))?;
            expect(&json!(file.exists()), &json!(false))
        })
        .may_contact(API),
    ]
}

fn get() -> Value {
    json!([{"op": "http", "url": "https://api.iaas.test/v1/x"}])
}

fn expect(got: &Value, expected: &Value) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("expected {expected}, got {got}")) }
}
