//! The trait that a guest implements: every method of the CPI contract, in its
//! most complete form. The runtime adapts arguments and results to the API
//! version of each caller.

use crate::{
    Cid, CreatedNetwork, CreatedVm, Description, DiskHint, Error, Json, Metadata, NetworkSpec, VmRequest, VmSize,
};

/// The names of all methods, in the spelling of [`Description::methods`].
pub const METHODS: [&str; 21] = [
    "create_stemcell",
    "delete_stemcell",
    "create_vm",
    "delete_vm",
    "has_vm",
    "reboot_vm",
    "set_vm_metadata",
    "calculate_vm_cloud_properties",
    "create_disk",
    "delete_disk",
    "has_disk",
    "attach_disk",
    "detach_disk",
    "set_disk_metadata",
    "get_disks",
    "resize_disk",
    "update_disk",
    "snapshot_disk",
    "delete_snapshot",
    "create_network",
    "delete_network",
];

/// Returns a [`Description`] from literals.
pub fn description(name: &str, version: &str, stemcell_formats: &[&str], methods: &[&str]) -> Description {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Description {
        name: name.to_owned(),
        version: version.to_owned(),
        stemcell_formats: owned(stemcell_formats),
        methods: owned(methods),
    }
}

fn not_implemented<T>(method: &str) -> Result<T, Error> {
    Err(Error::not_implemented(method))
}

/// A BOSH CPI. Every method except `describe` and `open` has a default that
/// returns [`Error::not_implemented`].
///
/// ```
/// use serde::Deserialize;
/// use serde_json::json;
/// use wasm_cpi_sdk::fake::{Answer, Fake};
/// use wasm_cpi_sdk::{Cid, Cpi, Description, Error, config, description, http};
///
/// #[derive(Deserialize)]
/// struct Mycloud {
///     api_url: String,
/// }
///
/// impl Cpi for Mycloud {
///     fn describe() -> Description {
///         description("mycloud", "1.0.0", &["mycloud-raw"], &["has_vm"])
///     }
///
///     fn open() -> Result<Self, Error> {
///         config::properties()
///     }
///
///     fn has_vm(&self, vm: Cid) -> Result<bool, Error> {
///         let url = format!("{}/servers/{}", self.api_url, http::segment(&vm));
///         Ok(http::get(url).retries(3).send()?.found()?.is_some())
///     }
/// }
///
/// // A test: the fake is the host and the cloud.
/// let _host = Fake::new()
///     .properties(json!({"api_url": "https://cloud.example"}))
///     .on("GET", "https://cloud.example/servers/vm-1", Answer::json(200, json!({"id": "vm-1"})))
///     .on("GET", "https://cloud.example/servers/vm-2", Answer::text(404, ""))
///     .install();
/// let cpi = Mycloud::open().unwrap();
/// assert!(cpi.has_vm("vm-1".into()).unwrap());
/// assert!(!cpi.has_vm("vm-2".into()).unwrap());
/// ```
#[expect(unused_variables, reason = "the defaults ignore their arguments, whose names are documentation")]
pub trait Cpi: Sized {
    /// Returns the description of the guest. The runtime calls it once, when it
    /// prepares the guest. Meanwhile it denies `http`, `agent`, `registry` and
    /// `image`, `log` writes nothing, and `config` returns empty values. Methods
    /// that are not listed never reach the guest.
    fn describe() -> Description;

    /// Opens the CPI. It is called before each method, and is the place to read
    /// [`crate::config::properties`].
    fn open() -> Result<Self, Error>;

    /// Creates a stemcell from the image of this call (see [`crate::image`]) and
    /// returns its cloud ID. `tags` is empty if the caller's API version is
    /// below 3.
    fn create_stemcell(&self, cloud_properties: Json, tags: Metadata) -> Result<Cid, Error> {
        not_implemented("create_stemcell")
    }

    /// Deletes a stemcell. Returns [`Error::stemcell_not_found`] if it does not
    /// exist.
    fn delete_stemcell(&self, stemcell: Cid) -> Result<(), Error> {
        not_implemented("delete_stemcell")
    }

