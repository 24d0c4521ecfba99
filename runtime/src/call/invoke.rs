//! Calls the guest's export for a typed call, and converts its answer.

use crate::bindings::Cpi;
use crate::bindings::bosh::cpi::types;
use crate::bindings::exports::bosh::cpi::vms::{VmRequest, VmSize};
use crate::failure::Failure;
use crate::host::GuestState;
use crate::rpc::answer::Answer;
use crate::rpc::arguments::{Call, Object};
use crate::rpc::conversion;
use wasmtime::Store;

/// The result of an export that returned.
pub(super) type Invoked = Result<Answer, InvokeError>;

/// The reason why an export that returned has no answer for the caller.
pub(super) enum InvokeError {
    /// The guest's own error.
    Guest(types::Error),
    /// The call or its answer does not follow the contract.
    Invalid(Failure),
}

/// Calls the export of the guest that implements the method. The outer error is a trap.
pub(super) async fn invoke(guest: &Cpi, store: &mut Store<GuestState>, call: &Call) -> wasmtime::Result<Invoked> {
    let (stemcells, vms, disks) = (guest.bosh_cpi_stemcells(), guest.bosh_cpi_vms(), guest.bosh_cpi_disks());
    let (snapshots, networks) = (guest.bosh_cpi_snapshots(), guest.bosh_cpi_networks());
    Ok(match call {
        Call::Info => Err(InvokeError::Invalid(Failure::runtime(
            "`info` was passed to the guest; this is a bug in wasm-cpi, please report it",
        ))),
        Call::CreateStemcell { cloud_properties, tags, .. } => {
            let tags = conversion::metadata_for_guest(tags);
            id(stemcells.call_create_stemcell(store, &text(cloud_properties), &tags).await?)
        }
        Call::DeleteStemcell { stemcell } => nothing(stemcells.call_delete_stemcell(store, stemcell).await?),
        Call::CreateVm { agent_id, stemcell, cloud_properties, networks, disks, env } => {
            let request = VmRequest {
                agent_id: agent_id.clone(),
                stemcell: stemcell.clone(),
                cloud_properties: text(cloud_properties),
                networks: conversion::networks_for_guest(networks),
                disks: disks.clone(),
                env: conversion::visible_env(env).to_string(),
            };
            answered(vms.call_create_vm(store, &request).await?, Answer::created_vm)
        }
        Call::DeleteVm { vm } => nothing(vms.call_delete_vm(store, vm).await?),
        Call::HasVm { vm } => flag(vms.call_has_vm(store, vm).await?),
        Call::RebootVm { vm } => nothing(vms.call_reboot_vm(store, vm).await?),
        Call::SetVmMetadata { vm, metadata } => {
            nothing(vms.call_set_vm_metadata(store, vm, &conversion::metadata_for_guest(metadata)).await?)
        }
        Call::CalculateVmCloudProperties { ram_mib, cpu, ephemeral_disk_mb } => {
            let size = VmSize { ram_mib: *ram_mib, cpu: *cpu, ephemeral_disk_mb: *ephemeral_disk_mb };
            answered(vms.call_calculate_vm_cloud_properties(store, size).await?, |text| Answer::cloud_properties(&text))
        }
        Call::CreateDisk { size_mib, cloud_properties, vm } => {
            id(disks.call_create_disk(store, *size_mib, &text(cloud_properties), vm.as_ref()).await?)
        }
        Call::DeleteDisk { disk } => nothing(disks.call_delete_disk(store, disk).await?),
        Call::HasDisk { disk } => flag(disks.call_has_disk(store, disk).await?),
        Call::AttachDisk { vm, disk } => answered(disks.call_attach_disk(store, vm, disk).await?, Answer::disk_hint),
        Call::DetachDisk { vm, disk } => nothing(disks.call_detach_disk(store, vm, disk).await?),
        Call::SetDiskMetadata { disk, metadata } => {
            nothing(disks.call_set_disk_metadata(store, disk, &conversion::metadata_for_guest(metadata)).await?)
        }
        Call::GetDisks { vm } => answered(disks.call_get_disks(store, vm).await?, Answer::cids),
        Call::ResizeDisk { disk, size_mib } => nothing(disks.call_resize_disk(store, disk, *size_mib).await?),
        Call::UpdateDisk { disk, size_mib, cloud_properties } => {
            let updated = disks.call_update_disk(store, disk, *size_mib, &text(cloud_properties)).await?;
            answered(updated, |cid| cid.map_or(Ok(Answer::Nothing), Answer::cid))
        }
        Call::SnapshotDisk { disk, metadata } => {
            id(snapshots.call_snapshot_disk(store, disk, &conversion::metadata_for_guest(metadata)).await?)
        }
        Call::DeleteSnapshot { snapshot } => nothing(snapshots.call_delete_snapshot(store, snapshot).await?),
        Call::CreateNetwork { spec } => match conversion::network_spec(spec) {
            Ok(spec) => answered(networks.call_create_network(store, &spec).await?, Answer::created_network),
            Err(failure) => Err(InvokeError::Invalid(failure)),
        },
        Call::DeleteNetwork { network } => nothing(networks.call_delete_network(store, network).await?),
    })
}

fn text(object: &Object) -> String {
    // Serialises the object without a clone, because it may be large.
    serde_json::to_string(object).unwrap_or_else(|_| "{}".into())
}

fn answered<T>(answer: Result<T, types::Error>, checked: impl FnOnce(T) -> Result<Answer, Failure>) -> Invoked {
    checked(answer.map_err(InvokeError::Guest)?).map_err(InvokeError::Invalid)
}

fn id(answer: Result<String, types::Error>) -> Invoked {
    answered(answer, Answer::cid)
}

fn nothing(answer: Result<(), types::Error>) -> Invoked {
    answered(answer, |()| Ok(Answer::Nothing))
}

fn flag(answer: Result<bool, types::Error>) -> Invoked {
    answered(answer, |flag| Ok(Answer::Flag(flag)))
}
