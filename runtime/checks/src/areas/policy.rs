//! What a request may do by the policy and the guest's needs.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const EndpointInPolicy: Entry = refusal(
    "endpoint-in-policy",
    "A grant or login names the registry, the message bus, the blobstore or the proxy, which hold secrets of other VMs.",
    "The operator removes the grant: the host speaks to these servers on its own.",
);
pub(crate) const EndpointOfEnv: Entry =
    safeguard("endpoint-of-env", "The message bus and the blobstore that a VM's env names are closed to guests, too.");
pub(crate) const EndpointByName: Entry = refusal(
    "endpoint-by-name",
    "The request goes to the registry, the message bus, the blobstore or the proxy, which no grant can open.",
    "The guest's author uses the imports `agent` and `registry`, or asks another server.",
);
pub(crate) const EndpointByAddress: Entry = refusal(
    "endpoint-by-address",
    "The name resolves to the address of the registry, the message bus, the blobstore or the proxy.",
    "The operator checks the DNS record of the name and the grant that allows it.",
);
pub(crate) const EndpointUnresolved: Entry = refusal(
    "endpoint-unresolved",
    "The request uses the port of a BOSH server whose name does not resolve now, so the two cannot be distinguished.",
    "The operator repairs the name servers, or names that server by its address in the config.",
);
pub(crate) const NeedsAbsent: Entry = refusal(
    "needs-absent",
    "The guest declares no needs, so the operator cannot know what it wants to reach.",
    "The operator uses a guest with a needs section, or sets `trust_undeclared` in the policy.",
);
pub(crate) const NeedsHttp: Entry = refusal(
    "needs-http",
    "The policy grants the request, but the guest's needs do not declare it.",
    "The guest's author declares the request in the needs and builds the guest again.",
);
pub(crate) const NeedsSlots: Entry =
    safeguard("needs-slots", "A slot is used only if the guest's needs declare it as well.");
pub(crate) const NeedsRegistry: Entry = refusal(
    "needs-registry",
    "The guest uses the registry, but its needs do not declare it.",
    "The guest's author adds `\"registry\": true` to the needs and builds the guest again.",
);
pub(crate) const NeedsImage: Entry = refusal(
    "needs-image",
    "The guest reads the stemcell's image, but its needs do not declare it.",
    "The guest's author adds `\"image\": true` to the needs and builds the guest again.",
);
pub(crate) const NeedsLogin: Entry = refusal(
    "needs-login",
    "The guest uses a login of the policy, but its needs do not declare it.",
    "The guest's author adds the name to `logins` in the needs and builds the guest again.",
);
pub(crate) const NeedsOperation: Entry = refusal(
    "needs-operation",
    "The policy grants the operation, but the guest's needs do not declare it.",
    "The guest's author adds it to `operations` of the need and builds the guest again.",
);
pub(crate) const GrantScheme: Entry = refusal(
    "grant-scheme",
    "No grant of the policy is for the scheme of the URL.",
    "The operator adds a grant with this scheme, or the guest's author uses the granted one.",
);
pub(crate) const GrantHost: Entry = refusal(
    "grant-host",
    "No grant of the policy names the host of the URL.",
    "The operator adds a grant for the host, if the guest should reach it.",
);
pub(crate) const GrantPort: Entry = refusal(
    "grant-port",
    "The grants for the host are for other ports.",
    "The operator adds a grant with this port, if the guest should reach it.",
);
pub(crate) const GrantMethod: Entry = refusal(
    "grant-method",
    "The grants for the origin do not list the HTTP method.",
    "The operator adds the method to `methods` of the grant, if the guest should use it.",
);
pub(crate) const GrantPath: Entry = refusal(
    "grant-path",
    "The grants for the origin and method do not list the path.",
    "The operator adds the path to `paths` of the grant, if the guest should use it.",
);
pub(crate) const GrantQuery: Entry = refusal(
    "grant-query",
    "The query has a parameter that the grant does not list; a server could filter by hidden values or find an operation in it.",
    "The operator adds the parameter to `query` of the grant, if it reveals nothing that the guest must not see.",
);
pub(crate) const GrantOperation: Entry = refusal(
    "grant-operation",
    "The grant lists operations, and the request does not name exactly one of them.",
    "The operator adds the operation to `operations.allow` of the grant, if the guest should use it.",
);
pub(crate) const OperationInQuery: Entry = refusal(
    "operation-in-query",
    "The query names an operation as well, or stands beside a form with one, and the server could use what it says.",
    "The guest's author names the operation in the body only, and sends all fields of a form in the body.",
);
pub(crate) const OperationSingle: Entry = refusal(
    "operation-single",
    "The request names a second operation, as another key of its JSON or in a header, and the server could carry out that.",
    "The guest's author sends one operation in each request.",
);
pub(crate) const OperationSoap: Entry = refusal(
    "operation-soap",
    "The SOAP body does not have exactly one child, or the SOAPAction names another operation than the body.",
    "The guest's author sends one operation in each request, and the SOAPAction of that operation.",
);
pub(crate) const PathAlike: Entry = refusal(
    "path-alike",
    "A server could take the path for another one, for which the policy has captures or `fields`.",
    "The guest's author writes the path exactly as the policy does.",
);
pub(crate) const GrantSpecific: Entry = safeguard(
    "grant-specific",
    "The most specific grant decides about a request, so a guest cannot choose a wider one by leaving out a need.",
);
pub(crate) const OriginRules: Entry = safeguard(
    "origin-rules",
    "The captures and `fields` of all grants of an origin apply, whichever grant allows a request.",
);
pub(crate) const WildcardLabel: Entry =
    safeguard("wildcard-label", "A `*` in a granted host stands for exactly one label.");
pub(crate) const HintNarrow: Entry = safeguard(
    "hint-narrow",
    "The grant that a denial offers allows no more than the request, even if the guest declares everything.",
);
