//! Values of responses that the guest gets as seals.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const CaptureValue: Entry =
    safeguard("capture-value", "The guest gets a seal in place of a captured value.");
pub(crate) const CaptureUnreadable: Entry = refusal(
    "capture-unreadable",
    "The value to capture cannot be read unambiguously, so the guest could see it.",
    "The operator corrects `place` of the grant's capture, or looks at what the server sends.",
);
pub(crate) const CaptureSize: Entry = refusal(
    "capture-size",
    "The value to capture is longer than 16 KiB, which no credential is.",
    "The operator corrects `place` of the grant's capture.",
);
pub(crate) const CaptureTotal: Entry = refusal(
    "capture-total",
    "The call has captured more values than it may, and each takes memory and time to search for.",
    "The guest's author requests fewer credentials in one call.",
);
pub(crate) const CaptureCost: Entry =
    safeguard("capture-cost", "A captured value costs the same whether or not it equals a known secret.");
pub(crate) const CaptureName: Entry = refusal(
    "capture-name",
    "A capture has an invalid name or the name `agent`, which stands for agent settings in slots.",
    "The operator gives the capture another name.",
);
