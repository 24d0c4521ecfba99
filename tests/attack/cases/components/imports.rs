//! Imports that are not offered, or with another type. All of them are reported with
//! a reason before anything is compiled.

use super::{CLASS, assert_refused, component, has_vm};
use crate::case::Case;
use tests::{Job, hostile};

fn importing(imports: &str) -> Job {
    Job::new().guest_bytes(&component(&format!("(component {imports})")))
}

const NOT_GIVEN: &str = "which this runtime does not offer";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::offline(CLASS, "imports of other vendors and of `wasi:http`", &["imports"], || {
            let job = Job::new().guest_bytes(&hostile::guest("foreign-imports"));
            assert_refused(
                &job,
                &[
                    "imports wasi:http/outgoing-handler@0.2.0, which this runtime does not offer; use bosh:cpi/http",
                    "imports acme:secrets/store, which this runtime does not offer",
                    "imports bosh:cpi/files@0.1.0, which bosh:cpi does not have",
                ],
            );
        }),
        Case::offline(CLASS, "interfaces of WASI that are not on the list", &["imports"], || {
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
                assert_refused(&importing(&format!("(import \"{name}@0.2.0\" (instance))")), &[name, NOT_GIVEN]);
            }
        }),
        Case::offline(CLASS, "later and earlier versions of the world and of WASI", &["imports"], || {
            for version in ["0.2.0", "0.9.0", "1.0.0", "0.0.1", "0.1.0-rc.1", "0.1.1"] {
                let said = format!("imports bosh:cpi@{version}, but this runtime offers 0.1.0");
                assert_refused(&importing(&format!("(import \"bosh:cpi/http@{version}\" (instance))")), &[&said]);
            }
            assert_refused(&importing("(import \"bosh:cpi/http\" (instance))"), &["but this runtime offers 0.1.0"]);
            for version in ["0.3.0", "0.1.0", "1.0.0", "0.20.0"] {
                let name = format!("wasi:io/poll@{version}");
                assert_refused(&importing(&format!("(import \"{name}\" (instance))")), &[&name, NOT_GIVEN]);
            }
        }),
        Case::offline(CLASS, "imports by plain name, URL, hash or locked dependency", &["imports"], || {
            for import in [
                "\"run\" (func)",
                "\"secrets\" (component)",
                "\"a-type\" (type (sub resource))",
                "\"url=<https://evil.test/x>\" (component)",
                "\"integrity=<sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=>\" (component)",
                "\"locked-dep=<bosh:cpi/log@0.1.0>\" (component)",
                "\"unlocked-dep=<wasi:io/poll@{>=0.2.0}>\" (component)",
            ] {
                assert_refused(&importing(&format!("(import {import})")), &["guest.wasm: the guest "]);
            }
        }),
        Case::offline(CLASS, "imports with the right name and another type", &[], || {
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
                assert_refused(
                    &importing(&format!("(import {import})")),
                    &["guest.wasm: the guest does not fit the world bosh:cpi"],
                );
            }
        }),
        Case::offline(CLASS, "a foreign import in a nested component", &[], || {
            // The nested component is never instantiated, as its import cannot be satisfied.
            let inner = component("(component (component (import \"wasi:http/outgoing-handler@0.2.0\" (instance))))");
            let guest = [&hostile::guest("small"), &inner[8..]].concat();
            assert_eq!(*has_vm(&Job::new().guest_bytes(&guest)).result(), true);
        }),
    ]
}
