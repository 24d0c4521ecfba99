//! One method of one guest: instantiate, call, explain.

use crate::bindings::bosh::cpi::types::Error;
use crate::bindings::exports::bosh::cpi::networks::NetworkSpec;
use crate::bindings::exports::bosh::cpi::vms::{VmRequest, VmSize};
use crate::bindings::{Cpi, CpiPre};
use crate::failure::{Failure, Who};
#[cfg(feature = "holes")]
use crate::holes::instead;
use crate::host;
use crate::limits::Limits;
use crate::log::escape;
use crate::rpc::arguments::{Call, Object};
use crate::rpc::shape;
use crate::sandbox::state::State;
use crate::sandbox::{ticker, trap, wasi};
use crate::strict_json;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::runtime::Runtime;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

/// How a call that did not succeed ended.
pub enum Unsuccessful {
    /// The guest said no, in its own words.
    Error(Error),
    /// The guest could not finish, or answered garbage.
    Failure(Failure),
}

impl From<Failure> for Unsuccessful {
    fn from(failure: Failure) -> Self {
        Unsuccessful::Failure(failure)
    }
}

pub struct Outcome {
    pub result: Result<Value, Unsuccessful>,
    /// With the guest's state, for its usage and what its capabilities recorded.
    pub store: Store<State>,
}

/// Runs one call in a fresh store. Blocks this thread.
pub fn run(
    runtime: &Runtime,
    engine: &Engine,
    component: &Component,
    state: State,
    limits: &Limits,
    call: &Call,
    api_version: u32,
) -> Result<Outcome, Failure> {
    let unfit = |error: wasmtime::Error| {
        Failure::config(format!("the guest does not fit this runtime: {error:#}; prepare it again"))
    };
    let mut linker = Linker::new(engine);
    host::link(&mut linker).map_err(unfit)?;
    wasi::link(&mut linker, component).map_err(unfit)?;
    #[cfg(feature = "holes")]
    instead::any_import(&mut linker, component).map_err(unfit)?;
    let pre = CpiPre::new(linker.instantiate_pre(component).map_err(unfit)?).map_err(unfit)?;
    let ending = Arc::clone(&state.ending);
    let mut store = state.into_store(engine, limits);
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = dispatch(&pre, &mut store, call, api_version) => Some(ended),
            () = ending.over() => None,
            never = ticker::watch(&ending) => match never {},
        }
    });
    let result = match ended {
        Some(Ok(result)) => result.and_then(|value| bounded(value, limits).map_err(Unsuccessful::from)),
        #[cfg(feature = "holes")]
        Some(Err(error)) if instead::exit_counts(&error) => Ok(Value::Null),
        Some(Err(error)) => {
            let failure = trap::explain(error, ending.why(), call.method().name(), limits);
            Err(Unsuccessful::Failure(with_last_words(failure, store.data())))
        }
        None => Err(Unsuccessful::Failure(match ending.why() {
            Some(why) => why.failure(),
            None => Failure::runtime("the call ended without a reason"),
        })),
    };
    store.data().finish_log();
    Ok(Outcome { result, store })
}

/// A panic is only a trap to the engine; the guest's log has what it was about.
fn with_last_words(failure: Failure, state: &State) -> Failure {
    match state.host.as_ref().and_then(|host| host.log.last_error()) {
        Some(said) if failure.who == Who::Guest => {
            Failure { message: format!("{}; it said: {said}", failure.message), ..failure }
        }
        _ => failure,
    }
}

type Answer = Result<Value, Unsuccessful>;

async fn dispatch(
    pre: &CpiPre<State>,
    store: &mut Store<State>,
    call: &Call,
    api_version: u32,
) -> wasmtime::Result<Answer> {
    let guest = pre.instantiate_async(&mut *store).await?;
    invoke(&guest, store, call, api_version).await
}

