//! Names of headers and parameters that are refused, in the normalized form in which names are compared.

/// Prefixes of headers that make a server treat the request as another one than was checked.
pub(super) const IMPOSTORS: [&str; 43] = [
    "cf-connecting-ip",
    "client-ip",
    "destination",
    "fastly-client-ip",
    "forwarded",
    "http-method",
    "impersonate-",
    "method",
    "on-behalf-of",
    "remote-user",
    "run-as",
    "script-name",
    "ssl-client-",
    "sudo",
    "true-client-ip",
    "x-amzn-oidc-",
    "x-auth-request-",
    "x-authenticated-",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-consumer-",
    "x-copy-from",
    "x-envoy-original-",
    "x-forwarded-",
    "x-host",
    "x-http-",
    "x-impersonate-",
    "x-method",
    "x-ms-client-principal",
    "x-ms-copy-source",
    "x-on-behalf-of",
    "x-original-",
    "x-originating-ip",
    "x-oss-copy-source",
    "x-override-",
    "x-proxyuser-ip",
    "x-real-ip",
    "x-remote-",
    "x-rewrite-url",
    "x-script-name",
    "x-ssl-client-",
    "x-trino-",
    "x-webauth-",
];

/// Words in headers that let one user act as another one.
pub(super) const IMPOSTOR_WORDS: [&str; 3] = ["runas", "impersonate", "impersonation"];

/// Headers with which a guest would send credentials of its own. Other names are not refused, because APIs have many
/// headers whose names only resemble these.
pub(super) const CREDENTIALS: [&str; 10] = [
    "api-key",
    "apikey",
    "authorization",
    "cookie",
    "job-token",
    "private-token",
    "x-access-token",
    "x-api-key",
    "x-apikey",
    "x-auth-token",
];
/// How names of headers with credentials end. `X-CSRF-Token` and `Idempotency-Token` are no credentials.
pub(super) const CREDENTIAL_ENDS: [&str; 12] = [
    "-access-key",
    "-access-token",
    "-api-key",
    "-api-token",
    "-auth-key",
    "-auth-token",
    "-consul-token",
    "-password",
    "-secret",
    "-security-token",
    "-service-token",
    "-vault-token",
];
/// Signatures and keys of object stores and the like.
pub(super) const CREDENTIAL_PREFIXES: [&str; 2] = ["x-amz-", "x-goog-"];
/// Headers that make the server respond in a form that cannot be searched, beside those for ranges.
pub(super) const UNSEARCHABLE: [&str; 2] = ["accept-encoding", "a-im"];

/// Parameters of the query with which a guest would send credentials of its own.
pub(super) const QUERY_CREDENTIALS: [&str; 13] = [
    "access-key",
    "access-token",
    "api-key",
    "api-token",
    "apikey",
    "auth-token",
    "jsessionid",
    "private-token",
    "sig",
    "signature",
    "token",
    "x-api-key",
    "x-auth-token",
];
/// Parameters of the query that change the method or the user of a request, beside `_method`.
pub(super) const QUERY_OVERRIDES: [&str; 7] =
    ["http-method", "method", "run-as", "runas", "sudo", "x-http-method", "x-method-override"];
