//! `RunInstances`.

use super::block_devices::{self, Device, devices};
use super::instance_types::{self, InstanceType};
use super::launch_interfaces::{self, PlannedInterface};
use super::{Call, attachments, instance_views, tags, volumes};
use crate::aws::error::{Error, combination, invalid, missing};
use crate::aws::idempotency;
use crate::aws::kind::Kind;
use crate::aws::parameters::{flag, number, only, required, text};
use crate::aws::seed;
use crate::aws::state::{Effect, State};
use crate::simulation::Item;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The most bytes of user-data before it is encoded.
const MAX_USER_DATA: usize = 16_384;

pub(super) const PARAMETERS: &[&str] = &[
    "BlockDeviceMapping",
    "ClientToken",
    "DisableApiTermination",
    "EbsOptimized",
    "IamInstanceProfile",
    "ImageId",
    "InstanceMarketOptions",
    "InstanceType",
    "Ipv6Address",
    "KeyName",
    "MaxCount",
    "MetadataOptions",
    "MinCount",
    "NetworkInterface",
    "Placement",
    "PrivateIpAddress",
    "SecurityGroup",
    "SecurityGroupId",
    "SubnetId",
    "TagSpecification",
    "UserData",
];

/// The kinds of resources that a launch creates.
const CREATED: [Kind; 3] = [Kind::Instance, Kind::Volume, Kind::NetworkInterface];

/// An instance that satisfies all rules.
struct Plan {
    image: Item,
    kind: &'static InstanceType,
    zone: String,
    interfaces: Vec<PlannedInterface>,
    devices: Vec<Device>,
    tags: Vec<Value>,
    volume_tags: Vec<Value>,
    interface_tags: Vec<Value>,
}

pub(super) fn run(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let id = idempotency::once(state, call, |state| {
        let plan = plan(state, call)?;
        // A launch creates everything or nothing.
        let before = state.resources.clone();
        let created = create(state, call, &plan);
        if created.is_err() {
            state.resources = before;
        }
        created.map(|id| json!(id))
    })?;
    let id = id.as_str().unwrap_or_default();
    let instance = state.resources.get(id).ok_or_else(|| Kind::Instance.not_found(id))?;
    Ok(instance_views::reservation(state, &[instance]))
}

fn plan(state: &mut State, call: &Call<'_>) -> Result<Plan, Error> {
    let (account, given) = (call.account, call.parameters);
    if (number(given, "MinCount"), number(given, "MaxCount")) != (Some(1), Some(1)) {
        return Err(invalid("maxCount", &given["MaxCount"].to_string(), "The simulator starts one instance."));
    }
    check_user_data(given)?;
    check_options(state, account, given)?;
    let image = state.find(Kind::Image, account, required(given, "ImageId")?)?;
    if image.text("imageState") != "available" {
        return Err(Error::new("InvalidAMIID.Unavailable", format!("The image ID '{}' is not available", image.id)));
    }
    let kind = instance_types::find(text(given, "InstanceType").ok_or_else(|| missing("instanceType"))?)?;
    if image.view["architecture"] != kind.architecture {
        let message = format!(
            "The architecture '{}' of the specified instance type does not match the architecture '{}' of the \
             specified AMI.",
            kind.architecture,
            image.text("architecture")
        );
        return Err(Error::new("InvalidParameterValue", message));
    }
    let interfaces = launch_interfaces::plan(state, account, given, kind)?;
    let zone = interfaces.first().map(|interface| interface.zone.clone()).unwrap_or_default();
    if let Some(wanted) = text(&given["Placement"], "AvailabilityZone") {
        if !seed::zones(&state.region).iter().any(|known| known == wanted) {
            return Err(invalid("availabilityZone", wanted, "The availability zone does not exist."));
        }
        if wanted != zone {
            return Err(invalid("availabilityZone", wanted, &format!("The subnet is in the zone {zone}.")));
        }
    }
    if kind.absent_in == Some(zone.as_str()) {
        let message = format!(
            "Your requested instance type ({}) is not supported in your requested Availability Zone ({zone}).",
            kind.name
        );
        return Err(Error::new("Unsupported", message));
    }
    let inherited = image.view["blockDeviceMapping"].as_array().cloned().unwrap_or_default();
    let devices = devices(state, account, block_devices::mappings(given), &inherited)?;
    let root = image.text("rootDeviceName");
    if !devices.iter().any(|device| device.name == root && device.volume.is_some()) {
        let message = format!("The root device {root} has no volume.");
        return Err(Error::new("InvalidBlockDeviceMapping", message));
    }
    let tags_of = |state: &State, kind| tags::specified(state, given, kind, &CREATED);
    let (tags, volume_tags) = (tags_of(state, Kind::Instance)?, tags_of(state, Kind::Volume)?);
    let interface_tags = tags_of(state, Kind::NetworkInterface)?;
    let limit = state.limit("instances");
    let alive = |item: &Item| item.view["instanceState"]["name"] != "terminated";
    if state.own(Kind::Instance, account).iter().filter(|item| alive(item)).count() >= limit {
        let message = format!("You have requested more instances than your current limit of {limit}.");
        return Err(Error::new("InstanceLimitExceeded", message));
    }
    Ok(Plan { image, kind, zone, interfaces, devices, tags, volume_tags, interface_tags })
}

