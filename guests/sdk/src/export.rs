//! Implements the generated exports for every [`Cpi`]: installs the panic hook,
//! opens the guest, calls the method and converts the result.

use std::marker::PhantomData;

use crate::bindings::bosh::cpi::types as wire;
use crate::bindings::exports::bosh::cpi::{describe, disks, networks, snapshots, stemcells, vms};
use crate::{Cpi, DiskHint, Error, Json, Metadata, panic};

/// Exports `$guest`, which implements [`Cpi`]. Use it once, in the crate of the
/// guest. In a native build it only checks the type, so that tests link.
#[macro_export]
macro_rules! export_cpi {
    ($guest:ty) => {
        const _: () = $crate::check_guest::<$guest>();

        #[cfg(target_family = "wasm")]
        const _: () = {
            type Exported = $crate::Adapter<$guest>;
    $crate::bindings::export_bindings!(Exported with_types_in $crate::bindings);
        };
    };
}

/// Checks that `T` implements [`Cpi`]. In a native build nothing else uses the
/// guest, and the compiler would warn about dead code.
pub const fn check_guest<T: Cpi>() {}

/// The exports of the guest `T`.
pub struct Adapter<T>(PhantomData<T>);

fn run<T: Cpi, A, B: From<A>>(method: impl FnOnce(T) -> Result<A, Error>) -> Result<B, wire::Error> {
    panic::install();
    T::open().and_then(method).map(B::from).map_err(wire::Error::from)
}

fn properties(text: String) -> Json {
    Json::named("cloud_properties", text)
}

impl<T: Cpi> describe::Guest for Adapter<T> {
    fn describe() -> describe::Description {
        panic::install();
        T::describe()
    }
}

impl<T: Cpi> stemcells::Guest for Adapter<T> {
    fn create_stemcell(cloud_properties: String, tags: Metadata) -> Result<String, wire::Error> {
        run(|cpi: T| cpi.create_stemcell(properties(cloud_properties), tags))
    }
    fn delete_stemcell(stemcell: String) -> Result<(), wire::Error> {
        run(|cpi: T| cpi.delete_stemcell(stemcell))
    }
}

impl<T: Cpi> vms::Guest for Adapter<T> {
    fn create_vm(request: vms::VmRequest) -> Result<vms::CreatedVm, wire::Error> {
        run(|cpi: T| cpi.create_vm(request.into()))
    }
    fn delete_vm(vm: String) -> Result<(), wire::Error> {
        run(|cpi: T| cpi.delete_vm(vm))
    }
    fn has_vm(vm: String) -> Result<bool, wire::Error> {
        run(|cpi: T| cpi.has_vm(vm))
    }
    fn reboot_vm(vm: String) -> Result<(), wire::Error> {
        run(|cpi: T| cpi.reboot_vm(vm))
    }
    fn set_vm_metadata(vm: String, metadata: Metadata) -> Result<(), wire::Error> {
        run(|cpi: T| cpi.set_vm_metadata(vm, metadata))
    }
    fn calculate_vm_cloud_properties(size: vms::VmSize) -> Result<String, wire::Error> {
        run(|cpi: T| cpi.calculate_vm_cloud_properties(size).map(Json::into_text))
    }
}

impl<T: Cpi> disks::Guest for Adapter<T> {
    fn create_disk(size_mib: u64, cloud_properties: String, vm: Option<String>) -> Result<String, wire::Error> {
        run(|cpi: T| cpi.create_disk(size_mib, properties(cloud_properties), vm))
    }
    fn delete_disk(disk: String) -> Result<(), wire::Error> {
        run(|cpi: T| cpi.delete_disk(disk))
    }
    fn has_disk(disk: String) -> Result<bool, wire::Error> {
        run(|cpi: T| cpi.has_disk(disk))
    }
    fn attach_disk(vm: String, disk: String) -> Result<DiskHint, wire::Error> {
        run(|cpi: T| cpi.attach_disk(vm, disk))
    }
    fn detach_disk(vm: String, disk: String) -> Result<(), wire::Error> {
        run(|cpi: T| cpi.detach_disk(vm, disk))
    }
    fn set_disk_metadata(disk: String, metadata: Metadata) -> Result<(), wire::Error> {
        run(|cpi: T| cpi.set_disk_metadata(disk, metadata))
    }
    fn get_disks(vm: String) -> Result<Vec<String>, wire::Error> {
        run(|cpi: T| cpi.get_disks(vm))
    }
    fn resize_disk(disk: String, size_mib: u64) -> Result<(), wire::Error> {
        run(|cpi: T| cpi.resize_disk(disk, size_mib))
    }
    fn update_disk(disk: String, size_mib: u64, cloud_properties: String) -> Result<Option<String>, wire::Error> {
        run(|cpi: T| cpi.update_disk(disk, size_mib, properties(cloud_properties)))
    }
}

