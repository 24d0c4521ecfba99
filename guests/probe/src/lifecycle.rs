//! The methods without a script: a cloud that never fails, derived from the arguments
//! alone. It makes every call to `agent` that a real CPI makes.

use serde_json::{Value, json};
use wasm_cpi_sdk::agent::{self, Encoding, Settings};
use wasm_cpi_sdk::{
    CreatedNetwork, CreatedVm, DiskHint, Error, Json, Network, NetworkSpec, VmRequest, VmSize, image, log, random,
};

use crate::cids::{DISK, NETWORK, SNAPSHOT, STEMCELL, VM, digest, disk_size};
use crate::script::value_of;

pub(crate) fn create_stemcell() -> Result<String, Error> {
    let (size, sha256) = (image::size()?, image::sha256()?);
    let stemcell = STEMCELL.make(sha256.get(..16).unwrap_or(&sha256));
    log::info(format_args!("created stemcell {stemcell} of {size} bytes"));
    Ok(stemcell)
}

pub(crate) fn delete_stemcell(stemcell: &str) -> Result<(), Error> {
    if STEMCELL.accepts(stemcell) { Ok(()) } else { Err(Error::stemcell_not_found(stemcell)) }
}

pub(crate) fn vm_arguments(request: &VmRequest) -> Value {
    let network = |network: &Network| json!({"name": network.name, "kind": network.kind, "ip": network.ip});
    json!({
        "agent_id": request.agent_id,
        "stemcell": request.stemcell,
        "cloud_properties": value_of(&request.cloud_properties),
        "networks": request.networks.iter().map(network).collect::<Vec<_>>(),
        "disks": request.disks,
        "env": value_of(&request.env),
    })
}

pub(crate) fn create_vm(request: VmRequest) -> Result<CreatedVm, Error> {
    if !STEMCELL.accepts(&request.stemcell) {
        return Err(Error::vm_creation_failed(format!("stemcell `{}` was not found", request.stemcell)));
    }
    let id = digest(&request.agent_id);
    let vm = VM.make(format_args!("{id:016x}"));
    let networks: Vec<Network> = request.networks.into_iter().map(|network| with_address(network, id)).collect();
    let settings = Settings {
        system_disk: Some("/dev/sda".to_owned()),
        ephemeral_disk: Some(DiskHint::Text("/dev/sdb".to_owned())),
        networks: networks.iter().filter(|network| network.is_dynamic()).map(addition).collect(),
        encodings: vec![Encoding::Base64],
        ..agent::settings(&vm)
    };
    agent::bootstrap(&settings)?;
    agent::created(&vm, &vm)?;
    log::info(format_args!("created VM {vm} from stemcell {}", request.stemcell));
    Ok(CreatedVm { vm, networks })
}

/// Gives a dynamic network an address, as a cloud would.
fn with_address(mut network: Network, id: u64) -> Network {
    if network.is_dynamic() && network.ip.is_none() {
        let [a, b, ..] = id.to_be_bytes();
        network.ip = Some(format!("10.{a}.{b}.10"));
        network.netmask = Some("255.255.255.0".to_owned());
        network.gateway = Some(format!("10.{a}.{b}.1"));
    }
    network
}

fn addition(network: &Network) -> agent::NetworkAddition {
    agent::NetworkAddition {
        ip: network.ip.clone(),
        netmask: network.netmask.clone(),
        gateway: network.gateway.clone(),
        ..agent::addition(&network.name)
    }
}

pub(crate) fn known_vm(vm: &str) -> Result<(), Error> {
    if VM.accepts(vm) { Ok(()) } else { Err(Error::vm_not_found(vm)) }
}

pub(crate) fn delete_vm(vm: &str) -> Result<(), Error> {
    known_vm(vm)?;
    agent::deleted(vm)?;
    log::info(format_args!("deleted VM {vm}"));
    Ok(())
}

pub(crate) fn vm_cloud_properties(size: VmSize) -> Json {
    let instance_type = format!("probe.c{}.m{}", size.cpu.max(1), size.ram_mib.max(512).next_multiple_of(512));
    Json::from(json!({"instance_type": instance_type, "ephemeral_disk": {"size": size.ephemeral_disk_mb}}))
}

pub(crate) fn create_disk(size_mib: u64) -> Result<String, Error> {
    if size_mib == 0 {
        return Err(Error::cpi("size: expected at least 1 MiB, found 0"));
    }
    Ok(DISK.make(format_args!("{size_mib}-{}", random::hex(8))))
}

pub(crate) fn known_disk(disk: &str) -> Result<(), Error> {
    if DISK.accepts(disk) { Ok(()) } else { Err(Error::disk_not_found(disk)) }
}

pub(crate) fn attach_disk(vm: &str, disk: &str) -> Result<DiskHint, Error> {
    known_vm(vm)?;
    known_disk(disk)?;
    let hint = DiskHint::Text(format!("/dev/disk/by-id/probe-{:016x}", digest(disk)));
    agent::attached(vm, disk, &hint)?;
    Ok(hint)
}

pub(crate) fn detach_disk(vm: &str, disk: &str) -> Result<(), Error> {
    known_vm(vm)?;
    known_disk(disk)?;
    agent::detached(vm, disk)
}

pub(crate) fn resize_disk(disk: &str, size_mib: u64) -> Result<(), Error> {
    known_disk(disk)?;
    match disk_size(disk) {
        Some(current) if size_mib < current => {
            Err(Error::not_supported(format!("disk `{disk}` has {current} MiB and cannot shrink to {size_mib} MiB")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn snapshot_disk(disk: &str) -> Result<String, Error> {
    known_disk(disk)?;
    Ok(SNAPSHOT.make(random::hex(8)))
}

pub(crate) fn delete_snapshot(snapshot: &str) -> Result<(), Error> {
    if SNAPSHOT.accepts(snapshot) { Ok(()) } else { Err(Error::cloud(format!("snapshot `{snapshot}` was not found"))) }
}

pub(crate) fn create_network(spec: NetworkSpec) -> CreatedNetwork {
    CreatedNetwork {
        network: NETWORK.make(random::hex(8)),
        range: spec.range.unwrap_or_else(|| format!("10.0.0.0/{}", spec.netmask_bits.unwrap_or(24))),
        gateway: spec.gateway.unwrap_or_else(|| "10.0.0.1".to_owned()),
        reserved: vec![],
        cloud_properties: spec.cloud_properties,
    }
}

pub(crate) fn delete_network(network: &str) -> Result<(), Error> {
    if NETWORK.accepts(network) { Ok(()) } else { Err(Error::network_not_found(network)) }
}
