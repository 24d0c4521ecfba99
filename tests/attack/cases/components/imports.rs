//! Imports that are not offered, or not so: all are told, with a reason, before
//! anything is compiled.

use super::{CLASS, component, has_vm, refused};
use crate::case::Case;
use tests::{Job, hostile};

fn importing(imports: &str) -> Job {
    Job::new().guest_bytes(&component(&format!("(component {imports})")))
}

const NOT_GIVEN: &str = "which no CPI is given";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::silent(CLASS, "imports of other vendors and of `wasi:http`", &["imports"], || {
            let job = Job::new().guest_bytes(&hostile::guest("foreign-imports"));
            refused(
                &job,
                &[
                    "imports wasi:http/outgoing-handler@0.2.0, which no CPI is given; use bosh:cpi/http",
                    "imports acme:secrets/store, which no CPI is given",
                    "imports bosh:cpi/files@0.1.0, which bosh:cpi does not have",
                ],
            );
        }),
        Case::silent(CLASS, "interfaces of WASI that are not on the list", &["imports"], || {
            for name in [
                "wasi:keyvalue/store",
                "wasi:blobstore/container",
                "wasi:config/store",
                "wasi:nn/graph",
                "wasi:cli/run",
                "wasi:cli/environments",
                "wasi:clocks/timezone",
                "wasi:tls/types",
            ] {
                refused(&importing(&format!("(import \"{name}@0.2.0\" (instance))")), &[name, NOT_GIVEN]);
            }
        }),
        Case::silent(CLASS, "later and earlier versions of the world and of WASI", &["imports"], || {
            for version in ["0.2.0", "0.9.0", "1.0.0", "0.0.1", "0.1.0-rc.1", "0.1.1"] {
                let said = format!("wants bosh:cpi@{version}, but this runtime offers 0.1.0");
                refused(&importing(&format!("(import \"bosh:cpi/http@{version}\" (instance))")), &[&said]);
            }
            refused(&importing("(import \"bosh:cpi/http\" (instance))"), &["but this runtime offers 0.1.0"]);
            for version in ["0.3.0", "0.1.0", "1.0.0", "0.20.0"] {
                let name = format!("wasi:io/poll@{version}");
                refused(&importing(&format!("(import \"{name}\" (instance))")), &[&name, NOT_GIVEN]);
            }
        }),
        Case::silent(CLASS, "imports by plain name, URL, hash or lock", &["imports"], || {
            for import in [
                "\"run\" (func)",
                "\"secrets\" (component)",
                "\"a-type\" (type (sub resource))",
                "\"url=<https://evil.test/x>\" (component)",
                "\"integrity=<sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=>\" (component)",
                "\"locked-dep=<bosh:cpi/log@0.1.0>\" (component)",
                "\"unlocked-dep=<wasi:io/poll@{>=0.2.0}>\" (component)",
            ] {
                refused(&importing(&format!("(import {import})")), &["guest.wasm: the module "]);
            }
        }),
        Case::silent(CLASS, "the right name and another type", &[], || {
            for import in [
                "\"bosh:cpi/log@0.1.0\" (func)",
                "\"bosh:cpi/log@0.1.0\" (instance (export \"log\" (func (param \"message\" string))))",
                "\"bosh:cpi/log@0.1.0\" (instance (export \"read-log\" (func (result string))))",
                "\"bosh:cpi/random@0.1.0\" (instance (export \"bytes\" (func (param \"count\" u32) (result string))))",
                "\"wasi:random/random@0.2.0\" (instance (export \"get-random-u64\" (func (result u32))))",
                "\"wasi:cli/environment@0.2.0\" (instance (export \"set-environment\" (func (param \"x\" string))))",
                "\"wasi:filesystem/types@0.2.0\" (func)",
                "\"wasi:filesystem/types@0.2.0\" (instance (export \"secret\" (type (sub resource))))",
            ] {
                refused(
                    &importing(&format!("(import {import})")),
                    &["guest.wasm: the module does not fit the world bosh:cpi"],
                );
            }
        }),
        Case::silent(CLASS, "a foreign import in a component within", &[], || {
            // Nobody can give it what it asks for, and so nobody runs it.
            let inner = component("(component (component (import \"wasi:http/outgoing-handler@0.2.0\" (instance))))");
            let guest = [&hostile::guest("small"), &inner[8..]].concat();
            assert_eq!(*has_vm(&Job::new().guest_bytes(&guest)).result(), true);
        }),
    ]
}