impl<T: Cpi> snapshots::Guest for Adapter<T> {
    fn snapshot_disk(disk: String, metadata: Metadata) -> Result<String, wire::Error> {
        run(|cpi: T| cpi.snapshot_disk(disk, metadata))
    }
    fn delete_snapshot(snapshot: String) -> Result<(), wire::Error> {
        run(|cpi: T| cpi.delete_snapshot(snapshot))
    }
}

impl<T: Cpi> networks::Guest for Adapter<T> {
    fn create_network(spec: networks::NetworkSpec) -> Result<networks::CreatedNetwork, wire::Error> {
        run(|cpi: T| cpi.create_network(spec.into()))
    }
    fn delete_network(network: String) -> Result<(), wire::Error> {
        run(|cpi: T| cpi.delete_network(network))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Description, ErrorKind, METHODS, VmSize};

    struct Empty;

    impl Cpi for Empty {
        fn describe() -> Description {
            crate::description("empty", "1", &[], &[])
        }
        fn open() -> Result<Self, Error> {
            Ok(Self)
        }
    }

    struct Broken;

    impl Cpi for Broken {
        fn describe() -> Description {
            crate::description("broken", "1", &["a-raw"], &["has_vm"])
        }
        fn open() -> Result<Self, Error> {
            Err(Error::cpi("properties.region: missing"))
        }
        fn has_vm(&self, _: String) -> Result<bool, Error> {
            Ok(true)
        }
    }

    crate::export_cpi!(Empty);

    #[test]
    fn every_default_method_returns_not_implemented_with_its_own_name() {
        type E = Adapter<Empty>;
        use {disks::Guest as _, networks::Guest as _, snapshots::Guest as _, stemcells::Guest as _, vms::Guest as _};
        let (s, n) = (String::new, Vec::new);
        let request = vms::VmRequest {
            agent_id: s(),
            stemcell: s(),
            cloud_properties: s(),
            networks: vec![],
            disks: vec![],
            env: s(),
        };
        let spec =
            networks::NetworkSpec { kind: s(), cloud_properties: s(), range: None, gateway: None, netmask_bits: None };
        let size = VmSize { ram_mib: 1, cpu: 1, ephemeral_disk_mb: 1 };
        let errors = [
            E::create_stemcell(s(), n()).unwrap_err(),
            E::delete_stemcell(s()).unwrap_err(),
            E::create_vm(request).unwrap_err(),
            E::delete_vm(s()).unwrap_err(),
            E::has_vm(s()).unwrap_err(),
            E::reboot_vm(s()).unwrap_err(),
            E::set_vm_metadata(s(), n()).unwrap_err(),
            E::calculate_vm_cloud_properties(size).unwrap_err(),
            E::create_disk(1, s(), None).unwrap_err(),
            E::delete_disk(s()).unwrap_err(),
            E::has_disk(s()).unwrap_err(),
            E::attach_disk(s(), s()).unwrap_err(),
            E::detach_disk(s(), s()).unwrap_err(),
            E::set_disk_metadata(s(), n()).unwrap_err(),
            E::get_disks(s()).unwrap_err(),
            E::resize_disk(s(), 1).unwrap_err(),
            E::update_disk(s(), 1, s()).unwrap_err(),
            E::snapshot_disk(s(), n()).unwrap_err(),
            E::delete_snapshot(s()).unwrap_err(),
            E::create_network(spec).unwrap_err(),
            E::delete_network(s()).unwrap_err(),
        ];
        for (error, method) in errors.iter().zip(METHODS) {
            assert_eq!(error.kind, ErrorKind::NotImplemented);
            assert_eq!(error.message, format!("this CPI does not implement {method}"));
        }
    }

    #[test]
    fn a_guest_that_cannot_open_returns_its_error() {
        let error = <Adapter<Broken> as vms::Guest>::has_vm(String::new()).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ErrorKind::Cpi, "properties.region: missing"));
        assert_eq!(<Adapter<Broken> as describe::Guest>::describe().stemcell_formats, ["a-raw"]);
    }
}
