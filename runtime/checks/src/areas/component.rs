//! The guest's file, and the process that compiles it.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const Pin: Entry = refusal(
    "pin",
    "The guest's file is not the one whose sha256 the config pins.",
    "The operator installs the pinned file, or changes `guest.sha256` if the new file is trusted.",
);
pub(crate) const Signature: Entry = refusal(
    "signature",
    "Too few of the configured keys have signed the guest.",
    "The operator adds the missing signatures to the file that the message names.",
);
pub(crate) const SignatureKey: Entry = refusal(
    "signature-key",
    "A configured public key is one with which anyone can make valid signatures.",
    "The operator asks the signer for a real key.",
);
pub(crate) const SignatureTwice: Entry = refusal(
    "signature-twice",
    "A public key is listed twice, so one signer would count as two.",
    "The operator lists each key once.",
);
pub(crate) const Imports: Entry = refusal(
    "imports",
    "The guest imports an interface that the runtime does not offer to a CPI.",
    "The guest's author builds the guest with the SDK of this runtime, without that import.",
);
pub(crate) const NeedsTwice: Entry = refusal(
    "needs-twice",
    "The guest has two needs sections, so tools could show another one than the runtime uses.",
    "The guest's author builds the guest with one needs section.",
);
pub(crate) const NeedsSize: Entry = refusal(
    "needs-size",
    "The guest's needs are longer than 64 KiB.",
    "The guest's author declares patterns instead of single paths.",
);
pub(crate) const MultiMemory: Entry = refusal(
    "multi-memory",
    "A core module of the guest has several memories, which no guest needs.",
    "The guest's author builds the guest without the WebAssembly proposal multi-memory.",
);
pub(crate) const DescriptionForm: Entry = refusal(
    "description-form",
    "The name, version, formats or methods that the guest's `describe` returns could mislead readers of logs.",
    "The guest's author returns plain values, as the message says.",
);
pub(crate) const DescribeTime: Entry = safeguard("describe-time", "The guest's `describe` ends after ten seconds.");
pub(crate) const ChildUser: Entry =
    safeguard("child-user", "A compiling process that was started by root becomes the user nobody.");
pub(crate) const ChildEnvironment: Entry =
    safeguard("child-environment", "The compiling process has no environment variables.");
pub(crate) const ChildPrivileges: Entry =
    safeguard("child-privileges", "The compiling process cannot get new privileges.");
pub(crate) const ChildAnswer: Entry = safeguard(
    "child-answer",
    "The compiling process's answer is read only up to a bound, because a guest's code ran in that process.",
);
pub(crate) const EngineMemory64: Entry =
    safeguard("engine-memory64", "The engine rejects modules with 64-bit memories.");
pub(crate) const EngineProposals: Entry =
    safeguard("engine-proposals", "The engine rejects other WebAssembly proposals that guests do not need.");
