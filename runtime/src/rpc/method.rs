//! The methods of the CPI contract, and their names.

macro_rules! methods {
    ($($variant:ident $name:literal;)*) => {
        /// A CPI method that a guest implements, or `info`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Method { $($variant,)* }

        impl Method {
            pub const ALL: &[Method] = &[$(Method::$variant,)*];

            pub fn name(self) -> &'static str {
                match self { $(Method::$variant => $name,)* }
            }
        }
    };
}

methods! {
    Info "info";
    CreateStemcell "create_stemcell";
    DeleteStemcell "delete_stemcell";
    CreateVm "create_vm";
    DeleteVm "delete_vm";
    HasVm "has_vm";
    RebootVm "reboot_vm";
    SetVmMetadata "set_vm_metadata";
    CalculateVmCloudProperties "calculate_vm_cloud_properties";
    CreateDisk "create_disk";
    DeleteDisk "delete_disk";
    HasDisk "has_disk";
    AttachDisk "attach_disk";
    DetachDisk "detach_disk";
    SetDiskMetadata "set_disk_metadata";
    GetDisks "get_disks";
    ResizeDisk "resize_disk";
    UpdateDisk "update_disk";
    SnapshotDisk "snapshot_disk";
    DeleteSnapshot "delete_snapshot";
    CreateNetwork "create_network";
    DeleteNetwork "delete_network";
}

/// The meaning of the name of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodName {
    Known(Method),
    /// A deprecated method. Its documentation recommends the error `NotSupported`.
    ConfigureNetworks,
    /// A name that is not part of the contract, or no longer is (`ping`, `current_vm_id`).
    Unknown,
}

impl MethodName {
    pub fn parse(name: &str) -> MethodName {
        if name == "configure_networks" {
            return MethodName::ConfigureNetworks;
        }
        Method::ALL
            .iter()
            .find(|method| method.name() == name)
            .map_or(MethodName::Unknown, |method| MethodName::Known(*method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_name() {
        for method in Method::ALL {
            assert_eq!(MethodName::parse(method.name()), MethodName::Known(*method));
        }
    }

    #[test]
    fn removed_and_other_names_are_unknown() {
        for name in ["ping", "current_vm_id", "__proto__", "../info", "", "Info"] {
            assert_eq!(MethodName::parse(name), MethodName::Unknown, "{name}");
        }
    }
}
