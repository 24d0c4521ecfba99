//! What a VM needs that exists already: the image, security groups, the Elastic IP, target groups and the description
//! of the instance type. All of it is asked for at once, before anything is created.

use wasm_cpi_sdk::{Error, VmRequest};

use super::super::block_devices::BlockDevices;
use super::super::connections::Connections;
use super::super::networks::Networks;
use super::super::properties::{VmProperties, invalid};
use super::super::security_groups::Wanted;
use super::failure::Failure;
use crate::api::ec2::{Address, Image, Volume};
use crate::api::elbv2::TargetGroup;
use crate::api::{ApiError, Batch};
use crate::session::Session;
use crate::stemcell::image_id;
use crate::tags::Tags;

pub(super) struct Plan {
    pub(super) image: String,
    pub(super) disks: BlockDevices,
    pub(super) security_groups: Vec<String>,
    /// The allocation of the Elastic IP.
    pub(super) allocation: Option<String>,
    pub(super) target_groups: Vec<TargetGroup>,
    pub(super) connections: Connections,
    /// The tags of the instance, its volumes and its interfaces.
    pub(super) tags: Tags,
}

impl Plan {
    pub(super) fn prepare(
        session: &Session,
        request: &VmRequest,
        vm: &VmProperties,
        networks: &Networks,
    ) -> Result<Self, Failure> {
        let ec2 = session.ec2();
        let connections = Connections::of(vm);
        let groups = Wanted::of(session, vm, networks)?;
        let image = image_id(&request.stemcell);
        let mut batch = Batch::default();
        let asked_image = batch.add(ec2.image(image));
        let asked_groups = groups.query(session).map(|query| batch.add(query));
        let asked_address = networks.vip.as_ref().map(|vip| batch.add(ec2.address(&vip.ip)));
        let asked_targets = connections.groups_query(session).map(|query| batch.add(query));
        let is_described = BlockDevices::need_description(vm, &session.properties);
        let asked_type = is_described.then(|| batch.add(ec2.instance_type(vm.instance_type())));
        let asked_disks: Vec<_> = request.disks.iter().map(|disk| batch.add(ec2.volume(disk))).collect();
        let mut answers = batch.send();

        let image = found_image(image, answers.take(&asked_image)?)?;
        let found_groups = asked_groups.map(|asked| answers.take(&asked)).transpose()?.unwrap_or_default();
        let allocation = match asked_address {
            Some(asked) => Some(allocation(answers.take(&asked), networks)?),
            None => None,
        };
        let target_groups = asked_targets.map(|asked| answers.take(&asked)).transpose()?.unwrap_or_default();
        let described = asked_type.map(|asked| answers.take(&asked)).transpose()?;
        let described = described.as_ref().and_then(|types| types.iter().find(|kind| kind.name == vm.instance_type()));

        for asked in &asked_disks {
            check_zone(vm, answers.take(asked))?;
        }

        let subnet = networks.nics.first().map(|nic| nic.subnet.as_str()).unwrap_or_default();
        Ok(Self {
            disks: BlockDevices::plan(vm, &session.properties, &image, described)?,
            image: image.id,
            security_groups: groups.ids(session, &found_groups, subnet)?,
            allocation,
            target_groups,
            connections,
            tags: tags(request, vm)?,
        })
    }
}

/// Refuses a VM in another zone than a disk that it will get.
fn check_zone(vm: &VmProperties, found: Result<Vec<Volume>, ApiError>) -> Result<(), Failure> {
    match found {
        // Attaching the disk will fail, and then the Director knows which one it is.
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
        Ok(found) => match found.iter().find(|volume| !volume.zone.is_empty() && volume.zone != vm.zone()) {
            None => Ok(()),
            Some(volume) => Err(Failure::final_error(invalid(
                "availability_zone",
                &format!(
                    "is `{}`, but disk `{}` is in `{}`; use the zone of the disk",
                    vm.zone(),
                    volume.id,
                    volume.zone
                ),
            ))),
        },
    }
}

fn found_image(id: &str, found: Vec<Image>) -> Result<Image, Error> {
    match found.into_iter().find(|image| image.id == id) {
        Some(image) if image.state == "available" => Ok(image),
        Some(image) => Err(Error::cpi(format!(
            "stemcell `{id}` cannot be used: the state of its image is `{}`; upload the stemcell again",
            image.state
        ))),
        None => Err(Error::cpi(format!(
            "stemcell `{id}` does not exist in this region, or the account may not use it; upload it again with `bosh \
             upload-stemcell --fix`"
        ))),
    }
}

/// Returns the allocation of the Elastic IP.
fn allocation(found: Result<Vec<Address>, ApiError>, networks: &Networks) -> Result<String, Failure> {
    let ip = networks.vip.as_ref().map(|vip| vip.ip.as_str()).unwrap_or_default();
    let missing =
        || Error::cpi(format!("Elastic IP {ip} does not exist in this account and region; allocate it, or correct it"));
    match found {
        Err(error) if error.is_not_found() => Err(missing().into()),
        Err(error) => Err(error.into()),
        Ok(found) => {
            let own = found.into_iter().find(|address| address.ip == ip);
            Ok(own.and_then(|address| address.allocation).ok_or_else(missing)?)
        }
    }
}

/// Returns the tags of `env` with those of the VM type over them.
fn tags(request: &VmRequest, vm: &VmProperties) -> Result<Tags, Error> {
    let mut tags = Tags::default();
    if let Some(own) = request.env.value()?["bosh"]["tags"].as_object() {
        tags.extend(own);
    }
    if let Some(own) = vm.tags() {
        tags.extend(own);
    }
    Ok(tags)
}
