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

pub(super) enum Expect {
    Info,
    Stemcell,
    Vm,
    Disk,
    True,
    Hint,
    Map,
    Null,
    Error(&'static str),
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
    /// Checks the response and keeps what later calls need of it.
    pub(super) fn check(&self, response: &Response, known: &mut Known) -> Result<()> {
        let result = match (self, &response.error) {
            (Expect::Error(kind), Some((found, _))) if found == kind => return Ok(()),
            (Expect::Error(kind), _) => bail!("an error {kind} was expected"),
            (_, Some((kind, message))) => bail!("{kind}: {message}"),
            (_, None) => &response.result,
        };
        match self {
            Expect::Info => {
                let version = result["api_version"].as_u64().context("`api_version` is not a whole number")?;
                ensure!(version >= 2, "api_version {version} is refused by today's Directors");
                ensure!(result["stemcell_formats"].is_array(), "`stemcell_formats` is not an array");
                known.negotiate(version);
            }
            Expect::Stemcell => known.stemcell = cid(result)?,
            Expect::Disk => known.disk = cid(result)?,
            Expect::Vm => {
                known.vm = cid(&result[0])?;
                ensure!(result[1].is_object(), "the second element is not the VM's networks");
            }
            Expect::True => ensure!(*result == Value::Bool(true), "`true` was expected"),
            Expect::Hint => {
                let given = result.as_str().map(str::is_empty).or(result.as_object().map(serde_json::Map::is_empty));
                ensure!(given == Some(false), "a disk hint is a string or a map, and not empty");
            }
            Expect::Map => ensure!(result.is_object(), "a map was expected"),
            Expect::Null => ensure!(result.is_null(), "`null` was expected"),
            Expect::Error(_) => {}
        }
        Ok(())
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

    fn checked(expect: &Expect, document: &Value) -> Result<Known> {
        let mut known = Known::new(Path::new("image"));
        expect.check(&parse(document.to_string().as_bytes())?, &mut known)?;
        Ok(known)
    }

    fn ok(result: Value) -> Value {
        json!({ "result": result, "error": null, "log": "" })
    }

    #[test]
    fn good_answers_pass_and_cids_are_kept() {
        assert_eq!(checked(&Expect::Vm, &ok(json!(["vm-1", {}]))).unwrap().vm, "vm-1");
        assert_eq!(checked(&Expect::Disk, &ok(json!("disk-1"))).unwrap().disk, "disk-1");
        assert_eq!(checked(&Expect::Stemcell, &ok(json!("sc-1"))).unwrap().stemcell, "sc-1");
        let info = ok(json!({ "api_version": 2, "stemcell_formats": [] }));
        assert_eq!(checked(&Expect::Info, &info).unwrap().api_version, Some(2));
        for (expect, result) in [
            (Expect::True, json!(true)),
            (Expect::Null, json!(null)),
            (Expect::Map, json!({})),
            (Expect::Hint, json!("/dev/sdb")),
            (Expect::Hint, json!({ "path": "/dev/sdb" })),
        ] {
            assert!(checked(&expect, &ok(result.clone())).is_ok(), "{result}");
        }
    }

    #[test]
    fn answers_that_a_client_would_choke_on_are_refused() {
        for (expect, result) in [
            (Expect::Vm, json!("vm-1")),
            (Expect::Vm, json!([])),
            (Expect::Disk, json!("")),
            (Expect::True, json!("true")),
            (Expect::Null, json!("")),
            (Expect::Hint, json!({})),
            (Expect::Hint, json!(null)),
            (Expect::Info, json!({ "api_version": "2", "stemcell_formats": [] })),
            (Expect::Info, json!({ "api_version": 1, "stemcell_formats": [] })),
            (Expect::Info, json!({ "api_version": 2 })),
            (Expect::Error("Bosh::Clouds::CpiError"), json!(null)),
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
    fn an_error_passes_only_with_the_type_expected() {
        let error = |kind: &str| json!({ "result": null, "log": "", "error": { "type": kind, "message": "m", "ok_to_retry": false } });
        let expect = Expect::Error("Bosh::Clouds::NotImplemented");
        assert!(checked(&expect, &error("Bosh::Clouds::NotImplemented")).is_ok());
        assert!(checked(&expect, &error("Bosh::Clouds::CloudError")).is_err());
        assert!(checked(&Expect::Null, &error("Bosh::Clouds::CloudError")).is_err());
    }
}