fn check_user_data(given: &Value) -> Result<(), Error> {
    let Some(data) = text(given, "UserData") else { return Ok(()) };
    let unwrapped: String = data.chars().filter(|letter| *letter != '\n').collect();
    let decoded = STANDARD
        .decode(unwrapped)
        .map_err(|_| Error::new("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data."))?;
    if decoded.len() > MAX_USER_DATA {
        let message = "User data is limited to 16384 bytes";
        return Err(Error::new("InvalidParameterValue", message));
    }
    Ok(())
}

/// Checks what only has to exist or to be one of a few values.
fn check_options(state: &mut State, account: &str, given: &Value) -> Result<(), Error> {
    if let Some(key) = text(given, "KeyName")
        && !state.own(Kind::KeyPair, account).iter().any(|item| item.view["keyName"] == key)
    {
        return Err(Error::new("InvalidKeyPair.NotFound", format!("The key pair '{key}' does not exist")));
    }
    let placement = &given["Placement"];
    only(placement, &["AvailabilityZone", "GroupName", "Tenancy"])?;
    if let Some(group) = text(placement, "GroupName")
        && !state.own(Kind::PlacementGroup, account).iter().any(|item| item.view["groupName"] == group)
    {
        let message = format!("The Placement Group '{group}' is unknown.");
        return Err(Error::new("InvalidPlacementGroup.Unknown", message));
    }
    let profile = &given["IamInstanceProfile"];
    if !profile.is_null() {
        let known = [seed::PROFILE.to_owned(), seed::profile_arn(account)];
        let (name, arn) = (text(profile, "Name"), text(profile, "Arn"));
        if name.is_some() && arn.is_some() {
            return Err(combination("The parameter 'iamInstanceProfile.name' may not be used with 'arn'."));
        }
        let wanted = name.or(arn).unwrap_or_default();
        if !known.iter().any(|known| known == wanted) {
            return Err(invalid("iamInstanceProfile.name", wanted, "Invalid IAM Instance Profile name."));
        }
    }
    let metadata = &given["MetadataOptions"];
    if number(metadata, "HttpPutResponseHopLimit").is_some_and(|hops| !(1..=64).contains(&hops)) {
        let value = metadata["HttpPutResponseHopLimit"].to_string();
        return Err(invalid("HttpPutResponseHopLimit", &value, "It must be between 1 and 64."));
    }
    let market = &given["InstanceMarketOptions"];
    only(market, &["MarketType", "SpotOptions"])?;
    only(&market["SpotOptions"], &["MaxPrice", "SpotInstanceType", "InstanceInterruptionBehavior"])?;
    match text(&market["SpotOptions"], "MaxPrice").map(str::parse::<f64>) {
        Some(Ok(price)) if price < seed::SPOT_PRICE => {
            let message = format!(
                "Your Spot request price of {price} is lower than the minimum required Spot request fulfillment price."
            );
            Err(Error::new("SpotMaxPriceTooLow", message))
        }
        Some(Err(_)) => Err(invalid("MaxPrice", market["SpotOptions"]["MaxPrice"].as_str().unwrap_or_default(), "")),
        _ => Ok(()),
    }
}

