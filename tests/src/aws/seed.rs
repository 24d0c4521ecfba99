//! What an operator creates before the first deployment: accounts, networks, images, load
//! balancers.

use super::kind::Kind;
use super::state::{AccessKey, State};
use crate::simulation::Item;
use serde_json::{Value, json};

pub(super) const REGION: &str = "us-east-1";
pub(super) const ACCOUNT: &str = "111122223333";
const OTHER_ACCOUNT: &str = "444455556666";
/// The owner of public images.
const PUBLISHER: &str = "999988887777";

/// The role of the machine that the CPI runs on; every account can assume its own.
pub(super) const ROLE: &str = "bosh-cpi";
/// A role that needs an external id.
pub(super) const EXTERNAL_ROLE: &str = "bosh-cpi-external";
pub(super) const EXTERNAL_ID: &str = "external-id-of-bosh";
/// The instance profile that VMs can have.
pub(super) const PROFILE: &str = "bosh-vm";
/// The id of the machine that the CPI runs on.
pub(super) const OWN_INSTANCE: &str = "i-0d1ec7000000000a1";
/// The price per hour below which spot instances are not available.
pub(super) const SPOT_PRICE: f64 = 0.01;

pub(super) fn zones(region: &str) -> Vec<String> {
    ["a", "b", "c"].iter().map(|letter| format!("{region}{letter}")).collect()
}

pub(super) fn role_arn(account: &str, name: &str) -> String {
    format!("arn:aws:iam::{account}:role/{name}")
}

pub(super) fn profile_arn(account: &str) -> String {
    format!("arn:aws:iam::{account}:instance-profile/{PROFILE}")
}

pub(super) fn instance_role_arn() -> String {
    format!("arn:aws:sts::{ACCOUNT}:assumed-role/{ROLE}/{OWN_INSTANCE}")
}

/// Fills the cloud and returns its description.
pub(super) fn fill(state: &mut State) -> Value {
    let image = add_image(state);
    let mut cloud = add_account(state, ACCOUNT, "10.0");
    cloud["other_account"] = add_account(state, OTHER_ACCOUNT, "10.8");
    for (key, value) in [
        ("region", json!(REGION)),
        ("availability_zones", json!(zones(REGION))),
        ("image", json!(image)),
        ("instance_type", json!("m5.large")),
        ("instance_role", json!(ROLE)),
        ("external_role_arn", json!(role_arn(ACCOUNT, EXTERNAL_ROLE))),
        ("external_id", json!(EXTERNAL_ID)),
        (
            "endpoints",
            json!({
                "ec2": "http://ec2.sim", "elb": "http://elb.sim", "sts": "http://sts.sim", "ebs": "http://ebs.sim",
                "metadata": "http://metadata.sim",
            }),
        ),
    ] {
        cloud[key] = value;
    }
    cloud
}

/// Adds an account with its resources and returns its part of the description.
fn add_account(state: &mut State, account: &str, network: &str) -> Value {
    let key = AccessKey {
        id: format!("AKIA{}", state.ids.hex()[..16].to_uppercase()),
        secret: format!("{}{}", state.ids.hex(), &state.ids.hex()[..8]),
        token: None,
        expires: None,
        account: account.to_owned(),
        arn: format!("arn:aws:iam::{account}:user/bosh"),
        user: format!("AIDA{}", state.ids.hex()[..16].to_uppercase()),
    };
    state.keys.push(key.clone());
    let vpc = state.new_id(Kind::Vpc);
    state.resources.add(Item::new(&vpc, account, json!({"vpcId": vpc, "cidrBlock": format!("{network}.0.0/16")})));
    let mut subnets = json!({});
    for (number, zone) in zones(REGION).iter().enumerate() {
        subnets[zone] = json!(add_subnet(state, account, &vpc, zone, [network, &number.to_string()]));
    }
    let groups = ["default", "bosh"].map(|name| add_group(state, account, &vpc, name));
    let table = add_route_table(state, account, &vpc, network);
    let [address, allocation] = add_address(state, account, network);
    add_named(state, account, Kind::KeyPair, json!({"keyName": "bosh"}));
    add_named(state, account, Kind::PlacementGroup, json!({"groupName": "bosh"}));
    let balancer = json!({
        "LoadBalancerName": "bosh-elb", "DNSName": "bosh-elb.elb.sim", "VPCId": vpc, "Instances": [],
        "AvailabilityZones": zones(REGION), "Scheme": "internal",
    });
    add_named(state, account, Kind::LoadBalancer, balancer);
    let group =
        format!("arn:aws:elasticloadbalancing:{REGION}:{account}:targetgroup/bosh-tg/{}", &state.ids.hex()[..16]);
    let target_group = json!({
        "TargetGroupArn": group, "TargetGroupName": "bosh-tg", "Protocol": "TCP", "Port": 443, "VpcId": vpc,
        "TargetType": "instance", "LoadBalancerArns": [],
    });
    add_named(state, account, Kind::TargetGroup, target_group);
    json!({
        "account": account, "access_key_id": key.id, "secret_access_key": key.secret, "vpc": vpc,
        "availability_zone": format!("{REGION}a"), "subnet": subnets[format!("{REGION}a")], "subnets": subnets,
        "network": format!("{network}.0.0/24"), "default_security_group": groups[0], "security_group": groups[1],
        "security_group_name": "bosh", "route_table": table, "elastic_ip": address, "allocation": allocation,
        "key_name": "bosh", "placement_group": "bosh", "load_balancer": "bosh-elb", "target_group": "bosh-tg",
        "target_group_arn": group, "instance_profile": PROFILE, "role_arn": role_arn(account, ROLE),
        "kms_key_arn": format!("arn:aws:kms:{REGION}:{account}:key/1234abcd-12ab-34cd-56ef-1234567890ab"),
    })
}

