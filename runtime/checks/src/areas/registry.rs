//! Agent settings in the registry.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const RegistryIds: Entry = refusal(
    "registry-ids",
    "The guest uses the settings of an instance that does not belong to the call.",
    "The operator adds a pattern to `registry.keys` of the policy, if the guest should use them.",
);
pub(crate) const RegistryIdForm: Entry = refusal(
    "registry-id-form",
    "The instance ID has characters that could change the URL of the registry.",
    "The guest's author uses 1 to 255 letters, digits, `.`, `_`, `:` and `-`.",
);
pub(crate) const RegistryCreateOnly: Entry = refusal(
    "registry-create-only",
    "The registry already has settings for the ID, and `create_vm` must not overwrite those of another VM.",
    "The operator deletes the settings in the registry, if no VM uses them.",
);
pub(crate) const RegistryOwnWrites: Entry = refusal(
    "registry-own-writes",
    "`create_vm` would change settings that it did not write.",
    "The guest's author changes only the settings of the new VM.",
);
pub(crate) const RegistryChangeable: Entry = refusal(
    "registry-changeable",
    "The guest would change settings other than disks and networks, which hold the VM's secrets.",
    "The guest's author writes these settings back as they were read.",
);
pub(crate) const RegistryShapes: Entry = refusal(
    "registry-shapes",
    "The guest would write disks or networks that the Agent cannot read, and the Agent would stop.",
    "The guest's author writes them as the message says.",
);
pub(crate) const RegistryValues: Entry = refusal(
    "registry-values",
    "A part of the settings in the registry has more than 2,000 values, and the runtime searches every response for each of them.",
    "The guest's author writes fewer disks, or the operator corrects the settings in the registry.",
);
pub(crate) const RegistryUndo: Entry =
    safeguard("registry-undo", "The settings of a VM that was not created after all are deleted.");
