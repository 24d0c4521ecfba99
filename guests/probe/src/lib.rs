//! A CPI without a cloud, for tests. It derives plausible results of all methods
//! from their arguments (`lifecycle`). If the arguments hold a script, it runs the
//! script instead (`script`, `runner`, `ops`) and returns what happened (`answer`),
//! so that an attack on the runtime is a row of data. README.md is its manual.

mod answer;
mod cids;
mod encoding;
mod garbage;
mod lifecycle;
mod memory;
mod ops;
mod runner;
mod script;
mod template;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use wasm_cpi_sdk::{
    Cid, Cpi, CreatedNetwork, CreatedVm, Description, DiskHint, Error, Json, METHODS, Metadata, NetworkSpec, VmRequest,
    VmSize, description,
};

use answer::Answer;
use script::{Script, in_cid, in_env, in_metadata, in_object, in_properties};

wasm_cpi_sdk::needs!(include_str!("../needs.json"));
wasm_cpi_sdk::export_cpi!(Probe);

struct Probe;

/// Runs the script, if there is one. `args` are the values of `{{args…}}`.
fn run_script(script: Option<Script>, args: impl FnOnce() -> Value) -> Result<Option<Answer>, Error> {
    script.map(|script| runner::run(script, args())).transpose()
}

impl Cpi for Probe {
    fn describe() -> Description {
        description("probe", env!("CARGO_PKG_VERSION"), &["probe-raw"], &METHODS)
    }

    fn open() -> Result<Self, Error> {
        Ok(Self)
    }

    fn create_stemcell(&self, cloud_properties: Json, tags: Metadata) -> Result<Cid, Error> {
        let script = in_object(&cloud_properties)?.or(in_metadata(&tags)?);
        match run_script(script, || json!({"cloud_properties": script::value_of(&cloud_properties), "tags": tags}))? {
            Some(answer) => answer.cid(),
            None => lifecycle::create_stemcell(),
        }
    }

    fn delete_stemcell(&self, stemcell: Cid) -> Result<(), Error> {
        match run_script(in_cid(&stemcell), || json!({"stemcell": stemcell}))? {
            Some(answer) => answer.nothing(),
            None => lifecycle::delete_stemcell(&stemcell),
        }
    }

    fn create_vm(&self, request: VmRequest) -> Result<CreatedVm, Error> {
        let in_cids = || std::iter::once(&request.stemcell).chain(&request.disks).find_map(|cid| in_cid(cid));
        let script = in_object(&request.cloud_properties)?.or(in_env(&request.env)?).or_else(in_cids);
        match run_script(script, || lifecycle::vm_arguments(&request))? {
            Some(answer) => answer.vm(request.networks),
            None => lifecycle::create_vm(request),
        }
    }

    fn delete_vm(&self, vm: Cid) -> Result<(), Error> {
        match run_script(in_cid(&vm), || json!({"vm": vm}))? {
            Some(answer) => answer.nothing(),
            None => lifecycle::delete_vm(&vm),
        }
    }

    fn has_vm(&self, vm: Cid) -> Result<bool, Error> {
        match run_script(in_cid(&vm), || json!({"vm": vm}))? {
            Some(answer) => answer.boolean(),
            None => Ok(cids::VM.accepts(&vm)),
        }
    }

    fn reboot_vm(&self, vm: Cid) -> Result<(), Error> {
        match run_script(in_cid(&vm), || json!({"vm": vm}))? {
            Some(answer) => answer.nothing(),
            None => lifecycle::known_vm(&vm),
        }
    }

    fn set_vm_metadata(&self, vm: Cid, metadata: Metadata) -> Result<(), Error> {
        match run_script(in_metadata(&metadata)?.or_else(|| in_cid(&vm)), || json!({"vm": vm, "metadata": metadata}))? {
            Some(answer) => answer.nothing(),
            None => lifecycle::known_vm(&vm),
        }
    }

    fn calculate_vm_cloud_properties(&self, size: VmSize) -> Result<Json, Error> {
        let args = || json!({"ram_mib": size.ram_mib, "cpu": size.cpu, "ephemeral_disk_mb": size.ephemeral_disk_mb});
        match run_script(in_properties()?, args)? {
            Some(answer) => answer.json(),
            None => Ok(lifecycle::vm_cloud_properties(size)),
        }
    }

