//! Checks that a response has the form that a Director expects.
//!
//! The checks are stricter than either client: all keys must be present, `log` must be a
//! string, and the result must have the type that the caller uses later.

use super::script::DemoState;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

pub(super) struct Response {
    result: Value,
    /// The type and the message.
    error: Option<(String, String)>,
}

/// The expected result of a call. A number is the index of the VM or disk.
pub(super) enum Expect {
    Info,
    Stemcell,
    Vm(usize),
    Disk(usize),
    Snapshot,
    DiskOf(usize),
    True,
    Hint,
    Null,
}

/// Parses a response; rejects one without the mandatory keys.
pub(super) fn parse(stdout: &[u8]) -> Result<Response> {
    let document: Value = serde_json::from_slice(stdout).context("stdout is not one JSON document")?;
    ensure!(document["log"].is_string(), "`log` is not a string");
    let result = document.get("result").context("`result` is missing")?.clone();
    let error = match document.get("error").context("`error` is missing")? {
        Value::Null => None,
        error => {
            ensure!(error["ok_to_retry"].is_boolean(), "`error.ok_to_retry` is not a boolean");
            let text = |key: &str| {
                error[key].as_str().map(str::to_owned).with_context(|| format!("`error.{key}` is not a string"))
            };
            Some((text("type")?, text("message")?))
        }
    };
    Ok(Response { result, error })
}

impl Expect {
    /// Checks the response, stores what later calls need, and returns a short description.
    pub(super) fn check(&self, response: &Response, state: &mut DemoState) -> Result<String> {
        if let Some((kind, message)) = &response.error {
            bail!("{kind}: {message}");
        }
        let result = &response.result;
        let store_cid = |target: &mut String| -> Result<String> {
            *target = cid(result)?;
            Ok(target.clone())
        };
        match *self {
            Expect::Info => {
                let version = result["api_version"].as_u64().context("`api_version` is not a whole number")?;
                ensure!(version >= 2, "`api_version` is {version}, and current Directors need 2 or higher");
                let formats = result["stemcell_formats"].as_array().context("`stemcell_formats` is not an array")?;
                state.negotiate(version);
                Ok(format!("API version {version}, {} stemcell formats", formats.len()))
            }
            Expect::Stemcell => store_cid(&mut state.stemcell),
            Expect::Disk(index) => store_cid(&mut state.disks[index]),
            Expect::Snapshot => store_cid(&mut state.snapshot),
            Expect::Vm(index) => {
                state.vms[index] = cid(&result[0])?;
                let networks = result[1].as_object();
                let networks = networks.with_context(|| {
                    format!("the second element must be the VM's networks, and the result is {result}")
                })?;
                let addresses = networks.values().filter_map(|network| network["ip"].as_str());
                Ok(format!("{} {}", state.vms[index], addresses.collect::<Vec<_>>().join(" ")))
            }
            Expect::DiskOf(index) => {
                let expected = &state.disks[index];
                ensure!(*result == json!([expected]), "the result must be [\"{expected}\"], and it is {result}");
                Ok(expected.clone())
            }
            Expect::True => {
                ensure!(*result == Value::Bool(true), "the result must be `true`, and it is {result}");
                Ok("true".to_owned())
            }
            Expect::Hint => {
                let empty = result.as_str().map(str::is_empty).or(result.as_object().map(serde_json::Map::is_empty));
                ensure!(
                    empty == Some(false),
                    "a disk hint must be a string or a map that is not empty, and it is {result}"
                );
                Ok(result.as_str().map_or_else(|| result.to_string(), str::to_owned))
            }
            Expect::Null => {
                ensure!(result.is_null(), "the result must be `null`, and it is {result}");
                Ok("done".to_owned())
            }
        }
    }
}

fn cid(value: &Value) -> Result<String> {
    let cid = value.as_str().filter(|cid| !cid.is_empty());
    let cid = cid.with_context(|| format!("a CID must be a string that is not empty, and it is {value}"))?;
    Ok(cid.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn checked(expect: &Expect, document: &Value) -> Result<(DemoState, String)> {
        let mut state = DemoState::new(Path::new("image"), json!({}));
        state.disks[1] = "disk-2".to_owned();
        let description = expect.check(&parse(document.to_string().as_bytes())?, &mut state)?;
        Ok((state, description))
    }

    fn ok(result: Value) -> Value {
        json!({ "result": result, "error": null, "log": "" })
    }

    #[test]
    fn expected_results_are_accepted_and_cids_are_stored() {
        let vm = checked(&Expect::Vm(1), &ok(json!(["vm-1", { "default": { "ip": "10.0.0.5" } }]))).unwrap();
        assert_eq!((vm.0.vms[1].as_str(), vm.1.as_str()), ("vm-1", "vm-1 10.0.0.5"));
        assert_eq!(checked(&Expect::Disk(0), &ok(json!("disk-1"))).unwrap().0.disks[0], "disk-1");
        assert_eq!(checked(&Expect::Stemcell, &ok(json!("sc-1"))).unwrap().0.stemcell, "sc-1");
        assert_eq!(checked(&Expect::Snapshot, &ok(json!("snap-1"))).unwrap().0.snapshot, "snap-1");
        let info = ok(json!({ "api_version": 2, "stemcell_formats": [] }));
        assert_eq!(checked(&Expect::Info, &info).unwrap().0.api_version, Some(2));
        for (expect, result, description) in [
            (Expect::True, json!(true), "true"),
            (Expect::Null, json!(null), "done"),
            (Expect::DiskOf(1), json!(["disk-2"]), "disk-2"),
            (Expect::Hint, json!("/dev/sdb"), "/dev/sdb"),
            (Expect::Hint, json!({ "path": "/dev/sdb" }), r#"{"path":"/dev/sdb"}"#),
        ] {
            assert_eq!(checked(&expect, &ok(result.clone())).unwrap().1, description, "{result}");
        }
    }

    #[test]
    fn results_that_a_client_cannot_use_are_rejected() {
        for (expect, result) in [
            (Expect::Vm(0), json!("vm-1")),
            (Expect::Vm(0), json!([])),
            (Expect::Disk(0), json!("")),
            (Expect::DiskOf(1), json!([])),
            (Expect::DiskOf(1), json!(["disk-1"])),
            (Expect::True, json!("true")),
            (Expect::Null, json!("")),
            (Expect::Hint, json!({})),
            (Expect::Hint, json!(null)),
            (Expect::Info, json!({ "api_version": "2", "stemcell_formats": [] })),
            (Expect::Info, json!({ "api_version": 1, "stemcell_formats": [] })),
            (Expect::Info, json!({ "api_version": 2 })),
        ] {
            assert!(checked(&expect, &ok(result.clone())).is_err(), "{result}");
        }
    }

    #[test]
    fn documents_without_the_mandatory_keys_are_rejected() {
        for document in [
            json!({}),
            json!({ "result": null, "error": null, "log": null }),
            json!({ "result": null, "log": "" }),
            json!({ "error": null, "log": "" }),
            json!({ "result": null, "log": "", "error": { "type": "x", "message": "y" } }),
        ] {
            assert!(checked(&Expect::Null, &document).is_err(), "{document}");
        }
        assert!(parse(b"a log line\n{}").is_err());
    }

    #[test]
    fn an_error_is_shown_with_its_type() {
        let error = json!({ "type": "Bosh::Clouds::CloudError", "message": "why", "ok_to_retry": false });
        let problem = checked(&Expect::Null, &json!({ "result": null, "log": "", "error": error })).err().unwrap();
        assert_eq!(problem.to_string(), "Bosh::Clouds::CloudError: why");
    }
}