/// The guest's answer in the shape of the caller's API version.
async fn invoke(guest: &Cpi, store: &mut Store<State>, call: &Call, api_version: u32) -> wasmtime::Result<Answer> {
    let (stemcells, vms, disks) = (guest.bosh_cpi_stemcells(), guest.bosh_cpi_vms(), guest.bosh_cpi_disks());
    let (snapshots, networks) = (guest.bosh_cpi_snapshots(), guest.bosh_cpi_networks());
    Ok(match call {
        Call::Info => Err(Failure::runtime("`info` needs no guest").into()),
        Call::CreateStemcell { cloud_properties, tags, .. } => {
            let tags = shape::metadata_for_guest(tags);
            id(stemcells.call_create_stemcell(store, &text(cloud_properties), &tags).await?)
        }
        Call::DeleteStemcell { stemcell } => nothing(stemcells.call_delete_stemcell(store, stemcell).await?),
        Call::CreateVm { agent_id, stemcell, cloud_properties, networks, disks, env } => {
            let request = VmRequest {
                agent_id: agent_id.clone(),
                stemcell: stemcell.clone(),
                cloud_properties: text(cloud_properties),
                networks: shape::networks_for_guest(networks),
                disks: disks.clone(),
                env: shape::visible_env(env).to_string(),
            };
            vms.call_create_vm(store, &request).await?.map_err(Unsuccessful::Error).and_then(|created| {
                let vm = shape::cid_from_guest(created.vm)?;
                let networks = shape::networks_for_caller(created.networks).map_err(|failure| naming(failure, &vm))?;
                Ok(if api_version >= 2 { json!([vm, networks]) } else { vm })
            })
        }
        Call::DeleteVm { vm } => nothing(vms.call_delete_vm(store, vm).await?),
        Call::HasVm { vm } => flag(vms.call_has_vm(store, vm).await?),
        Call::RebootVm { vm } => nothing(vms.call_reboot_vm(store, vm).await?),
        Call::SetVmMetadata { vm, metadata } => {
            nothing(vms.call_set_vm_metadata(store, vm, &shape::metadata_for_guest(metadata)).await?)
        }
        Call::CalculateVmCloudProperties { ram, cpu, ephemeral_disk_size } => {
            let size = VmSize { ram_mib: *ram, cpu: *cpu, ephemeral_disk_mb: *ephemeral_disk_size };
            vms.call_calculate_vm_cloud_properties(store, size)
                .await?
                .map_err(Unsuccessful::Error)
                .and_then(|text| Ok(Value::Object(shape::object_from_guest(&text, "cloud_properties")?)))
        }
        Call::CreateDisk { size, cloud_properties, vm } => {
            id(disks.call_create_disk(store, *size, &text(cloud_properties), vm.as_ref()).await?)
        }
        Call::DeleteDisk { disk } => nothing(disks.call_delete_disk(store, disk).await?),
        Call::HasDisk { disk } => flag(disks.call_has_disk(store, disk).await?),
        Call::AttachDisk { vm, disk } => {
            disks.call_attach_disk(store, vm, disk).await?.map_err(Unsuccessful::Error).and_then(|hint| {
                let hint = shape::hint_for_caller(hint)?;
                Ok(if api_version >= 2 { hint } else { Value::Null })
            })
        }
        Call::DetachDisk { vm, disk } => nothing(disks.call_detach_disk(store, vm, disk).await?),
        Call::SetDiskMetadata { disk, metadata } => {
            nothing(disks.call_set_disk_metadata(store, disk, &shape::metadata_for_guest(metadata)).await?)
        }
        Call::GetDisks { vm } => disks.call_get_disks(store, vm).await?.map_err(Unsuccessful::Error).and_then(|cids| {
            let cids: Result<Vec<Value>, Failure> = cids.into_iter().map(shape::cid_from_guest).collect();
            Ok(Value::Array(cids?))
        }),
        Call::ResizeDisk { disk, size } => nothing(disks.call_resize_disk(store, disk, *size).await?),
        Call::UpdateDisk { disk, size, cloud_properties } => {
            let updated = disks.call_update_disk(store, disk, *size, &text(cloud_properties)).await?;
            updated.map_err(Unsuccessful::Error).and_then(|cid| match cid {
                Some(cid) => Ok(shape::cid_from_guest(cid)?),
                None => Ok(Value::Null),
            })
        }
        Call::SnapshotDisk { disk, metadata } => {
            id(snapshots.call_snapshot_disk(store, disk, &shape::metadata_for_guest(metadata)).await?)
        }
        Call::DeleteSnapshot { snapshot } => nothing(snapshots.call_delete_snapshot(store, snapshot).await?),
        Call::CreateNetwork { spec } => {
            let spec = match network_spec(spec) {
                Ok(spec) => spec,
                Err(failure) => return Ok(Err(failure.into())),
            };
            networks.call_create_network(store, &spec).await?.map_err(Unsuccessful::Error).and_then(|created| {
                let cid = shape::cid_from_guest(created.network)?;
                let addresses =
                    json!({"range": created.range, "gateway": created.gateway, "reserved": created.reserved});
                let properties = shape::object_from_guest(&created.cloud_properties, "cloud_properties")?;
                Ok(json!([cid, addresses, properties]))
            })
        }
        Call::DeleteNetwork { network } => nothing(networks.call_delete_network(store, network).await?),
    })
}

