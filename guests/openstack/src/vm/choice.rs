//! Finds everything that a new VM needs before anything is created, so that an
//! error in the request leaves nothing to undo. Only server groups are created
//! here; they belong to the deployment and stay.

use serde::Deserialize;
use serde_json::{Map, Value};
use wasm_cpi_sdk::http::Request;
use wasm_cpi_sdk::{Error, VmRequest};

use super::networks::Networks;
use super::pools::{self, Pool};
use super::properties::{VmProperties, invalid};
use super::{server_group, size};
use crate::api::{Flavor, SecurityGroup};
use crate::session::Session;
use crate::stemcell;

/// The part of a VM's `env` that a guest sees.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Env {
    #[serde(default)]
    pub(super) bosh: BoshEnv,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct BoshEnv {
    group: Option<String>,
    pub(super) tags: Option<Map<String, Value>>,
}

/// The objects of the cloud that the new VM uses.
pub(super) struct Choice {
    pub(super) image: String,
    pub(super) flavor: Flavor,
    pub(super) key_name: String,
    /// The IDs of the security groups.
    pub(super) security_groups: Vec<String>,
    /// Zones to try in this order. An empty string leaves the choice to the cloud.
    pub(super) zones: Vec<String>,
    pub(super) scheduler_hints: Map<String, Value>,
    /// The size of the volume to boot from in GiB, if there is one.
    pub(super) boot_volume: Option<u64>,
    pub(super) pools: Vec<Pool>,
    pub(super) env: Env,
}

impl Choice {
    /// Reads at once what `prepare` needs of the cloud, the floating IP, and `port`.
    pub(super) fn read_ahead(
        session: &Session,
        request: &VmRequest,
        properties: &VmProperties,
        networks: &Networks,
        port: Option<Request>,
    ) -> Result<(), Error> {
        let compute = session.compute()?;
        let mut requests = vec![
            port,
            session.images()?.image_request(stemcell::image_of(&request.stemcell)),
            compute.flavors_request(),
            compute.key_request(key_name(session, properties)?),
        ];
        if wanted_groups(session, properties, networks).is_some() {
            requests.push(session.networking()?.security_groups_request());
        }
        if needs_zones_of_disks(session, &request.disks) {
            let volumes = session.volumes()?;
            requests.extend(request.disks.iter().map(|disk| volumes.volume_request(disk)));
        }
        requests.extend(pools::requests(session, properties.pools())?);
        if group_of(session, properties, &request.env.parse()?).is_some() {
            requests.push(compute.versions_request());
        }
        if let Some(address) = &networks.vip {
            requests.push(session.networking()?.floating_ips_request(address));
        }
        session.ahead.read(requests);
        Ok(())
    }

    /// Finds the objects that the VM uses, and creates the server group if the deployment has none yet.
    pub(super) fn prepare(
        session: &Session,
        request: &VmRequest,
        properties: &VmProperties,
        networks: &Networks,
    ) -> Result<Self, Error> {
        let env: Env = request.env.parse()?;
        let image = stemcell::image_of(&request.stemcell).to_owned();
        match session.images()?.image(&image)? {
            Some(found) if found.status == "active" => {}
            Some(found) => {
                return Err(Error::cloud(format!(
                    "the stemcell's image `{image}` cannot be used: expected status `active`, found `{}`",
                    found.status
                )));
            }
            None => {
                return Err(Error::cloud(format!(
                    "the stemcell's image `{image}` was not found; upload the stemcell again"
                )));
            }
        }
        let flavor = flavor(session, &properties.instance_type)?;
        let boot_volume = properties.boot_volume(&session.properties, &flavor)?;
        let key_name = existing_key(session, properties)?;
        let security_groups = security_groups(session, properties, networks)?;
        let zones = zones(session, &request.disks, properties)?;
        let pools = pools::find(session, properties.pools())?;
        let scheduler_hints = hints_with_server_group(session, properties, &env)?;
        Ok(Self { image, flavor, key_name, security_groups, zones, scheduler_hints, boot_volume, pools, env })
    }
}

fn flavor(session: &Session, name: &str) -> Result<Flavor, Error> {
    let found = session.compute()?.flavors()?.into_iter().find(|flavor| flavor.name == name);
    let flavor = found
        .ok_or_else(|| invalid("instance_type", &format!("flavor `{name}` was not found; use the name of a flavor")))?;
    if !size::has_room_for_swap(&flavor) {
        let least = size::least_ephemeral(&flavor);
        let what = format!(
            "flavor `{name}` has {} GiB of ephemeral disk, but needs at least {least} GiB, twice its memory; use another \
             flavor",
            flavor.ephemeral
        );
        return Err(invalid("instance_type", &what));
    }
    Ok(flavor)
}

