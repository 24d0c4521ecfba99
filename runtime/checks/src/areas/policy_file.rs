//! Mistakes in the files of the operator and in the guest's needs.

use crate::explanation::{Entry, refusal, safeguard};

pub(crate) const PlainHttp: Entry = refusal(
    "plain-http",
    "A grant or login would send secrets over `http://`, where everyone on the network can read them.",
    "The operator writes `https://`, or accepts the risk with `\"plain_http\": true`.",
);
pub(crate) const SecretWildcard: Entry = refusal(
    "secret-wildcard",
    "A grant or login with secrets has a `*` in its host, so the secrets could go to more than one server.",
    "The operator names the host.",
);
pub(crate) const RegionListed: Entry = refusal(
    "region-listed",
    "A cpi-config sets a region that the policy does not list, so a host name with it could be a stranger's.",
    "The operator adds the region to `regions` of the policy, if the cpi-config may use it.",
);
pub(crate) const LayerProperty: Entry = refusal(
    "layer-property",
    "A property of the job would be sent to an origin that a cpi-config chose.",
    "The operator sets the property in the cpi-config, too, or the origin in the job's properties.",
);
pub(crate) const LayerToken: Entry = refusal(
    "layer-token",
    "A token that was obtained with the job's credentials would be sent to an origin that a cpi-config chose.",
    "The operator sets the login's properties in the cpi-config, too, or the origin in the job's properties.",
);
pub(crate) const LayerSignature: Entry = refusal(
    "layer-signature",
    "Requests that the job's keys sign would go to an origin that a cpi-config chose.",
    "The operator lets the cpi-config choose only a region that `regions` of the policy lists, or sets the keys in the cpi-config.",
);
pub(crate) const RegionForm: Entry = refusal(
    "region-form",
    "The region of a signature does not look like one, so the name of a server made of it could be a stranger's.",
    "The operator writes a region like `eu-central-1`.",
);
pub(crate) const ServiceForm: Entry = refusal(
    "service-form",
    "The service of a signature is not a name in lower case, so the signature could have another scope.",
    "The operator writes the name by which the service signs.",
);
pub(crate) const ServiceOfContext: Entry = refusal(
    "service-of-context",
    "A cpi-config chooses the service for which requests are signed.",
    "The operator writes the service into the policy, or sets it in the job's properties.",
);
pub(crate) const ServiceIssuer: Entry = refusal(
    "service-issuer",
    "The grant is for a service that issues credentials, with which the guest could act outside of all grants.",
    "The operator removes the grant, because the host asks for credentials itself.",
);
pub(crate) const RoleForm: Entry = refusal(
    "role-form",
    "The role to assume is not written as a full name.",
    "The operator writes the whole ARN of the role.",
);
pub(crate) const RoleOfContext: Entry = refusal(
    "role-of-context",
    "A cpi-config chooses a role that is not on the job's list.",
    "The operator lists the role in `roles`.",
);
pub(crate) const LayerCapture: Entry = safeguard(
    "layer-capture",
    "A value that was captured with the job's credentials does not go to an origin that a cpi-config chose.",
);
pub(crate) const LayerCertificate: Entry = refusal(
    "layer-certificate",
    "The job's client certificate would be used for an origin that a cpi-config chose.",
    "The operator takes the certificate from a property of the cpi-config.",
);
pub(crate) const LayerCa: Entry = refusal(
    "layer-ca",
    "A cpi-config would decide which CA the job trusts for an origin of the job.",
    "The operator sets the CA in the job's properties, or the origin in the cpi-config.",
);
pub(crate) const LiteralCredential: Entry = refusal(
    "literal-credential",
    "A credential is written into the policy itself, where the redaction of logs does not know it.",
    "The operator puts the value into the properties and writes `${property}` in the policy.",
);
pub(crate) const ConnectionHeader: Entry = refusal(
    "connection-header",
    "The policy sets a header that controls the connection, which only the host may set.",
    "The operator names another header.",
);
pub(crate) const KeyFile: Entry = refusal(
    "key-file",
    "Every user of this machine can read the file of a private key.",
    "The operator runs `chmod o-r` on the file.",
);
pub(crate) const PropertyName: Entry =
    safeguard("property-name", "A property with the name `agent` does not pass for agent settings.");