fn create(state: &mut State, call: &Call<'_>, plan: &Plan) -> Result<String, Error> {
    let id = state.new_id(Kind::Instance);
    let (view, hidden) = describe_instance(state, call, plan, &id);
    state.add(&id, call.account, view, hidden);
    for interface in &plan.interfaces {
        launch_interfaces::attach(state, call.account, &id, interface, &plan.interface_tags)?;
    }
    for device in &plan.devices {
        let Some(volume) = &device.volume else { continue };
        let tags = plan.volume_tags.clone();
        let volume = volumes::add(state, call.account, &plan.zone, volume, tags)?;
        attachments::put(state, &volume, &id, &device.name, "attached", device.delete_on_termination);
    }
    let instance = id.clone();
    let effect = match state.failing_launches {
        0 => Effect::Started { instance },
        left => {
            state.failing_launches = left - 1;
            Effect::LaunchFailed { instance }
        }
    };
    state.schedule(&[&id], effect);
    Ok(id)
}

fn describe_instance(state: &mut State, call: &Call<'_>, plan: &Plan, id: &str) -> (Value, Value) {
    let given = call.parameters;
    let placement = &given["Placement"];
    let metadata = &given["MetadataOptions"];
    let option = |name: &str, default: &str| text(metadata, name).unwrap_or(default).to_owned();
    let mut view = json!({
        "instanceId": id, "imageId": plan.image.id, "instanceState": {"code": 0, "name": "pending"},
        "instanceType": plan.kind.name, "launchTime": state.time(), "amiLaunchIndex": 0, "dnsName": "", "reason": "",
        "architecture": plan.image.view["architecture"], "hypervisor": "xen", "rootDeviceType": "ebs",
        "rootDeviceName": plan.image.view["rootDeviceName"], "virtualizationType": "hvm",
        "ebsOptimized": flag(given, "EbsOptimized"), "monitoring": {"state": "disabled"},
        "clientToken": text(given, "ClientToken").unwrap_or_default(), "tagSet": plan.tags,
        "placement": {
            "availabilityZone": plan.zone, "groupName": text(placement, "GroupName").unwrap_or_default(),
            "tenancy": text(placement, "Tenancy").unwrap_or("default"),
        },
        "metadataOptions": {
            "state": "applied", "httpTokens": option("HttpTokens", "optional"),
            "httpPutResponseHopLimit": number(metadata, "HttpPutResponseHopLimit").unwrap_or(1),
            "httpEndpoint": option("HttpEndpoint", "enabled"),
            "httpProtocolIpv6": option("HttpProtocolIpv6", "disabled"),
            "instanceMetadataTags": option("InstanceMetadataTags", "disabled"),
        },
    });
    if let Some(key) = given.get("KeyName") {
        view["keyName"] = key.clone();
    }
    if given.get("IamInstanceProfile").is_some() {
        let arn = seed::profile_arn(call.account);
        view["iamInstanceProfile"] = json!({"arn": arn, "id": format!("AIPA{}", &state.ids.hex()[..16])});
    }
    if given["InstanceMarketOptions"]["MarketType"] == "spot" {
        view["instanceLifecycle"] = json!("spot");
        view["spotInstanceRequestId"] = json!(format!("sir-{}", &state.ids.hex()[..8]));
    }
    let hidden = json!({
        "reservation": format!("r-0{}", &state.ids.hex()[..16]), "user_data": given.get("UserData"),
        "protected": flag(given, "DisableApiTermination"),
    });
    (view, hidden)
}
