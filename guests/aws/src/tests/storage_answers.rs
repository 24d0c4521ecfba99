//! Answers about volumes, snapshots and images.

use serde_json::{Value, json};
use wasm_cpi_sdk::bindings::bosh::cpi::http::ErrorKind as Transport;
use wasm_cpi_sdk::fake::{Answer, Fake, Installed};

use super::answers::{answer, failure};
use super::properties;

/// Starts a call with answers by operation, some of which may be lost.
pub(super) fn serve(answers: &[(&str, Answer)]) -> Installed {
    serve_with(json!({}), answers)
}

/// Starts a call with more properties.
pub(super) fn serve_with(more: Value, answers: &[(&str, Answer)]) -> Installed {
    let mut all = properties();
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    let fake = Fake::new().properties(all);
    answers.iter().cloned().fold(fake, |fake, (operation, answer)| fake.on_operation(operation, answer)).install()
}

pub(super) fn body(text: &str) -> Answer {
    answer(text)
}

pub(super) fn done() -> Answer {
    answer(&super::answers::done())
}

/// Returns an error of EC2 with status 400.
pub(super) fn refused(code: &str) -> Answer {
    answer(&failure(code))
}

/// Returns a failure of AWS, after which it is not known whether it carried out the request.
pub(super) fn broken() -> Answer {
    answer(&super::answers::failure_with(500, "InternalError", "An internal error."))
}

/// Returns the loss of an answer.
pub(super) fn lost() -> Answer {
    Answer::fail(Transport::Timeout, "the server did not answer in time", true)
}

/// Returns the answer of `CreateVolume`, and of operations that return one ID.
pub(super) fn with_id(name: &str, id: &str) -> Answer {
    answer(&format!("<R><{name}>{id}</{name}></R>"))
}

/// Returns the answer of `DescribeVolumes` with `vol-1`.
pub(super) fn volume(status: &str, more: &str) -> Answer {
    answer(&format!(
        "<R><volumeSet><item><volumeId>vol-1</volumeId><size>10</size><status>{status}</status>\
         <volumeType>gp3</volumeType><iops>3000</iops><throughput>125</throughput><encrypted>false</encrypted>\
         <availabilityZone>us-east-1a</availabilityZone>{more}</item></volumeSet></R>"
    ))
}

/// Returns the same for a volume that is attached to an instance.
pub(super) fn attached_volume(instance: &str, status: &str) -> Answer {
    volume(
        "in-use",
        &format!(
            "<attachmentSet><item><volumeId>vol-1</volumeId><instanceId>{instance}</instanceId><device>/dev/sdf</device>\
             <status>{status}</status></item></attachmentSet>"
        ),
    )
}

/// Returns the device mappings of an instance: device and volume of each.
pub(super) fn mappings(devices: &[(&str, &str)]) -> String {
    let item = |(device, volume): &(&str, &str)| {
        format!(
            "<item><deviceName>{device}</deviceName><ebs><volumeId>{volume}</volumeId><status>attached</status></ebs></item>"
        )
    };
    format!("<blockDeviceMapping>{}</blockDeviceMapping>", devices.iter().map(item).collect::<String>())
}

/// Returns the answer of `DescribeSnapshots` with these snapshots.
pub(super) fn snapshots(ids: &[&str], status: &str) -> Answer {
    let item = |id: &&str| format!("<item><snapshotId>{id}</snapshotId><status>{status}</status></item>");
    answer(&format!("<R><snapshotSet>{}</snapshotSet></R>", ids.iter().map(item).collect::<String>()))
}

/// Returns the answer of `DescribeVolumesModifications`: the state and the target size.
pub(super) fn modification(state: &str, size: u64) -> Answer {
    answer(&format!(
        "<R><volumeModificationSet><item><volumeId>vol-1</volumeId><modificationState>{state}</modificationState>\
         <statusMessage>why</statusMessage><targetSize>{size}</targetSize><targetVolumeType>gp3</targetVolumeType>\
         <targetIops>3000</targetIops><targetThroughput>125</targetThroughput></item></volumeModificationSet></R>"
    ))
}

/// Returns the answer of `DescribeImages` with one image of these snapshots.
pub(super) fn image(id: &str, state: &str, snapshots: &[&str]) -> Answer {
    let item =
        |id: &&str| format!("<item><deviceName>/dev/xvda</deviceName><ebs><snapshotId>{id}</snapshotId></ebs></item>");
    answer(&format!(
        "<R><imagesSet><item><imageId>{id}</imageId><imageState>{state}</imageState><blockDeviceMapping>{}\
         <item><deviceName>/dev/sdb</deviceName><virtualName>ephemeral0</virtualName></item></blockDeviceMapping></item>\
         </imagesSet></R>",
        snapshots.iter().map(item).collect::<String>()
    ))
}

pub(super) fn no_images() -> Answer {
    answer("<R><imagesSet/></R>")
}