    fn create_disk(&self, size_mib: u64, cloud_properties: Json, vm: Option<Cid>) -> Result<Cid, Error> {
        let script = in_object(&cloud_properties)?.or_else(|| vm.as_deref().and_then(in_cid));
        let args = || json!({"size_mib": size_mib, "cloud_properties": script::value_of(&cloud_properties), "vm": vm});
        match run_script(script, args)? {
            Some(answer) => answer.cid(),
            None => lifecycle::create_disk(size_mib),
        }
    }

    fn delete_disk(&self, disk: Cid) -> Result<(), Error> {
        match run_script(in_cid(&disk), || json!({"disk": disk}))? {
            Some(answer) => answer.nothing(),
            None => lifecycle::known_disk(&disk),
        }
    }

    fn has_disk(&self, disk: Cid) -> Result<bool, Error> {
        match run_script(in_cid(&disk), || json!({"disk": disk}))? {
            Some(answer) => answer.boolean(),
            None => Ok(cids::DISK.accepts(&disk)),
        }
    }

    fn attach_disk(&self, vm: Cid, disk: Cid) -> Result<DiskHint, Error> {
        match run_script(in_cid(&vm).or_else(|| in_cid(&disk)), || json!({"vm": vm, "disk": disk}))? {
            Some(answer) => answer.hint(),
            None => lifecycle::attach_disk(&vm, &disk),
        }
    }

    fn detach_disk(&self, vm: Cid, disk: Cid) -> Result<(), Error> {
        match run_script(in_cid(&vm).or_else(|| in_cid(&disk)), || json!({"vm": vm, "disk": disk}))? {
            Some(answer) => answer.nothing(),
            None => lifecycle::detach_disk(&vm, &disk),
        }
    }

    fn set_disk_metadata(&self, disk: Cid, metadata: Metadata) -> Result<(), Error> {
        let script = in_metadata(&metadata)?.or_else(|| in_cid(&disk));
        match run_script(script, || json!({"disk": disk, "metadata": metadata}))? {
            Some(answer) => answer.nothing(),
            None => lifecycle::known_disk(&disk),
        }
    }

    fn get_disks(&self, vm: Cid) -> Result<Vec<Cid>, Error> {
        match run_script(in_cid(&vm), || json!({"vm": vm}))? {
            Some(answer) => answer.cids(),
            None => lifecycle::known_vm(&vm).map(|()| vec![]),
        }
    }

    fn resize_disk(&self, disk: Cid, size_mib: u64) -> Result<(), Error> {
        match run_script(in_cid(&disk), || json!({"disk": disk, "size_mib": size_mib}))? {
            Some(answer) => answer.nothing(),
            None => lifecycle::resize_disk(&disk, size_mib),
        }
    }

    fn update_disk(&self, disk: Cid, size_mib: u64, cloud_properties: Json) -> Result<Option<Cid>, Error> {
        let script = in_object(&cloud_properties)?.or_else(|| in_cid(&disk));
        let args =
            || json!({"disk": disk, "size_mib": size_mib, "cloud_properties": script::value_of(&cloud_properties)});
        match run_script(script, args)? {
            Some(answer) => answer.optional_cid(),
            None => lifecycle::resize_disk(&disk, size_mib).map(|()| None),
        }
    }

    fn snapshot_disk(&self, disk: Cid, metadata: Metadata) -> Result<Cid, Error> {
        let script = in_metadata(&metadata)?.or_else(|| in_cid(&disk));
        match run_script(script, || json!({"disk": disk, "metadata": metadata}))? {
            Some(answer) => answer.cid(),
            None => lifecycle::snapshot_disk(&disk),
        }
    }

    fn delete_snapshot(&self, snapshot: Cid) -> Result<(), Error> {
        match run_script(in_cid(&snapshot), || json!({"snapshot": snapshot}))? {
            Some(answer) => answer.nothing(),
            None => lifecycle::delete_snapshot(&snapshot),
        }
    }

    fn create_network(&self, spec: NetworkSpec) -> Result<CreatedNetwork, Error> {
        let args = || json!({"cloud_properties": script::value_of(&spec.cloud_properties), "range": spec.range});
        match run_script(in_object(&spec.cloud_properties)?, args)? {
            Some(answer) => answer.network(),
            None => Ok(lifecycle::create_network(spec)),
        }
    }

    fn delete_network(&self, network: Cid) -> Result<(), Error> {
        match run_script(in_cid(&network), || json!({"network": network}))? {
            Some(answer) => answer.nothing(),
            None => lifecycle::delete_network(&network),
        }
    }
}
