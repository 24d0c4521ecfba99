//! The methods of the contract by name.

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

/// What a method name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    Known(Method),
    /// Deprecated; its document recommends to answer not-supported.
    ConfigureNetworks,
    /// Not in the contract, or (`ping`, `current_vm_id`) no longer.
    Unknown,
}

impl Named {
    pub fn from_name(name: &str) -> Named {
        if name == "configure_networks" {
            return Named::ConfigureNetworks;
        }
        Method::ALL.iter().find(|method| method.name() == name).map_or(Named::Unknown, |method| Named::Known(*method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_by_its_name() {
        for method in Method::ALL {
            assert_eq!(Named::from_name(method.name()), Named::Known(*method));
        }
    }

    #[test]
    fn retired_and_foreign_names_are_unknown() {
        for name in ["ping", "current_vm_id", "__proto__", "../info", "", "Info"] {
            assert_eq!(Named::from_name(name), Named::Unknown, "{name}");
        }
    }
}
