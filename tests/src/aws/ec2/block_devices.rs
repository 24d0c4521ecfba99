//! The rules of volumes: sizes, performance and encryption by volume type, and block
//! device mappings.

use crate::aws::error::{Error, combination, invalid, missing};
use crate::aws::kind::Kind;
use crate::aws::parameters::{flag, list, number, only, text};
use crate::aws::state::State;
use serde_json::{Value, json};

/// The limits of a volume type. Pairs are the smallest and the largest value.
struct VolumeType {
    name: &'static str,
    size: (i64, i64),
    /// `None` if the client cannot choose; the last number is the maximum per GiB.
    iops: Option<(i64, i64, i64)>,
    /// The default of the IOPS; without one they are required.
    default_iops: Option<i64>,
    throughput: Option<(i64, i64)>,
}

const fn plain(name: &'static str, size: (i64, i64)) -> VolumeType {
    VolumeType { name, size, iops: None, default_iops: Some(0), throughput: None }
}

const TYPES: [VolumeType; 7] = [
    plain("standard", (1, 1024)),
    plain("gp2", (1, 16_384)),
    plain("st1", (125, 16_384)),
    plain("sc1", (125, 16_384)),
    VolumeType {
        name: "gp3",
        size: (1, 65_536),
        iops: Some((3000, 80_000, 500)),
        default_iops: Some(3000),
        throughput: Some((125, 2000)),
    },
    VolumeType { name: "io1", size: (4, 16_384), iops: Some((100, 64_000, 50)), default_iops: None, throughput: None },
    VolumeType {
        name: "io2",
        size: (4, 65_536),
        iops: Some((100, 256_000, 1000)),
        default_iops: None,
        throughput: None,
    },
];

/// A volume that satisfies all rules.
#[derive(Clone, Debug)]
pub(in crate::aws) struct VolumePlan {
    pub(in crate::aws) kind: String,
    pub(in crate::aws) size: i64,
    pub(in crate::aws) iops: Option<i64>,
    pub(in crate::aws) throughput: Option<i64>,
    pub(in crate::aws) encrypted: bool,
    pub(in crate::aws) kms_key: Option<String>,
    pub(in crate::aws) snapshot: Option<String>,
}

/// A device of an instance or an image.
#[derive(Clone, Debug)]
pub(in crate::aws) struct Device {
    pub(in crate::aws) name: String,
    /// `None` for instance storage.
    pub(in crate::aws) volume: Option<VolumePlan>,
    pub(in crate::aws) delete_on_termination: bool,
}

/// Returns the key of encrypted volumes whose owner chose none.
pub(in crate::aws) fn default_key(state: &State, account: &str) -> String {
    format!("arn:aws:kms:{}:{account}:alias/aws/ebs", state.region)
}

/// Checks size and performance; returns IOPS and throughput with their defaults.
pub(super) fn check_performance(
    kind: &str,
    size: i64,
    iops: Option<i64>,
    throughput: Option<i64>,
) -> Result<(Option<i64>, Option<i64>), Error> {
    let rules = TYPES.iter().find(|rules| rules.name == kind).ok_or_else(|| invalid("volumeType", kind, ""))?;
    if size < rules.size.0 || size > rules.size.1 {
        let why = format!("{kind} volumes have {} to {} GiB.", rules.size.0, rules.size.1);
        return Err(invalid("volumeSize", &size.to_string(), &why));
    }
    let iops = match (rules.iops, iops) {
        (None, None) => None,
        (None, Some(_)) => {
            return Err(combination(format!("The parameter iops is not supported for {kind} volumes.")));
        }
        (Some((least, most, per_gib)), given) => {
            let iops = given.or(rules.default_iops).ok_or_else(|| missing("iops"))?;
            if iops < least || iops > most {
                let why = format!("Volume iops of {iops} is not between {least} and {most}.");
                return Err(invalid("iops", &iops.to_string(), &why));
            }
            if iops > rules.default_iops.unwrap_or_default().max(size * per_gib) {
                let why = format!("Iops to volume size ratio is too high; maximum is {per_gib}.");
                return Err(invalid("iops", &iops.to_string(), &why));
            }
            Some(iops)
        }
    };
    let throughput = match (rules.throughput, throughput) {
        (None, None) => None,
        (None, Some(_)) => {
            return Err(combination(format!("The parameter throughput is not supported for {kind} volumes.")));
        }
        (Some((least, most)), given) => {
            let throughput = given.unwrap_or(least);
            if throughput < least || throughput > most || throughput * 4 > iops.unwrap_or_default() {
                let why = format!("It must be between {least} and {most}, and at most a quarter of iops.");
                return Err(invalid("throughput", &throughput.to_string(), &why));
            }
            Some(throughput)
        }
    };
    Ok((iops, throughput))
}

