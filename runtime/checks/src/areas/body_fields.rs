//! What a grant's `fields` demand of the body, the query and the headers of a request.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const FieldAbsent: Entry = refusal(
    "field-absent",
    "The request has a field that the grant's `fields` forbid.",
    "The guest's author leaves the field out, or the operator changes `fields` of the grant.",
);
pub(crate) const FieldValue: Entry = refusal(
    "field-value",
    "A field of the request has a value that the grant's `fields` do not allow.",
    "The guest's author sends an allowed value, or the operator changes `fields` of the grant.",
);
pub(crate) const FieldRequired: Entry = refusal(
    "field-required",
    "The request lacks a field that the grant's `fields` require, so the server would use its own default.",
    "The guest's author sends the field, or the operator removes `required` from it.",
);
pub(crate) const FieldOthers: Entry = refusal(
    "field-others",
    "The request has a field that the grant's `fields` do not list, and they deny all others.",
    "The operator lists the field, if the guest should send it.",
);
pub(crate) const FieldQuery: Entry = refusal(
    "field-query",
    "Servers could read a query parameter as a field of the body, or the reverse, and the grant's `fields` judge it.",
    "The guest's author sends the parameter in the body, or the operator lists it as `query:NAME`.",
);
pub(crate) const FieldAlike: Entry = refusal(
    "field-alike",
    "A name is not printable ASCII, or is another one in another spelling, so servers could read it as that one.",
    "The guest's author writes names exactly as the API documents them, and each once.",
);
pub(crate) const FieldList: Entry = refusal(
    "field-list",
    "The JSON has a list where the grant's `fields` limit a key of an object, and servers could read its elements there.",
    "The guest's author sends the object itself.",
);
pub(crate) const FieldTwice: Entry = refusal(
    "field-twice",
    "A field occurs twice in the form, the query or the headers, so it is unclear which one the server uses.",
    "The guest's author sends the field once.",
);
pub(crate) const FieldName: Entry = refusal(
    "field-name",
    "The name of a field is not in canonical form, such as `Filter.01` for `Filter.1`, which servers can read as one.",
    "The guest's author writes names of letters, digits and `_`, and numbers without leading zeros.",
);
pub(crate) const FieldNumber: Entry = refusal(
    "field-number",
    "The JSON holds a number of 2^53 or more, which parsers round differently.",
    "The guest's author sends such a number as a string.",
);
pub(crate) const FieldBody: Entry = refusal(
    "field-body",
    "The grant's `fields` judge the body, and the body is not a JSON object or a form that can be judged.",
    "The guest's author sends the body as the grant demands, or the operator removes `fields`.",
);
pub(crate) const FieldOperation: Entry = refusal(
    "field-operation",
    "A grant limits the fields of its operations, and it is uncertain whether the request names one of these.",
    "The guest's author names one operation, exactly as the API documents it, with the Content-Type of the body.",
);
pub(crate) const FieldSerialised: Entry = safeguard(
    "field-serialised",
    "Where `fields` apply, the server gets the host's own serialisation of what was judged, and its Content-Type.",
);
