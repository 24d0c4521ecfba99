//! The known mistakes that the schemas accept, and why. A schema checks keys, types, keywords and the
//! form of single values; it does not compare values with each other, and knows no properties.

const ADDRESS: &str = "Ranges of addresses are not a matter of patterns.";
const CANONICAL: &str = "Only the reader computes the canonical form of URLs, paths and networks.";
const COMPARISON: &str = "The value is wrong only beside another value of the file.";
const CONFIG: &str = "The value is wrong only beside the config.";
const CONNECTION: &str = "The list of these names is the reader's, and case and underscores do not matter.";
const DUPLICATE: &str = "JSON parsers of editors report duplicate keys themselves.";
const INVISIBLE: &str = "A pattern with all invisible characters would be hard to read.";
const LABELS: &str = "The number of labels in a name, and of properties and stars among them, is left to the reader.";
const NUMBER: &str = "Ranges of numbers in texts are not a matter of patterns.";
const PROPERTY: &str = "The value is wrong only for the value of a property.";

/// Lists rows of `file::mistakes`: the key of the problem, a part of the policy, and the reason.
pub(super) const MISTAKES: &[(&str, &str, &str)] = &[
    ("http[0].to", "http://169.254.169.254", ADDRESS),
    ("http[0].to", "http://[fd00:", ADDRESS),
    ("http[0].to", r#""to":"http://api.iaas.test""#, COMPARISON),
    ("http[0].to", r#""to":"https://*.iaas.test""#, COMPARISON),
    ("http[0].addresses[0]", "10.0.0.5/8", CANONICAL),
    ("http[0].addresses[0]", "::ffff:10.0.0.0/104", CANONICAL),
    ("http[0].addresses[0]", "169.254.169.0/24", ADDRESS),
    ("http[0].auth.header.name", r#""name":"Host""#, CONNECTION),
    ("http[0].auth.login", r#""login":"main""#, COMPARISON),
    ("http[0].tls", r#""to":"http://api.iaas.test""#, COMPARISON),
    ("http[0].slots[0].method", r#""method":"PUT""#, COMPARISON),
    ("http[0].slots[0].path", r#""path":"/v2/servers""#, COMPARISON),
    ("http[0].slots[0].path", r#""path":"/**""#, COMPARISON),
    ("http[0].slots[0].operation", r#""operation":"Run""#, COMPARISON),
    ("http[0].operations.read_only[0]", r#""read_only":["B*"]"#, COMPARISON),
    ("http[0].query", r#""query":["name"]"#, COMPARISON),
    ("http[0].slots[0].show", r#""show":["json:/user_data"]"#, COMPARISON),
    ("http[0].slots[0].show", r#""show":["json:/USER_DATA/x"]"#, COMPARISON),
    ("http[0].slots[0].show", r#""show":["json:/*"]"#, COMPARISON),
    ("http[0].slots[0].show", r#""show":["json:/env/pin"]"#, COMPARISON),
    ("http[0].slots[0].show", r#""show":["json:/list/*/mbus"]"#, COMPARISON),
    ("http[0].slots[0].show", r#""place":"body""#, COMPARISON),
    ("http[0].slots[0].max_bytes", r#""takes":["token"]"#, COMPARISON),
    ("http[0].captures[0].path", r#""path":"/x""#, COMPARISON),
    ("credentials.main.assume_role.to", "http://tokens.iaas.test", COMPARISON),
    ("logins.main.to", "http://id.iaas.test", COMPARISON),
    ("logins.main.headers.Host", "Host", CONNECTION),
    ("logins.main.headers.x-a", "X-A", COMPARISON),
    ("logins.main.show.x", r#""show":{"x":""#, COMPARISON),
];

/// Lists rows of `comparison::broken_needs`: the problem, and the reason.
pub(super) const NEEDS: &[(&str, &str)] = &[("twice", DUPLICATE)];

/// Lists rows of `tests/attack/rows/policies.json`: the name, the values of `each` (all if there
/// are none), and the reason.
pub(super) const ATTACKS: &[(&str, &[&str], &str)] = &[
    ("two grants with the same id", &[], COMPARISON),
    ("two captures with the same name", &[], COMPARISON),
    ("a login that no grant uses", &[], COMPARISON),
    ("a grant whose login does not exist", &[], COMPARISON),
    ("credentials for every host of a domain", &[], COMPARISON),
    ("slots for every host of a domain", &[], COMPARISON),
    ("credentials over plain http", &[], COMPARISON),
    ("credentials in headers that belong to the connection", &[], CONNECTION),
    ("a property that is not set, or is not a single value", &[], PROPERTY),
    ("a slot outside its grant", &[], COMPARISON),
    ("a slot that shows itself", &[], COMPARISON),
    ("a slot that takes a name that two secrets have", &[], PROPERTY),
    ("a slot in the header that carries the credentials", &[], COMPARISON),
    ("uploads in blocks beside slots", &[], COMPARISON),
    ("headers of blocks that only the host sets", &[], CONNECTION),
    ("headers of blocks without blocks, and blocks without PUT", &[], COMPARISON),
    ("paths that are not canonical", &["/v1/../x", "/v1/./x", "/v1/%41", "/v1/%2e%2e/x", "/v1/.."], CANONICAL),
    ("paths with a query, a fragment or forbidden escapes", &["/v1/%2f", "/v1/%5c", "/v1/%00", "/v1/%zz"], CANONICAL),
    ("wildcards for whole top-level domains", &[], LABELS),
    ("wildcards elsewhere in an origin", &["https://*.5.6.7.10"], LABELS),
    (
        "origins that are not canonical",
        &["https://0x5.6.7.10", "https://84346634", "https://[2a05:d000:0:0::2]"],
        CANONICAL,
    ),
    ("origins with credentials, or with malformed names and ports", &["https://api.iaas.test:99999"], NUMBER),
    ("origins with credentials, or with malformed names and ports", &["https://xn--"], CANONICAL),
    (
        "properties that are not one whole label of an origin",
        &[
            "https://${region}.${region}.test",
            "https://${region}.test",
            "https://*.${region}.test",
            "https://${region}:443",
        ],
        LABELS,
    ),
    ("properties that would add a host, a port or a path", &[], PROPERTY),
    ("properties that are not one host of an origin", &[], PROPERTY),
    ("properties that are no host of an origin at all", &[], PROPERTY),
    ("a property with an http URL where the policy writes https", &[], PROPERTY),
    ("a property for a CA that does not hold PEM text", &[], PROPERTY),
    ("a property that names a file", &[], PROPERTY),
    ("TLS for plain http", &[], COMPARISON),
    ("invalid or non-canonical networks", &["10/8", "10.0.0.5/8", "::ffff:10.0.0.0/104"], CANONICAL),
    ("invalid or non-canonical networks", &["0.0.0.0/33"], NUMBER),
    ("networks that can never be granted", &[], ADDRESS),
    ("origins that can never be granted", &[], ADDRESS),
    ("a grant for the registry, by name or by address", &[], CONFIG),
    ("a grant for the message bus, by name or by address", &[], CONFIG),
    ("a grant for the blobstore, as a URL", &[], CONFIG),
    ("a grant for the blobstore, as host and port", &[], CONFIG),
    ("the job's credentials for an origin that the context chose", &[], PROPERTY),
    ("the job's client certificate for an origin that the context chose", &[], PROPERTY),
    ("invisible characters in a place", &[], INVISIBLE),
    ("patterns of operations that change nothing which are not understood, or match none", &[], COMPARISON),
    ("a slot for an operation that the grant does not allow", &[], COMPARISON),
    ("query parameters beside operations in a form", &[], COMPARISON),
];