/// Returns the volume that the parameters of `CreateVolume` or of a mapping describe.
/// `size` is the name of the parameter with the size.
pub(super) fn plan(state: &mut State, account: &str, given: &Value, size: &str) -> Result<VolumePlan, Error> {
    let snapshot = match text(given, "SnapshotId") {
        Some(id) => Some(state.find(Kind::Snapshot, account, id)?),
        None => None,
    };
    if let Some(snapshot) = snapshot.as_ref().filter(|snapshot| snapshot.text("status") != "completed") {
        let message = format!("Snapshot '{}' is not 'completed'.", snapshot.id);
        return Err(Error::new("IncorrectState", message));
    }
    let smallest = snapshot.as_ref().and_then(|snapshot| snapshot.view["volumeSize"].as_i64());
    let volume_size = number(given, size).or(smallest).ok_or_else(|| missing(size))?;
    if smallest.is_some_and(|smallest| volume_size < smallest) {
        let id = snapshot.map(|snapshot| snapshot.id).unwrap_or_default();
        let message = format!("Volume of size {volume_size}GB is smaller than snapshot '{id}'");
        return Err(Error::new("InvalidParameterValue", message));
    }
    let kind = text(given, "VolumeType").unwrap_or("gp2").to_owned();
    let (iops, throughput) = check_performance(&kind, volume_size, number(given, "Iops"), number(given, "Throughput"))?;
    let inherited = snapshot.as_ref().is_some_and(|snapshot| snapshot.view["encrypted"] == true);
    if inherited && given["Encrypted"] == false {
        return Err(combination("Encrypted flag cannot be set to false since the snapshot is encrypted."));
    }
    let encrypted = inherited || flag(given, "Encrypted");
    let kms_key = text(given, "KmsKeyId").map(str::to_owned);
    if kms_key.is_some() && !encrypted {
        let message = "The parameter KmsKeyId requires the parameter Encrypted to be set.";
        return Err(Error::new("InvalidParameterDependency", message));
    }
    let kms_key = kms_key.or_else(|| encrypted.then(|| default_key(state, account)));
    let snapshot = snapshot.map(|snapshot| snapshot.id);
    Ok(VolumePlan { kind, size: volume_size, iops, throughput, encrypted, kms_key, snapshot })
}

/// Returns the devices of an image's or an instance's block device mappings. Those of
/// `inherited`, the view of an image, are there unless a mapping replaces them.
pub(super) fn devices(
    state: &mut State,
    account: &str,
    mappings: &[Value],
    inherited: &[Value],
) -> Result<Vec<Device>, Error> {
    let mut merged: Vec<Value> = inherited.iter().map(as_parameters).collect();
    let mut named = Vec::new();
    for mapping in mappings {
        only(mapping, &["DeviceName", "VirtualName", "NoDevice", "Ebs"])?;
        let name = text(mapping, "DeviceName").ok_or_else(|| missing("deviceName"))?;
        if named.contains(&name) {
            return Err(device_error(&format!("The device '{name}' is used in more than one block-device mapping")));
        }
        named.push(name);
        let position = merged.iter().position(|known| known["DeviceName"] == name);
        match (position, mapping.get("NoDevice").is_some()) {
            (Some(position), true) => drop(merged.remove(position)),
            (None, true) => {}
            (Some(position), false) => overlay(&mut merged[position], mapping),
            (None, false) => merged.push(mapping.clone()),
        }
    }
    merged.iter().map(|mapping| device(state, account, mapping)).collect()
}

