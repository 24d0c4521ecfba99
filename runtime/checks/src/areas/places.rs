//! Reading and writing single values of messages. What two readers could understand
//! differently is refused.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const PlaceHidden: Entry = refusal(
    "place-hidden",
    "A place has control or invisible characters, which people cannot see when they review or paste it.",
    "The author of the file removes them.",
);
pub(crate) const PlaceAlike: Entry = refusal(
    "place-alike",
    "Other readers could find the value elsewhere: under a similar name, behind a `;`, or after decoding.",
    "The guest's author sends the value once, under one name, in a body without Content-Encoding.",
);
pub(crate) const PlaceOnce: Entry = refusal(
    "place-once",
    "A value occurs more than once, so it is unclear which one the server uses.",
    "The sender of the message sends the value once.",
);
pub(crate) const PlaceElement: Entry =
    safeguard("place-element", "An element that a slot names by its path is found at this path only.");
pub(crate) const PlaceType: Entry = refusal(
    "place-type",
    "The Content-Type is not exactly the one that the place needs, so the server could read the body differently.",
    "The guest's author sends the Content-Type of the body and nothing else, or the operator corrects the place.",
);
pub(crate) const XmlDoctype: Entry = refusal(
    "xml-doctype",
    "The XML has a document type or processing instructions, which can change its content.",
    "The guest's author sends XML without them.",
);
pub(crate) const PartEncoding: Entry = refusal(
    "part-encoding",
    "A part of the multipart form has a transfer encoding, which servers decode or ignore.",
    "The guest's author sends the part as it is.",
);
pub(crate) const PartFile: Entry = refusal(
    "part-file",
    "The part of the multipart form has a filename, so servers take it for an uploaded file.",
    "The guest's author sends the part without a filename.",
);
pub(crate) const PlaceCharset: Entry = refusal(
    "place-charset",
    "The Content-Type names a charset other than UTF-8, in which the server would see other values.",
    "The guest's author sends the body in UTF-8.",
);
pub(crate) const PlaceForm: Entry = refusal(
    "place-form",
    "The form is not properly urlencoded, so servers read its fields differently.",
    "The guest's author encodes the form with a library.",
);
pub(crate) const PlaceUnwritable: Entry = refusal(
    "place-unwritable",
    "The secret holds characters that would end its place, so it could change the rest of the request.",
    "The operator corrects the secret, or chooses a place that can hold it.",
);
pub(crate) const JsonExact: Entry = refusal(
    "json-exact",
    "The JSON beside a slot holds a number that would change when the body is written again.",
    "The guest's author sends such a number as a string.",
);
pub(crate) const HostBoundary: Entry =
    safeguard("host-boundary", "The host chooses the boundary of a multipart form in which it fills a slot.");
