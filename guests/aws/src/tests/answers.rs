//! Answers of AWS: XML as EC2 writes it.

use wasm_cpi_sdk::fake::Answer;

/// Returns an answer: an error if the body is one of [`failure`], otherwise a success.
pub(super) fn answer(body: &str) -> Answer {
    match body.split_once("<Response>") {
        Some((status, _)) => {
            let status = status.parse().unwrap();
            Answer::xml(status, &body[3..])
        }
        None => Answer::xml(200, body),
    }
}

/// Returns an error of EC2 with status 400.
pub(super) fn failure(code: &str) -> String {
    failure_with(400, code, "The request failed.")
}

pub(super) fn failure_with(status: u16, code: &str, message: &str) -> String {
    format!(
        "{status}<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error></Errors>\
         <RequestID>req-1</RequestID></Response>"
    )
}

/// Returns an operation's success without a result.
pub(super) fn done() -> String {
    "<DoneResponse><return>true</return></DoneResponse>".to_owned()
}

/// Returns the answer of `DescribeInstances` with one instance.
pub(super) fn instance(id: &str, state: &str, more: &str) -> String {
    format!(
        "<DescribeInstancesResponse><reservationSet><item><instancesSet><item><instanceId>{id}</instanceId>\
         <instanceState><code>0</code><name>{state}</name></instanceState><instanceType>m5.large</instanceType>\
         <placement><availabilityZone>us-east-1a</availabilityZone></placement><rootDeviceName>/dev/xvda</rootDeviceName>\
         {more}</item></instancesSet></item></reservationSet></DescribeInstancesResponse>"
    )
}
