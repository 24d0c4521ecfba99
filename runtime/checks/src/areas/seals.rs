//! Seals: what stands for a secret in a guest, and where it becomes the secret.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const SealedProperties: Entry =
    safeguard("sealed-properties", "The guest gets a seal in place of each property that is not exposed.");
pub(crate) const SealedEnv: Entry =
    safeguard("sealed-env", "The guest sees no more of a VM's env than the Director logs.");
pub(crate) const SealedAgent: Entry = safeguard("sealed-agent", "The guest gets a seal in place of agent settings.");
pub(crate) const AgentSize: Entry = refusal(
    "agent-size",
    "The agent settings of the VM are larger than the platform or the registry accepts.",
    "The operator makes the VM's `env`, networks or the config's `agent` smaller, or raises the limit that is named.",
);
pub(crate) const AgentReserve: Entry = refusal(
    "agent-reserve",
    "The guest adds more than 4 KiB to agent settings.",
    "The guest's author shortens names, hints and routes, or adds fewer of them.",
);
pub(crate) const AgentBootstraps: Entry = refusal(
    "agent-bootstraps",
    "The guest calls `agent.bootstrap` more than eight times, and the host keeps the user-data of each.",
    "The guest's author calls it once, and again only for a VM with another name.",
);
pub(crate) const AgentMarker: Entry = refusal(
    "agent-marker",
    "What the guest adds to the agent settings contains their marker, which would hide where they begin and end.",
    "The guest's author removes the marker from names, hints and routes.",
);
pub(crate) const AgentEncodings: Entry = refusal(
    "agent-encodings",
    "The guest asks for agent settings with an encoding twice, or with two kinds of base64.",
    "The guest's author names each encoding once, and at most one kind of base64.",
);
pub(crate) const AgentText: Entry = safeguard(
    "agent-text",
    "What a guest adds to agent settings is written so that no server reads it as syntax of a form, URL or markup.",
);
pub(crate) const SealedRegistry: Entry =
    safeguard("sealed-registry", "The guest gets seals in place of secrets in registry settings.");
pub(crate) const ExposedCredential: Entry =
    safeguard("exposed-credential", "What looks like a credential below an exposed property stays sealed.");
pub(crate) const SealInUrl: Entry = refusal(
    "seal-in-url",
    "The URL holds a seal, and servers and proxies log URLs.",
    "The guest's author sends the seal in a slot.",
);
pub(crate) const SealOutsideSlot: Entry = refusal(
    "seal-outside-slot",
    "The request holds a seal in a place for which the grant has no slot.",
    "The operator adds a slot for this method, path and place, if the seal belongs there.",
);
pub(crate) const SealTransformed: Entry = refusal(
    "seal-transformed",
    "The request holds a seal that was encoded, cut or changed, so it cannot be replaced by its secret.",
    "The guest's author sends the seal unchanged, as the complete value of its slot.",
);
pub(crate) const SealHalves: Entry = safeguard("seal-halves", "Half of a seal is recognised as a changed seal.");
pub(crate) const SealCase: Entry = safeguard("seal-case", "A seal in other case is recognised as a changed seal.");
pub(crate) const SealPerPlace: Entry =
    safeguard("seal-per-place", "Each sealed value has its own seal, so that a guest cannot compare secrets.");
pub(crate) const SlotSpot: Entry =
    safeguard("slot-spot", "A slot is used only for its own method, path and operation.");
pub(crate) const SlotTakes: Entry = refusal(
    "slot-takes",
    "The slot takes other secrets than the one that the seal stands for.",
    "The operator adds the secret to `takes` of the slot, if it belongs there.",
);
pub(crate) const SlotHeader: Entry = refusal(
    "slot-header",
    "A header that is a slot holds something other than a seal, so the guest would choose a credential.",
    "The guest's author sends the seal in this header, or leaves the header out.",
);
pub(crate) const SecretSendable: Entry = refusal(
    "secret-sendable",
    "A property has characters that cannot be written where the policy sends it.",
    "The operator corrects the property, or sends it in another place.",
);