fn key_name<'a>(session: &'a Session, properties: &'a VmProperties) -> Result<&'a str, Error> {
    let named = properties.key_name.as_ref().filter(|name| !name.is_empty());
    let default = session.properties.default_key_name.as_ref().filter(|name| !name.is_empty());
    named.or(default).map(String::as_str).ok_or_else(|| {
        Error::cpi("properties.default_key_name: is missing; set it, or cloud_properties.key_name of the VM type")
    })
}

fn existing_key(session: &Session, properties: &VmProperties) -> Result<String, Error> {
    let name = key_name(session, properties)?;
    if !session.compute()?.has_key(name)? {
        return Err(Error::cloud(format!(
            "key pair `{name}` was not found; create it as the user that the CPI logs in as"
        )));
    }
    Ok(name.to_owned())
}

/// Returns the names or IDs of the security groups of the VM type, or else those of its networks, or else
/// the defaults.
fn wanted_groups<'a>(
    session: &'a Session,
    properties: &'a VmProperties,
    networks: &'a Networks,
) -> Option<&'a [String]> {
    let levels: [&[String]; 3] =
        [properties.security_groups(), &networks.security_groups, session.properties.default_security_groups()];
    levels.into_iter().find(|groups| !groups.is_empty())
}

fn security_groups(session: &Session, properties: &VmProperties, networks: &Networks) -> Result<Vec<String>, Error> {
    let Some(wanted) = wanted_groups(session, properties, networks) else {
        return Ok(vec![]);
    };
    let all = session.networking()?.security_groups()?;
    let project = session.project()?;
    wanted.iter().map(|name| security_group(&all, name, project)).collect()
}

/// Finds a security group by ID or by name. An administrator also sees the groups
/// of other projects: those of the own project come first.
fn security_group(all: &[SecurityGroup], wanted: &str, project: Option<&str>) -> Result<String, Error> {
    let own = |group: &&SecurityGroup| group.project_id.as_deref() == project;
    let named = || all.iter().filter(|group| group.name == wanted);
    let found = all.iter().find(|group| group.id == wanted).or_else(|| named().find(own)).or_else(|| named().next());
    found
        .map(|group| group.id.clone())
        .ok_or_else(|| Error::cloud(format!("security group `{wanted}` was not found; use the name or ID of one")))
}

/// Returns true if the zones of the disks decide about the zone of the VM.
fn needs_zones_of_disks(session: &Session, disks: &[String]) -> bool {
    !disks.is_empty() && !session.properties.ignores_zones()
}

/// Returns the zones for the VM. It must be in the zone of its disks, unless the
/// operator ignores zones.
fn zones(session: &Session, disks: &[String], properties: &VmProperties) -> Result<Vec<String>, Error> {
    let requested = properties.zones();
    if !needs_zones_of_disks(session, disks) {
        return Ok(if requested.is_empty() { vec![String::new()] } else { requested });
    }
    let volumes = session.volumes()?;
    let mut all: Vec<(String, String)> = vec![];
    for disk in disks {
        if let Some(zone) = volumes.volume(disk)?.and_then(|volume| volume.availability_zone) {
            all.push((format!("disk `{disk}` is in `{zone}`"), zone));
        }
    }
    all.extend(requested.iter().map(|zone| (format!("the VM type requests `{zone}`"), zone.clone())));
    let first = all.first().map(|(_, zone)| zone.clone()).unwrap_or_default();
    if all.iter().any(|(_, zone)| *zone != first) {
        let found: Vec<&str> = all.iter().map(|(text, _)| text.as_str()).collect();
        return Err(Error::cloud(format!(
            "a VM and its disks must be in one availability zone, but {}; use one zone, or set the property \
             ignore_server_availability_zone",
            found.join(", ")
        )));
    }
    Ok(vec![first])
}

/// Returns the instance group for whose server group the VM is created, if it gets one.
fn group_of<'a>(session: &Session, properties: &VmProperties, env: &'a Env) -> Option<&'a str> {
    let has_own = properties.scheduler_hints.as_ref().is_some_and(|hints| hints.contains_key("group"));
    env.bosh.group.as_deref().filter(|_| session.properties.anti_affinity() && !has_own)
}

fn hints_with_server_group(
    session: &Session,
    properties: &VmProperties,
    env: &Env,
) -> Result<Map<String, Value>, Error> {
    let mut hints = properties.scheduler_hints.clone().unwrap_or_default();
    if let Some(group) = group_of(session, properties, env) {
        hints.insert("group".to_owned(), Value::String(server_group::find_or_create(session, group)?));
    }
    Ok(hints)
}