fn text(object: &Object) -> String {
    // Objects print as JSON; no clone of what may be large.
    serde_json::to_string(object).unwrap_or_else(|_| "{}".into())
}

fn id(answer: Result<String, Error>) -> Answer {
    answer.map_err(Unsuccessful::Error).and_then(|cid| Ok(shape::cid_from_guest(cid)?))
}

fn nothing(answer: Result<(), Error>) -> Answer {
    answer.map_err(Unsuccessful::Error).map(|()| Value::Null)
}

fn flag(answer: Result<bool, Error>) -> Answer {
    answer.map_err(Unsuccessful::Error).map(Value::Bool)
}

fn network_spec(spec: &Object) -> Result<NetworkSpec, Failure> {
    let text = |key: &str| match spec.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Failure::request(format!("`create_network`: `{key}` must be a string"))),
    };
    let cloud_properties = match spec.get("cloud_properties") {
        None | Some(Value::Null) => json!({}),
        Some(object @ Value::Object(_)) => object.clone(),
        Some(_) => return Err(Failure::request("`create_network`: `cloud_properties` must be an object")),
    };
    // The Director sends a number; a manifest may have made it a string.
    let netmask_bits = match spec.get("netmask_bits") {
        None | Some(Value::Null) => None,
        Some(bits) => Some(
            bits.as_u64()
                .or_else(|| bits.as_str()?.parse().ok())
                .and_then(|bits| u32::try_from(bits).ok())
                .ok_or_else(|| Failure::request("`create_network`: `netmask_bits` must be a whole number"))?,
        ),
    };
    Ok(NetworkSpec {
        kind: text("type")?.unwrap_or_default(),
        cloud_properties: cloud_properties.to_string(),
        range: text("range")?,
        gateway: text("gateway")?,
        netmask_bits,
    })
}

/// What clients can parse: not too deep for Ruby, not without end.
fn bounded(result: Value, limits: &Limits) -> Result<Value, Failure> {
    let failure = if strict_json::depth(&result) as u64 > limits.result_depth {
        Failure::limit("result_depth", limits.result_depth, "the nesting of the guest's result")
    } else if result.to_string().len() as u64 > limits.result_kib * 1024 {
        Failure::limit("result_kib", limits.result_kib, "the guest's result")
    } else {
        return Ok(result);
    };
    Err(naming(failure, result.get(0).unwrap_or(&result)))
}

/// What was made and is refused must still be found by somebody.
fn naming(failure: Failure, cid: &Value) -> Failure {
    match cid.as_str() {
        Some(cid) => {
            Failure { message: format!("{}; the guest answered `{}`", failure.message, escape(cid, 255)), ..failure }
        }
        None => failure,
    }
}
