//! Writes results and errors in the protocol of each API.
//!
//! A result is written by the model: an element that the model does not have is an error
//! of the simulator, which its tests find, because the client gets status 500.

use super::error::Error;
use super::model::{self, Direction, Operation, Shape, Structure};
use super::service::Api;
use crate::gateway::Response;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Returns the response for a successful operation of EC2 or of a query API.
pub(super) fn xml(api: Api, operation: Operation, result: &Value, id: &str) -> Response {
    let name = operation.name;
    let mut inner = String::new();
    let written = match operation.shape(Direction::Output) {
        Some(shape) => structure(&mut inner, operation, shape, result, name),
        None if api == Api::Ec2 => {
            inner += "<return>true</return>";
            Ok(())
        }
        None => Ok(()),
    };
    if let Err(why) = written {
        return error(api, &Error::with_status(500, "InternalError", why), id);
    }
    let body = match (api, operation.wrapper()) {
        (Api::Ec2, _) => format!("<requestId>{id}</requestId>{inner}"),
        (_, Some(wrapper)) => {
            format!("<{wrapper}>{inner}</{wrapper}><ResponseMetadata><RequestId>{id}</RequestId></ResponseMetadata>")
        }
        (_, None) => format!("<ResponseMetadata><RequestId>{id}</RequestId></ResponseMetadata>"),
    };
    let slash = if api == Api::Ec2 { "/" } else { "" };
    let namespace = format!("{}{slash}", model::namespace(api));
    document(200, id, &format!("<{name}Response xmlns=\"{namespace}\">{body}</{name}Response>"))
}

/// Returns an error response in the protocol of the API.
pub(super) fn error(api: Api, error: &Error, id: &str) -> Response {
    let (code, message) = (escape(&error.code), escape(&error.message));
    match api {
        Api::Ec2 => document(
            error.status,
            id,
            &format!(
                "<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>\
                 <RequestID>{id}</RequestID></Response>"
            ),
        ),
        Api::Ebs => {
            let mut body = json!({"Message": error.message});
            if error.code == "RequestThrottledException" {
                body["Reason"] = json!("ACCOUNT_THROTTLED");
            }
            Response::json(error.status, &body).with("x-amzn-ErrorType", &error.code).with("x-amzn-RequestId", id)
        }
        _ => {
            let kind = if error.status < 500 { "Sender" } else { "Receiver" };
            let namespace = model::namespace(api);
            document(
                error.status,
                id,
                &format!(
                    "<ErrorResponse xmlns=\"{namespace}\"><Error><Type>{kind}</Type><Code>{code}</Code>\
                     <Message>{message}</Message></Error><RequestId>{id}</RequestId></ErrorResponse>"
                ),
            )
        }
    }
}

fn document(status: u16, id: &str, text: &str) -> Response {
    let body = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{text}").into_bytes();
    Response { body, ..Response::new(status) }
        .with("Content-Type", "text/xml;charset=UTF-8")
        .with("x-amzn-RequestId", id)
}

fn structure(
    out: &mut String,
    operation: Operation,
    shape: Structure<'_>,
    value: &Value,
    place: &str,
) -> Result<(), String> {
    let object = value.as_object().ok_or_else(|| format!("{place} is not a structure: {value}"))?;
    for (name, value) in object.iter().filter(|(_, value)| !value.is_null()) {
        let place = format!("{place}.{name}");
        let member = shape.member(name).ok_or_else(|| format!("the model has no {place}"))?;
        element(out, operation, name, member, value, &place)?;
    }
    Ok(())
}

fn element(
    out: &mut String,
    operation: Operation,
    name: &str,
    shape: &str,
    value: &Value,
    place: &str,
) -> Result<(), String> {
    let _ = write!(out, "<{name}>");
    let wrong = || format!("{place} has another type in the model: {value}");
    match operation.resolve(Direction::Output, shape) {
        Shape::Structure(shape) => structure(out, operation, shape, value, place)?,
        Shape::List { member, item } => {
            for value in value.as_array().ok_or_else(wrong)? {
                element(out, operation, item, member, value, place)?;
            }
        }
        Shape::Integer => out.push_str(&value.as_i64().ok_or_else(wrong)?.to_string()),
        Shape::Number => out.push_str(&value.as_f64().ok_or_else(wrong)?.to_string()),
        Shape::Boolean => out.push_str(&value.as_bool().ok_or_else(wrong)?.to_string()),
        Shape::String | Shape::Timestamp | Shape::Blob => out.push_str(&escape(value.as_str().ok_or_else(wrong)?)),
        Shape::Enum(values) => {
            if !values.contains(value) {
                return Err(wrong());
            }
            out.push_str(&escape(value.as_str().unwrap_or_default()));
        }
    }
    let _ = write!(out, "</{name}>");
    Ok(())
}

/// Escapes a text for XML. Carriage returns would be lost without it.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(api: Api, operation: &str, result: &Value) -> (u16, String) {
        let operation = model::operation(api, operation).unwrap_or_else(|| panic!("{operation}"));
        let response = xml(api, operation, result, "r-1");
        let text = String::from_utf8_lossy(&response.body).into_owned();
        (response.status, text.split_once('\n').map(|(_, text)| text.to_owned()).unwrap_or_default())
    }

    #[test]
    fn results_are_written_in_the_shape_of_the_protocol() {
        let attributes = "xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"";
        let value = json!({"volumeSet": [{"volumeId": "vol-1", "size": 3, "encrypted": false, "snapshotId": "<&>"}]});
        let expected = format!(
            "<DescribeVolumesResponse {attributes}><requestId>r-1</requestId><volumeSet><item><volumeId>vol-1</volumeId>\
             <size>3</size><encrypted>false</encrypted><snapshotId>&lt;&amp;&gt;</snapshotId></item></volumeSet>\
             </DescribeVolumesResponse>"
        );
        assert_eq!(body(Api::Ec2, "DescribeVolumes", &value), (200, expected));
        let (_, text) = body(Api::Ec2, "CreateTags", &Value::Null);
        assert!(text.contains("<requestId>r-1</requestId><return>true</return></CreateTagsResponse>"), "{text}");
        let (_, text) = body(Api::Sts, "GetCallerIdentity", &json!({"Account": "1"}));
        assert!(text.contains("<GetCallerIdentityResult><Account>1</Account></GetCallerIdentityResult>"), "{text}");
        assert!(text.contains("<ResponseMetadata><RequestId>r-1</RequestId></ResponseMetadata>"), "{text}");
    }

    #[test]
    fn a_result_that_the_model_does_not_have_is_an_error_of_the_simulator() {
        for value in [
            json!({"volumes": []}),
            json!({"volumeSet": {}}),
            json!({"volumeSet": [{"volumeId": 1}]}),
            json!({"volumeSet": [{"status": "attached"}]}),
        ] {
            assert_eq!(body(Api::Ec2, "DescribeVolumes", &value).0, 500, "{value}");
        }
    }
}
