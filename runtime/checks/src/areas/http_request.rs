//! The method, the headers and the query of a guest's request.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const MethodKnown: Entry = refusal(
    "method-known",
    "The HTTP method is not one of the seven that can be granted, in upper case.",
    "The guest's author uses GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.",
);
pub(crate) const HeaderFraming: Entry = refusal(
    "header-framing",
    "The request sets a header that frames or routes messages, with which it could smuggle a second request.",
    "The guest's author leaves the header out: the host sets it.",
);
pub(crate) const HeaderValue: Entry = refusal(
    "header-value",
    "The value of a header holds control characters, which could start another header or request.",
    "The guest's author removes or encodes them.",
);
pub(crate) const HeaderOverride: Entry = refusal(
    "header-override",
    "The request sets a header that makes servers take it for another request than the policy judged.",
    "The guest's author leaves the header out.",
);
pub(crate) const MethodParameter: Entry = refusal(
    "method-parameter",
    "The query or body holds `_method`, which makes servers take the request for one with another method.",
    "The guest's author uses the method itself.",
);
pub(crate) const HeaderUnderscore: Entry = safeguard(
    "header-underscore",
    "A header with `_` or `.` in place of `-` counts as the same header, as servers read it.",
);
pub(crate) const HeaderAuthorization: Entry = refusal(
    "header-authorization",
    "The guest sets the Authorization header, but credentials are the policy's.",
    "The operator sets `auth` or a slot in the grant, and the guest's author leaves the header out.",
);
pub(crate) const HeaderOfAuth: Entry = refusal(
    "header-of-auth",
    "The guest sets the header that the grant's `auth` sets, so the server could read the wrong one.",
    "The guest's author leaves the header out.",
);
pub(crate) const HeaderCredentials: Entry = refusal(
    "header-credentials",
    "The guest sends credentials of its own in a header, where the grant sends secrets.",
    "The guest's author leaves the header out.",
);
pub(crate) const HeaderEncodingRange: Entry = refusal(
    "header-encoding-range",
    "The request asks for an encoded or partial response, and such a response cannot be searched for secrets.",
    "The guest's author leaves out Accept-Encoding, Range and similar headers.",
);
pub(crate) const HeaderCharset: Entry = refusal(
    "header-charset",
    "The request asks for a response in a certain charset, in which secrets would not be recognised.",
    "The guest's author leaves out Accept-Charset, and `charset` in Accept: responses are in UTF-8.",
);
pub(crate) const HeaderAccept: Entry = refusal(
    "header-accept",
    "The request asks a cleaned origin for a special form of the response, in which hidden places could be elsewhere.",
    "The guest's author asks for `application/json` or `application/xml` without parameters.",
);
pub(crate) const ReadBody: Entry = refusal(
    "read-body",
    "A GET, HEAD or OPTIONS has a body, with which servers could filter by hidden values.",
    "The guest's author sends the parameters in the query, or the operator lists the body in `fields` that deny others.",
);
pub(crate) const QueryHidden: Entry = refusal(
    "query-hidden",
    "A parameter has the name of a field that is hidden in responses, and servers could filter by its values.",
    "The guest's author leaves the parameter out, or the operator lists it under `query` of the grant.",
);
pub(crate) const HeaderConditional: Entry = refusal(
    "header-conditional",
    "The request sets an `If-*` header, with which a guest could compare hidden values of the server.",
    "The guest's author leaves the header out, or compares with `*`.",
);
pub(crate) const SignedHeader: Entry = refusal(
    "signed-header",
    "The guest sets a header of the signing protocol, which would have the authority of the host's signature.",
    "The guest's author leaves the header out; only headers that describe the body are accepted.",
);
pub(crate) const SignedParameter: Entry = refusal(
    "signed-parameter",
    "The query or the form has a parameter that belongs to a signature, and the host signs the request itself.",
    "The guest's author leaves the parameter out.",
);
pub(crate) const SignedFormQuery: Entry = refusal(
    "signed-form-query",
    "A signed request has a query beside its form, in which the server could find another operation.",
    "The guest's author sends all parameters in the form.",
);
pub(crate) const ClockSkew: Entry = safeguard(
    "clock-skew",
    "Only a server that TLS has authenticated can correct the clock of signatures, and by 24 hours at most.",
);
pub(crate) const MetadataDirect: Entry =
    safeguard("metadata-direct", "The metadata service is never asked through a proxy.");
pub(crate) const QueryCredentials: Entry = refusal(
    "query-credentials",
    "The guest sends credentials of its own in the query, where the grant sends secrets.",
    "The guest's author leaves the parameter out.",
);
pub(crate) const IdentityRequested: Entry =
    safeguard("identity-requested", "Responses are asked for without compression, unless the guest asks otherwise.");
pub(crate) const ProxyEnvironment: Entry =
    safeguard("proxy-environment", "Proxies that the environment names are not used.");
pub(crate) const CountedResponses: Entry = safeguard(
    "counted-responses",
    "Limits count the body that the guest gets, not what was captured or removed from the response.",
);
pub(crate) const CountedBytes: Entry =
    safeguard("counted-bytes", "Limits count the body that the guest wrote, not the secrets in its slots.");
pub(crate) const GrantBlocks: Entry = refusal(
    "grant-blocks",
    "The guest uploads the image in blocks, and the grant does not say `blocks`.",
    "The operator adds `\"blocks\": true` to the grant, if the guest may send thousands of requests there.",
);
pub(crate) const BlockHeader: Entry = refusal(
    "block-header",
    "A header of a block is to hold its digest or length, and the grant does not list that header.",
    "The operator adds the header to `block_headers` of the grant.",
);
pub(crate) const BodyParts: Entry = refusal(
    "body-parts",
    "The body has more than 64 parts, or several that are the image, of which each needs a thread.",
    "The guest's author joins parts, and sends the image once.",
);
