//! EC2: its operations, and the parameters of each that the simulator has.

pub(super) mod attachments;
pub(super) mod block_devices;
mod elastic_ips;
mod images;
pub(super) mod instance_types;
mod instance_views;
mod instances;
mod interface_addresses;
mod interfaces;
pub(super) mod launch;
mod launch_interfaces;
pub(super) mod modifications;
mod networks;
mod routes;
mod snapshots;
mod tags;
pub(super) mod termination;
mod volumes;

pub(super) use snapshots::add as add_snapshot;
pub(super) use tags::merge as merge_tags;

use super::error::Error;
use super::parameters;
use super::state::State;
use serde_json::{Value, json};

/// A request whose signature and parameters are valid.
pub(super) struct Call<'a> {
    pub(super) account: &'a str,
    pub(super) operation: &'static str,
    pub(super) parameters: &'a Value,
}

type Handler = fn(&mut State, &Call<'_>) -> Result<Value, Error>;

const OPERATIONS: &[(&str, &[&str], Handler)] = &[
    (
        "AssignIpv6Addresses",
        &["NetworkInterfaceId", "Ipv6Addresses", "Ipv6AddressCount", "Ipv6Prefix", "Ipv6PrefixCount"],
        interface_addresses::assign_ipv6,
    ),
    (
        "AssignPrivateIpAddresses",
        &[
            "NetworkInterfaceId",
            "PrivateIpAddress",
            "SecondaryPrivateIpAddressCount",
            "Ipv4Prefix",
            "Ipv4PrefixCount",
            "AllowReassignment",
        ],
        interface_addresses::assign_ipv4,
    ),
    (
        "AssociateAddress",
        &["AllocationId", "InstanceId", "NetworkInterfaceId", "PrivateIpAddress", "AllowReassociation"],
        elastic_ips::associate,
    ),
    ("AttachVolume", &["Device", "InstanceId", "VolumeId"], attachments::attach),
    (
        "CopyImage",
        &[
            "ClientToken",
            "Description",
            "Encrypted",
            "KmsKeyId",
            "Name",
            "SourceImageId",
            "SourceRegion",
            "CopyImageTags",
            "TagSpecification",
        ],
        images::copy,
    ),
    (
        "CreateNetworkInterface",
        &[
            "ClientToken",
            "Description",
            "SubnetId",
            "SecurityGroupId",
            "PrivateIpAddress",
            "PrivateIpAddresses",
            "SecondaryPrivateIpAddressCount",
            "Ipv6Addresses",
            "Ipv6AddressCount",
            "Ipv4Prefix",
            "Ipv4PrefixCount",
            "Ipv6Prefix",
            "Ipv6PrefixCount",
            "TagSpecification",
        ],
        interfaces::create,
    ),
    (
        "CreateRoute",
        &["RouteTableId", "DestinationCidrBlock", "DestinationIpv6CidrBlock", "InstanceId", "NetworkInterfaceId"],
        routes::create,
    ),
    ("CreateSnapshot", &["Description", "VolumeId", "TagSpecification"], snapshots::create),
    ("CreateTags", &["ResourceId", "Tag"], tags::create),
    (
        "CreateVolume",
        &[
            "AvailabilityZone",
            "ClientToken",
            "Encrypted",
            "Iops",
            "KmsKeyId",
            "Size",
            "SnapshotId",
            "VolumeType",
            "TagSpecification",
            "Throughput",
        ],
        volumes::create,
    ),
    ("DeleteNetworkInterface", &["NetworkInterfaceId"], interfaces::delete),
    ("DeleteRoute", &["RouteTableId", "DestinationCidrBlock", "DestinationIpv6CidrBlock"], routes::delete),
    ("DeleteSnapshot", &["SnapshotId"], snapshots::delete),
    ("DeleteVolume", &["VolumeId"], volumes::delete),
    ("DeregisterImage", &["ImageId", "DeleteAssociatedSnapshots"], images::deregister),
    ("DescribeAddresses", &["PublicIp", "AllocationId", "Filter"], elastic_ips::describe),
    ("DescribeAvailabilityZones", &["ZoneName", "ZoneId", "Filter"], networks::zones),
    (
        "DescribeImages",
        &["ImageId", "Owner", "IncludeDeprecated", "IncludeDisabled", "MaxResults", "NextToken", "Filter"],
        images::describe,
    ),
    ("DescribeInstanceAttribute", &["InstanceId", "Attribute"], instances::describe_attribute),
    ("DescribeInstanceTypes", &["InstanceType", "MaxResults", "NextToken", "Filter"], instance_types::describe),
    ("DescribeInstances", &["InstanceId", "MaxResults", "NextToken", "Filter"], instances::describe),
    ("DescribeNetworkInterfaces", &["NetworkInterfaceId", "MaxResults", "NextToken", "Filter"], interfaces::describe),
    ("DescribeRouteTables", &["RouteTableId", "MaxResults", "NextToken", "Filter"], routes::describe),
    (
        "DescribeSecurityGroups",
        &["GroupId", "GroupName", "MaxResults", "NextToken", "Filter"],
        networks::security_groups,
    ),
    ("DescribeSnapshots", &["SnapshotId", "Owner", "MaxResults", "NextToken", "Filter"], snapshots::describe),
    ("DescribeSubnets", &["SubnetId", "MaxResults", "NextToken", "Filter"], networks::subnets),
    ("DescribeVolumes", &["VolumeId", "MaxResults", "NextToken", "Filter"], volumes::describe),
    ("DescribeVolumesModifications", &["VolumeId", "MaxResults", "NextToken", "Filter"], modifications::describe),
    ("DetachVolume", &["Device", "Force", "InstanceId", "VolumeId"], attachments::detach),
    ("DisassociateAddress", &["AssociationId"], elastic_ips::disassociate),
    (
        "ModifyInstanceAttribute",
        &["InstanceId", "SourceDestCheck", "DisableApiTermination"],
        instances::modify_attribute,
    ),
    (
        "ModifyNetworkInterfaceAttribute",
        &[
            "NetworkInterfaceId",
            "Description",
            "SourceDestCheck",
            "SecurityGroupId",
            "Attachment",
            "AssociatePublicIpAddress",
        ],
        interfaces::modify_attribute,
    ),
    ("ModifyVolume", &["VolumeId", "Size", "VolumeType", "Iops", "Throughput"], modifications::modify),
    ("RebootInstances", &["InstanceId"], instances::reboot),
    (
        "RegisterImage",
        &[
            "Name",
            "Description",
            "Architecture",
            "KernelId",
            "RootDeviceName",
            "BlockDeviceMapping",
            "VirtualizationType",
            "SriovNetSupport",
            "EnaSupport",
            "BootMode",
            "ImdsSupport",
            "TagSpecification",
        ],
        images::register,
    ),
    (
        "ReplaceRoute",
        &["RouteTableId", "DestinationCidrBlock", "DestinationIpv6CidrBlock", "InstanceId", "NetworkInterfaceId"],
        routes::replace,
    ),
    ("RunInstances", launch::PARAMETERS, launch::run),
    ("TerminateInstances", &["InstanceId"], termination::terminate),
];

/// Runs an operation of EC2.
pub(super) fn answer(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let (_, known, run) = OPERATIONS.iter().find(|(name, _, _)| *name == call.operation).ok_or_else(|| {
        Error::new("InvalidAction", format!("The action {} is not valid for this web service.", call.operation))
    })?;
    parameters::only(call.parameters, &[*known, &["DryRun"]].concat())?;
    if parameters::flag(call.parameters, "DryRun") {
        return Err(Error::with_status(
            412,
            "DryRunOperation",
            "Request would have succeeded, but DryRun flag is set.",
        ));
    }
    let mut given = call.parameters.clone();
    given.as_object_mut().map(|given| given.remove("DryRun"));
    run(state, &Call { parameters: &given, ..*call })
}

/// Returns the result of an operation that only succeeds.
fn done() -> Result<Value, Error> {
    Ok(json!({}))
}

#[cfg(test)]
mod tests {
    use super::super::model::{self, Direction};
    use super::super::service::Api;
    use super::*;

    #[test]
    fn every_operation_of_the_model_exists_with_parameters_of_the_model() {
        let mut names: Vec<&str> = model::operations(Api::Ec2).map(|operation| operation.name).collect();
        names.sort_unstable();
        assert_eq!(names, OPERATIONS.iter().map(|(name, _, _)| *name).collect::<Vec<_>>());
        for (name, known, _) in OPERATIONS {
            let operation = model::operation(Api::Ec2, name).unwrap_or_else(|| panic!("{name}"));
            let shape = operation.shape(Direction::Input).unwrap_or_else(|| panic!("{name}"));
            let unknown: Vec<_> = known.iter().filter(|known| shape.member(known).is_none()).collect();
            assert!(unknown.is_empty(), "{name}: {unknown:?}");
        }
    }
}
