//! What a response must look like for the Director to be content with it.
//!
//! Stricter than either client alone: all keys present, `log` a string, and the
//! kind of result that the caller goes on to use.

use super::script::Known;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

pub(super) struct Response {
    result: Value,
    /// Type and message.
    error: Option<(String, String)>,
}

/// The number is that of the VM or disk.
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
    /// Checks the response, keeps what later calls need of it, and says it in short.
    pub(super) fn check(&self, response: &Response, known: &mut Known) -> Result<String> {
        if let Some((kind, message)) = &response.error {
            bail!("{kind}: {message}");
        }
        let result = &response.result;
        let kept = |place: &mut String| -> Result<String> {
            *place = cid(result)?;
            Ok(place.clone())
        };
        match *self {
            Expect::Info => {
                let version = result["api_version"].as_u64().context("`api_version` is not a whole number")?;
                ensure!(version >= 2, "api_version {version} is refused by today's Directors");
                let formats = result["stemcell_formats"].as_array().context("`stemcell_formats` is not an array")?;
                known.negotiate(version);
                Ok(format!("API version {version}, {} stemcell formats", formats.len()))
            }
            Expect::Stemcell => kept(&mut known.stemcell),
            Expect::Disk(index) => kept(&mut known.disks[index]),
            Expect::Snapshot => kept(&mut known.snapshot),
            Expect::Vm(index) => {
                known.vms[index] = cid(&result[0])?;
                let networks = result[1].as_object().context("the second element is not the VM's networks")?;
                let addresses = networks.values().filter_map(|network| network["ip"].as_str());
                Ok(format!("{} {}", known.vms[index], addresses.collect::<Vec<_>>().join(" ")))
            }
            Expect::DiskOf(index) => {
                let expected = &known.disks[index];
                ensure!(*result == Value::from(vec![expected.clone()]), "its one disk `{expected}` was expected");
                Ok(expected.clone())
            }
            Expect::True => {
                ensure!(*result == Value::Bool(true), "`true` was expected");
                Ok("true".to_owned())
            }
            Expect::Hint => {
                let given = result.as_str().map(str::is_empty).or(result.as_object().map(serde_json::Map::is_empty));
                ensure!(given == Some(false), "a disk hint is a string or a map, and not empty");
                Ok(result.as_str().map_or_else(|| result.to_string(), str::to_owned))
            }
            Expect::Null => {
                ensure!(result.is_null(), "`null` was expected");
                Ok("done".to_owned())
            }
        }
    }
}

fn cid(value: &Value) -> Result<String> {
    let cid = value.as_str().filter(|cid| !cid.is_empty()).context("a cid was expected: a string that is not empty")?;
    Ok(cid.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;

    fn checked(expect: &Expect, document: &Value) -> Result<(Known, String)> {
        let mut known = Known::new(Path::new("image"), json!({}));
        known.disks[1] = "disk-2".to_owned();
        let told = expect.check(&parse(document.to_string().as_bytes())?, &mut known)?;
        Ok((known, told))
    }

    fn ok(result: Value) -> Value {
        json!({ "result": result, "error": null, "log": "" })
    }

    #[test]
    fn good_answers_pass_and_cids_are_kept() {
        let vm = checked(&Expect::Vm(1), &ok(json!(["vm-1", { "default": { "ip": "10.0.0.5" } }]))).unwrap();
        assert_eq!((vm.0.vms[1].as_str(), vm.1.as_str()), ("vm-1", "vm-1 10.0.0.5"));
        assert_eq!(checked(&Expect::Disk(0), &ok(json!("disk-1"))).unwrap().0.disks[0], "disk-1");
        assert_eq!(checked(&Expect::Stemcell, &ok(json!("sc-1"))).unwrap().0.stemcell, "sc-1");
        assert_eq!(checked(&Expect::Snapshot, &ok(json!("snap-1"))).unwrap().0.snapshot, "snap-1");
        let info = ok(json!({ "api_version": 2, "stemcell_formats": [] }));
        assert_eq!(checked(&Expect::Info, &info).unwrap().0.api_version, Some(2));
        for (expect, result, told) in [
            (Expect::True, json!(true), "true"),
            (Expect::Null, json!(null), "done"),
            (Expect::DiskOf(1), json!(["disk-2"]), "disk-2"),
            (Expect::Hint, json!("/dev/sdb"), "/dev/sdb"),
            (Expect::Hint, json!({ "path": "/dev/sdb" }), r#"{"path":"/dev/sdb"}"#),
        ] {
            assert_eq!(checked(&expect, &ok(result.clone())).unwrap().1, told, "{result}");
        }
    }

    #[test]
    fn answers_that_a_client_would_choke_on_are_refused() {
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
    fn documents_without_the_mandatory_keys_are_refused() {
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
    fn an_error_is_told_with_its_type() {
        let error = json!({ "type": "Bosh::Clouds::CloudError", "message": "why", "ok_to_retry": false });
        let problem = checked(&Expect::Null, &json!({ "result": null, "log": "", "error": error })).err().unwrap();
        assert_eq!(problem.to_string(), "Bosh::Clouds::CloudError: why");
    }
}