    /// Creates a VM and waits until it runs. It must send the seal of
    /// [`crate::agent::bootstrap`] to the cloud, and delete what it created if it
    /// fails.
    fn create_vm(&self, request: VmRequest) -> Result<CreatedVm, Error> {
        not_implemented("create_vm")
    }

    /// Deletes a VM, but none of its disks. Returns [`Error::vm_not_found`] if it
    /// does not exist.
    fn delete_vm(&self, vm: Cid) -> Result<(), Error> {
        not_implemented("delete_vm")
    }

    /// Returns true if the VM exists.
    fn has_vm(&self, vm: Cid) -> Result<bool, Error> {
        not_implemented("has_vm")
    }

    /// Restarts a VM.
    fn reboot_vm(&self, vm: Cid) -> Result<(), Error> {
        not_implemented("reboot_vm")
    }

    /// Adds metadata to a VM.
    fn set_vm_metadata(&self, vm: Cid, metadata: Metadata) -> Result<(), Error> {
        not_implemented("set_vm_metadata")
    }

    /// Returns the `cloud_properties` of the smallest VM that has at least this
    /// size.
    fn calculate_vm_cloud_properties(&self, size: VmSize) -> Result<Json, Error> {
        not_implemented("calculate_vm_cloud_properties")
    }

    /// Creates a disk and returns its cloud ID. `vm` is the VM that the Director
    /// will probably attach the disk to.
    fn create_disk(&self, size_mib: u64, cloud_properties: Json, vm: Option<Cid>) -> Result<Cid, Error> {
        not_implemented("create_disk")
    }

    /// Deletes a disk. Returns [`Error::disk_not_found`] if it does not exist.
    fn delete_disk(&self, disk: Cid) -> Result<(), Error> {
        not_implemented("delete_disk")
    }

    /// Returns true if the disk exists.
    fn has_disk(&self, disk: Cid) -> Result<bool, Error> {
        not_implemented("has_disk")
    }

    /// Attaches a disk to a VM and returns how the Agent finds it there.
    fn attach_disk(&self, vm: Cid, disk: Cid) -> Result<DiskHint, Error> {
        not_implemented("attach_disk")
    }

    /// Detaches a disk from a VM.
    fn detach_disk(&self, vm: Cid, disk: Cid) -> Result<(), Error> {
        not_implemented("detach_disk")
    }

    /// Adds metadata to a disk.
    fn set_disk_metadata(&self, disk: Cid, metadata: Metadata) -> Result<(), Error> {
        not_implemented("set_disk_metadata")
    }

    /// Returns the persistent disks that are attached to a VM.
    fn get_disks(&self, vm: Cid) -> Result<Vec<Cid>, Error> {
        not_implemented("get_disks")
    }

    /// Changes the size of a disk. Returns [`Error::not_supported`] if the cloud
    /// cannot do that in place.
    fn resize_disk(&self, disk: Cid, size_mib: u64) -> Result<(), Error> {
        not_implemented("resize_disk")
    }

    /// Changes the size and the `cloud_properties` of a disk. Returns the new
    /// cloud ID if the disk has another one afterwards, and
    /// [`Error::not_supported`] if the cloud cannot do that in place.
    fn update_disk(&self, disk: Cid, size_mib: u64, cloud_properties: Json) -> Result<Option<Cid>, Error> {
        not_implemented("update_disk")
    }

    /// Takes a snapshot of a disk and returns the cloud ID of the snapshot.
    fn snapshot_disk(&self, disk: Cid, metadata: Metadata) -> Result<Cid, Error> {
        not_implemented("snapshot_disk")
    }

    /// Deletes a snapshot.
    fn delete_snapshot(&self, snapshot: Cid) -> Result<(), Error> {
        not_implemented("delete_snapshot")
    }

    /// Creates a network with one subnet.
    fn create_network(&self, spec: NetworkSpec) -> Result<CreatedNetwork, Error> {
        not_implemented("create_network")
    }

    /// Deletes a network. Returns [`Error::network_not_found`] if it does not
    /// exist.
    fn delete_network(&self, network: Cid) -> Result<(), Error> {
        not_implemented("delete_network")
    }
}