pub(crate) const PropertyPem: Entry = refusal(
    "property-pem",
    "A property that must hold a certificate or key in PEM format holds something else, such as a file name.",
    "The operator puts the PEM text itself into the property.",
);
pub(crate) const ShownToken: Entry = refusal(
    "shown-token",
    "A login would show the guest a part of the response that holds the token.",
    "The operator names a part of the response without the token in `show`.",
);
pub(crate) const ShownSlot: Entry = refusal(
    "shown-slot",
    "A slot shows its own place in responses, or a part of it, so a server that echoes requests would reveal the secret.",
    "The operator lists other places in `show` of the slot, and headers only for a slot that is the body.",
);
pub(crate) const EntryOutsideGrant: Entry = refusal(
    "entry-outside-grant",
    "A slot or capture is for a method or path that its grant does not allow, so it has no effect.",
    "The operator narrows the slot or capture, or widens the grant.",
);
pub(crate) const PointerWildcard: Entry = refusal(
    "pointer-wildcard",
    "The pointer of a slot or capture has a `*`, which stands for nothing there, so it would have no effect.",
    "The operator writes one entry for each place, or uses `drop`.",
);
pub(crate) const SlotElement: Entry = refusal(
    "slot-element",
    "A slot names an XML element without its path, so a guest could choose where the secret is written.",
    "The operator writes the path of the element, like `xml:/Envelope/Body/Create/UserData`.",
);
pub(crate) const SlotNameTwice: Entry = refusal(
    "slot-name-twice",
    "A slot takes a name that two secrets have, so it would take the seal of either.",
    "The operator renames the capture or the property.",
);
pub(crate) const SlotBesideAuth: Entry = refusal(
    "slot-beside-auth",
    "A slot is in the header that the grant's `auth` sets.",
    "The operator removes the slot or the `auth`.",
);
pub(crate) const OriginForm: Entry = refusal(
    "origin-form",
    "An origin goes on after its port or is not in canonical form, so a reviewer could misread it.",
    "The author of the file writes the origin as the message shows it.",
);
pub(crate) const OriginWildcard: Entry = refusal(
    "origin-wildcard",
    "An origin has a `*` with fewer than two labels behind it, which would match a whole top-level domain.",
    "The author of the file names more of the host, like `https://*.example.com`.",
);
pub(crate) const OriginTemplate: Entry = refusal(
    "origin-template",
    "A property in an origin is not one whole label, or its value is not, so it could name another host.",
    "The author of the file writes `${property}` alone or as one label, and sets it to letters, digits and `-`.",
);
pub(crate) const PatternForm: Entry = refusal(
    "pattern-form",
    "A pattern of paths is not in canonical form, has a `*` within a segment, or a `**` before its end.",
    "The author of the file writes the pattern as the message shows it.",
);
pub(crate) const EmptyList: Entry = refusal(
    "empty-list",
    "A list that must name something is empty, so nothing could match.",
    "The author of the file lists at least one value, or removes the entry.",
);
pub(crate) const UnknownKey: Entry = refusal(
    "unknown-key",
    "The config, the policy or the needs have a key that the runtime does not know, so it would have no effect.",
    "The author of the file corrects the spelling, or removes the key.",
);
pub(crate) const UnknownVersion: Entry = refusal(
    "unknown-version",
    "The config, the policy or the needs have a version that the runtime does not know.",
    "The author of the file writes `\"version\": 1`, or the operator installs a newer runtime.",
);
pub(crate) const DuplicateName: Entry = refusal(
    "duplicate-name",
    "Two grants or two captures have one name, so messages and slots could mean either of them.",
    "The operator gives each its own name.",
);
pub(crate) const UnusedLogin: Entry = refusal(
    "unused-login",
    "No grant uses the login, or a grant uses a login that the policy does not describe.",
    "The operator names the login in a grant's `auth`, describes it under `logins`, or removes it.",
);
pub(crate) const UnusedCredentials: Entry = refusal(
    "unused-credentials",
    "A grant or a role names credentials that do not exist, or nothing uses the credentials.",
    "The operator corrects the name, or removes what is not used.",
);
pub(crate) const TrustedFile: Entry = refusal(
    "trusted-file",
    "Other users can write a file that decides about trust: the config, the policy, a preset, a CA or signatures.",
    "The operator runs `chown` or `chmod go-w` on the file, as the message says.",
);
pub(crate) const BlocksBesideSlots: Entry = refusal(
    "blocks-beside-slots",
    "A grant has both `blocks` and `slots`, so a secret could be written into thousands of requests.",
    "The operator writes a grant of its own for the upload in blocks.",
);