fn device(state: &mut State, account: &str, mapping: &Value) -> Result<Device, Error> {
    let name = text(mapping, "DeviceName").unwrap_or_default().to_owned();
    if !name.strip_prefix("/dev/").is_some_and(|rest| rest.starts_with("sd") || rest.starts_with("xvd")) {
        return Err(device_error(&format!("Invalid device name {name}")));
    }
    match (mapping.get("Ebs"), text(mapping, "VirtualName")) {
        (Some(ebs), None) => {
            only(
                ebs,
                &[
                    "DeleteOnTermination",
                    "Iops",
                    "SnapshotId",
                    "VolumeSize",
                    "VolumeType",
                    "KmsKeyId",
                    "Throughput",
                    "Encrypted",
                ],
            )?;
            let volume = plan(state, account, ebs, "VolumeSize")?;
            let kept = ebs["DeleteOnTermination"] == false;
            Ok(Device { name, volume: Some(volume), delete_on_termination: !kept })
        }
        (None, Some(store)) if store.starts_with("ephemeral") => {
            Ok(Device { name, volume: None, delete_on_termination: true })
        }
        _ => Err(device_error(&format!("The device {name} needs either Ebs or an ephemeral VirtualName"))),
    }
}

fn device_error(message: &str) -> Error {
    Error::new("InvalidBlockDeviceMapping", message)
}

/// Returns a mapping of an image's view as parameters.
fn as_parameters(view: &Value) -> Value {
    let ebs = &view["ebs"];
    let mut given = json!({});
    for (name, key) in [
        ("SnapshotId", "snapshotId"),
        ("VolumeSize", "volumeSize"),
        ("VolumeType", "volumeType"),
        ("Iops", "iops"),
        ("Throughput", "throughput"),
        ("DeleteOnTermination", "deleteOnTermination"),
    ] {
        if let Some(value) = ebs.get(key) {
            given[name] = value.clone();
        }
    }
    json!({"DeviceName": view["deviceName"], "Ebs": given})
}

/// Replaces what the mapping of a request says. IOPS and throughput belong to the type.
fn overlay(known: &mut Value, mapping: &Value) {
    let Some(ebs) = mapping.get("Ebs").and_then(Value::as_object) else {
        known.clone_from(mapping);
        return;
    };
    if ebs.contains_key("VolumeType") {
        known["Ebs"].as_object_mut().map(|known| (known.remove("Iops"), known.remove("Throughput")));
    }
    for (name, value) in ebs {
        known["Ebs"][name] = value.clone();
    }
}

/// Returns the devices as an image shows them.
pub(super) fn image_views(devices: &[Device]) -> Vec<Value> {
    let views = devices.iter().map(|device| match &device.volume {
        None => json!({"deviceName": device.name, "virtualName": "ephemeral0"}),
        Some(volume) => json!({"deviceName": device.name, "ebs": {
            "snapshotId": volume.snapshot, "volumeSize": volume.size, "volumeType": volume.kind, "iops": volume.iops,
            "throughput": volume.throughput, "encrypted": volume.encrypted,
            "deleteOnTermination": device.delete_on_termination,
        }}),
    });
    views.collect()
}

/// Returns the block device mappings of a request.
pub(super) fn mappings(parameters: &Value) -> &[Value] {
    list(parameters, "BlockDeviceMapping")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_keep_the_rules_of_their_type() {
        for (kind, size, iops, throughput, result) in [
            ("gp3", 10, None, None, Ok((Some(3000), Some(125)))),
            ("gp3", 10, Some(5000), Some(500), Ok((Some(5000), Some(500)))),
            ("gp3", 10, Some(5001), None, Err("InvalidParameterValue")),
            ("gp3", 10, None, Some(751), Err("InvalidParameterValue")),
            ("gp2", 10, None, None, Ok((None, None))),
            ("gp2", 10, Some(100), None, Err("InvalidParameterCombination")),
            ("gp2", 10, None, Some(125), Err("InvalidParameterCombination")),
            ("io1", 10, None, None, Err("MissingParameter")),
            ("io1", 10, Some(500), None, Ok((Some(500), None))),
            ("io1", 10, Some(501), None, Err("InvalidParameterValue")),
            ("st1", 10, None, None, Err("InvalidParameterValue")),
            ("gp3", 0, None, None, Err("InvalidParameterValue")),
        ] {
            let found = check_performance(kind, size, iops, throughput).map_err(|error| error.code);
            assert_eq!(found, result.map_err(str::to_owned), "{kind} {size} {iops:?} {throughput:?}");
        }
    }
}
