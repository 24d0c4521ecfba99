//! The caller's request, and what a guest returns for it.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const JsonDuplicateKey: Entry = refusal(
    "json-duplicate-key",
    "An object of the JSON document has a key twice, and readers differ in which value they use.",
    "The author of the document removes one of them.",
);
pub(crate) const JsonDepth: Entry = refusal(
    "json-depth",
    "The JSON document is nested too deeply to be parsed safely.",
    "The author of the document nests it less deeply.",
);
pub(crate) const JsonMemory: Entry = refusal(
    "json-memory",
    "The JSON document has so many values that parsing it would take too much memory.",
    "The author of the document makes it smaller.",
);
pub(crate) const JsonTrailing: Entry = refusal(
    "json-trailing",
    "Text follows the JSON document, and readers differ in whether they use it.",
    "The author of the document removes what follows it.",
);
pub(crate) const ContextValues: Entry = refusal(
    "context-values",
    "The context of the request holds more than 2,000 properties, and the runtime searches every response for each of them.",
    "The operator makes the cpi-config smaller.",
);
pub(crate) const ApiVersion: Entry = refusal(
    "api-version",
    "The request has an API version that this CPI does not support.",
    "The caller uses a version up to the one that `info` returns.",
);
pub(crate) const Arity: Entry = refusal(
    "arity",
    "The request has more arguments than the method takes in this API version.",
    "The caller sends the arguments of the CPI contract.",
);
pub(crate) const CidForm: Entry = refusal(
    "cid-form",
    "The guest returned a cloud ID that is empty or has control or invisible characters.",
    "The guest's author returns the plain ID of the cloud.",
);
pub(crate) const HintForm: Entry = refusal(
    "hint-form",
    "The guest returned a disk hint with control or invisible characters.",
    "The guest's author returns a plain device path or ID.",
);
pub(crate) const NetworkTwice: Entry = refusal(
    "network-twice",
    "The guest returned a network twice, so one of them would be lost.",
    "The guest's author returns each network once.",
);
pub(crate) const NetworkDecided: Entry = refusal(
    "network-decided",
    "The guest would change addresses that the Director decided, so a VM could take the place of another.",
    "The guest's author leaves these fields as they are; only dynamic networks take addresses from the cloud.",
);
pub(crate) const VmUnreachable: Entry = refusal(
    "vm-unreachable",
    "The guest returned a VM without sending its user-data, so the VM's Agent could never be reached.",
    "The guest's author sends the seal of `agent.bootstrap` to the cloud.",
);
pub(crate) const VmUnregistered: Entry = refusal(
    "vm-unregistered",
    "The guest returned a VM without settings in the registry, so the VM's Agent would find none.",
    "The guest's author calls `agent.created` once the VM exists.",
);
pub(crate) const ExitIsFailure: Entry = refusal(
    "exit-is-failure",
    "The guest ended itself with `exit` instead of returning a result.",
    "The guest's author returns a result or an error.",
);
pub(crate) const GuestErrorPrefix: Entry = safeguard(
    "guest-error-prefix",
    "An error of the guest that starts like one of the runtime is marked as the guest's.",
);
pub(crate) const MessageSize: Entry = safeguard("message-size", "The message of an error is cut to 64 KiB.");
pub(crate) const ResponseLogSize: Entry = safeguard("response-log-size", "The log in a response is cut to 16 KiB.");
pub(crate) const UndoOwn: Entry =
    safeguard("undo-own", "A call whose response was not delivered deletes only what its own requests created.");
