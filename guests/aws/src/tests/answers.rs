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

pub(super) fn running(id: &str, interfaces: &str) -> String {
    instance(id, "running", &format!("<networkInterfaceSet>{interfaces}</networkInterfaceSet>"))
}

/// Returns the answer of `RunInstances` as the host shows it.
pub(super) fn launched() -> String {
    "<shown><instanceId>i-1</instanceId></shown>".to_owned()
}

/// Returns this many interfaces of an instance, the last device first.
pub(super) fn interfaces(count: usize) -> String {
    let item = |index: usize| {
        format!(
            "<item><networkInterfaceId>eni-{index}</networkInterfaceId><macAddress>02:00:00:00:00:0{index}</macAddress>\
             <privateIpAddress>10.0.0.20{index}</privateIpAddress><attachment><attachmentId>eni-attach-{index}</attachmentId>\
             <deviceIndex>{index}</deviceIndex></attachment></item>"
        )
    };
    (0..count).rev().map(item).collect()
}

/// Returns the answer of `CreateNetworkInterface`.
pub(super) fn interface(index: usize) -> String {
    format!(
        "<R><networkInterface><networkInterfaceId>eni-{index}</networkInterfaceId><macAddress>02:00:00:00:00:0{index}\
         </macAddress><status>pending</status></networkInterface></R>"
    )
}

pub(super) fn image() -> String {
    image_with("/dev/xvda", "/dev/xvda")
}

pub(super) fn image_with(root: &str, device: &str) -> String {
    format!(
        "<R><imagesSet><item><imageId>ami-1</imageId><imageState>available</imageState><rootDeviceName>{root}\
         </rootDeviceName><blockDeviceMapping><item><deviceName>{device}</deviceName><ebs><snapshotId>snap-1</snapshotId>\
         <volumeSize>5</volumeSize></ebs></item></blockDeviceMapping></item></imagesSet></R>"
    )
}

/// Returns the answer of `DescribeInstanceTypes`: name, CPUs, memory, NVMe support, and number and size of disks.
pub(super) fn instance_types(types: &[(&str, u64, u64, &str, u64, u64)]) -> String {
    let item = |(name, cpus, memory, nvme, count, size): &(&str, u64, u64, &str, u64, u64)| {
        let disks = match count {
            0 => String::new(),
            _ => format!(
                "<instanceStorageInfo><disks><item><count>{count}</count><sizeInGB>{size}</sizeInGB></item></disks>\
                 <nvmeSupport>{nvme}</nvmeSupport></instanceStorageInfo>"
            ),
        };
        format!(
            "<item><instanceType>{name}</instanceType><currentGeneration>true</currentGeneration><bareMetal>false</bareMetal>\
             <processorInfo><supportedArchitectures><item>x86_64</item></supportedArchitectures></processorInfo>\
             <vCpuInfo><defaultVCpus>{cpus}</defaultVCpus></vCpuInfo><memoryInfo><sizeInMiB>{memory}</sizeInMiB></memoryInfo>\
             <ebsInfo><nvmeSupport>{nvme}</nvmeSupport></ebsInfo>{disks}</item>"
        )
    };
    format!("<R><instanceTypeSet>{}</instanceTypeSet></R>", types.iter().map(item).collect::<String>())
}

/// Returns the answer of `DescribeSecurityGroups`: ID, name and VPC of each group.
pub(super) fn groups(groups: &[(&str, &str, &str)]) -> String {
    let item = |(id, name, vpc): &(&str, &str, &str)| {
        format!("<item><groupId>{id}</groupId><groupName>{name}</groupName><vpcId>{vpc}</vpcId></item>")
    };
    format!("<R><securityGroupInfo>{}</securityGroupInfo></R>", groups.iter().map(item).collect::<String>())
}

pub(super) fn subnet(id: &str, vpc: &str) -> String {
    format!("<R><subnetSet><item><subnetId>{id}</subnetId><vpcId>{vpc}</vpcId></item></subnetSet></R>")
}

pub(super) fn address(ip: &str, allocation: &str) -> String {
    format!(
        "<R><addressesSet><item><publicIp>{ip}</publicIp><allocationId>{allocation}</allocationId></item></addressesSet></R>"
    )
}

/// Returns the answer of `DescribeTargetGroups`: name and ARN of each group.
pub(super) fn target_groups(groups: &[(&str, &str)]) -> String {
    let item = |(name, arn): &(&str, &str)| {
        format!("<member><TargetGroupName>{name}</TargetGroupName><TargetGroupArn>{arn}</TargetGroupArn></member>")
    };
    let items: String = groups.iter().map(item).collect();
    format!("<R><DescribeTargetGroupsResult><TargetGroups>{items}</TargetGroups></DescribeTargetGroupsResult></R>")
}

/// Returns the answer of `DescribeRouteTables` with one route to an instance.
pub(super) fn route_table(id: &str, destination: &str, instance: &str) -> String {
    format!(
        "<R><routeTableSet><item><routeTableId>{id}</routeTableId><routeSet><item><destinationCidrBlock>{destination}\
         </destinationCidrBlock><instanceId>{instance}</instanceId></item></routeSet></item></routeTableSet></R>"
    )
}