fn add_subnet(state: &mut State, account: &str, vpc: &str, zone: &str, [network, number]: [&str; 2]) -> String {
    let id = state.new_id(Kind::Subnet);
    let second = network.rsplit('.').next().unwrap_or_default();
    let view = json!({
        "subnetId": id, "vpcId": vpc, "state": "available", "cidrBlock": format!("{network}.{number}.0/24"),
        "availabilityZone": zone, "ownerId": account, "availableIpAddressCount": 251, "defaultForAz": false,
        "mapPublicIpOnLaunch": false, "assignIpv6AddressOnCreation": false, "tagSet": [],
        "ipv6CidrBlockAssociationSet": [{
            "associationId": format!("subnet-cidr-assoc-0{}", &state.ids.hex()[..16]),
            "ipv6CidrBlock": format!("2001:db8:{second}:{number}::/64"), "ipv6CidrBlockState": {"state": "associated"},
        }],
    });
    state.resources.add(Item::new(&id, account, view));
    id
}

fn add_group(state: &mut State, account: &str, vpc: &str, name: &str) -> String {
    let id = state.new_id(Kind::SecurityGroup);
    let view = json!({
        "groupId": id, "groupName": name, "groupDescription": format!("the group {name}"), "vpcId": vpc,
        "ownerId": account, "ipPermissions": [], "ipPermissionsEgress": [], "tagSet": [],
    });
    state.resources.add(Item::new(&id, account, view));
    id
}

fn add_route_table(state: &mut State, account: &str, vpc: &str, network: &str) -> String {
    let id = state.new_id(Kind::RouteTable);
    let local = json!({
        "destinationCidrBlock": format!("{network}.0.0/16"), "gatewayId": "local", "state": "active",
        "origin": "CreateRouteTable",
    });
    let association = json!({
        "routeTableAssociationId": format!("rtbassoc-0{}", &state.ids.hex()[..16]), "routeTableId": id, "main": true,
    });
    let view = json!({
        "routeTableId": id, "vpcId": vpc, "ownerId": account, "routeSet": [local], "associationSet": [association],
        "tagSet": [],
    });
    state.resources.add(Item::new(&id, account, view));
    id
}

/// Returns the address and its allocation.
fn add_address(state: &mut State, account: &str, network: &str) -> [String; 2] {
    let id = state.new_id(Kind::Address);
    let last = network.rsplit('.').next().unwrap_or_default();
    let address = format!("198.51.100.1{last}");
    let view = json!({"allocationId": id, "publicIp": address, "domain": "vpc", "tagSet": []});
    state.resources.add(Item::new(&id, account, view));
    [address, id]
}

/// Adds a resource without an id of its own in the API.
fn add_named(state: &mut State, account: &str, kind: Kind, view: Value) {
    let id = state.new_id(kind);
    state.resources.add(Item { hidden: json!({"targets": []}), ..Item::new(&id, account, view) });
}

/// Adds the public image of a light stemcell and returns its id.
fn add_image(state: &mut State) -> String {
    let snapshot = state.new_id(Kind::Snapshot);
    let view = json!({
        "snapshotId": snapshot, "volumeId": "vol-ffffffff", "status": "completed", "progress": "100%",
        "startTime": state.time(), "ownerId": PUBLISHER, "volumeSize": 5, "encrypted": false, "description": "stemcell",
        "tagSet": [],
    });
    state.resources.add(Item { hidden: json!({"public": true}), ..Item::new(&snapshot, PUBLISHER, view) });
    let image = state.new_id(Kind::Image);
    let view = json!({
        "imageId": image, "imageOwnerId": PUBLISHER, "name": "bosh-stemcell-light", "description": "stemcell",
        "imageLocation": format!("{PUBLISHER}/bosh-stemcell-light"), "imageState": "available", "isPublic": true,
        "architecture": "x86_64", "imageType": "machine", "rootDeviceType": "ebs", "rootDeviceName": "/dev/xvda",
        "virtualizationType": "hvm", "hypervisor": "xen", "enaSupport": true, "creationDate": state.time(),
        "platformDetails": "Linux/UNIX", "tagSet": [],
        "blockDeviceMapping": [{"deviceName": "/dev/xvda", "ebs": {
            "snapshotId": snapshot, "volumeSize": 5, "volumeType": "gp2", "encrypted": false,
            "deleteOnTermination": true,
        }}],
    });
    state.resources.add(Item::new(&image, PUBLISHER, view));
    image
}
