use proptest::prelude::*;

use super::*;

/// Returns a policy with one complete grant, into which `more` is merged.
pub(super) fn grant(more: Value) -> Value {
    let mut grant =
        object(&json!({"id": "api", "to": "https://api.iaas.test", "methods": ["GET", "POST"], "paths": ["/v1/**"]}));
    grant.extend(object(&more));
    grant.retain(|_, value| *value != json!("REMOVED"));
    json!({"version": 1, "http": [grant]})
}

/// Returns a policy with one login, into which `more` is merged.
pub(super) fn login(more: Value) -> Value {
    let mut login = object(&json!({"to": "https://id.iaas.test", "path": "/tokens", "body": {"user": "${user}"},
                                   "token": "json:/token", "send": {"header": "X-Token"}}));
    login.extend(object(&more));
    login.retain(|_, value| *value != json!("REMOVED"));
    json!({"version": 1, "logins": {"main": login}, "http": [
        {"id": "api", "to": "https://api.iaas.test", "methods": ["GET"], "paths": ["/**"], "auth": {"login": "main"}}]})
}

/// A policy with credentials that one grant uses, and `more` laid over the keys of `sigv4`.
pub(super) fn signed(credentials: Value, more: Value) -> Value {
    let mut sigv4 = object(&json!({"service": "compute", "region": "us-east-1", "credentials": "main"}));
    sigv4.extend(object(&more));
    sigv4.retain(|_, value| *value != json!("REMOVED"));
    json!({"version": 1, "credentials": {"main": credentials}, "http": [
        {"id": "api", "to": "https://api.iaas.test", "methods": ["POST"], "paths": ["/"], "auth": {"sigv4": sigv4}}]})
}

/// Static keys, and `more` laid over them.
pub(super) fn keys(more: Value) -> Value {
    let mut keys = object(&json!({"access_key_id": "${id}", "secret_access_key": "${key}"}));
    keys.extend(object(&more));
    keys.retain(|_, value| *value != json!("REMOVED"));
    json!({"static": keys})
}

/// A policy with a role that is assumed with the keys of the machine, and `more` laid over it.
pub(super) fn role(more: Value) -> Value {
    let mut role = object(&json!({"role": "arn:cloud:iam::123456789012:role/cpi", "with": "machine",
                                  "to": "https://tokens.iaas.test", "region": "us-east-1"}));
    role.extend(object(&more));
    role.retain(|_, value| *value != json!("REMOVED"));
    let mut policy = signed(json!({"assume_role": role}), json!({}));
    policy["credentials"]["machine"] = json!({"metadata": {}});
    policy
}

const METADATA_V6: &str = concat!("http://[fd00:e", "c2::254]");

/// Returns policies without a mistake, which together have every key.
pub(super) fn complete_files() -> Vec<Value> {
    vec![
        json!({"version": 1}),
        json!({"version": 1, "trust_undeclared": true, "expose": ["region", "a.b"], "registry": {"keys": ["vm-*"]}, "logins": {}, "http": []}),
        json!({"version": 1, "expose": "declared", "registry": {}, "regions": ["eu-west-1", "a"]}),
        grant(json!({"addresses": "public", "plain_http": false})),
        grant(
            json!({"to": "https://${region}.iaas.test", "addresses": ["10.0.0.0/8", "fd01::/16", "0.0.0.0/0", "127.0.0.1/32"]}),
        ),
        grant(json!({"to": "http://api.iaas.test"})),
        grant(json!({"to": "http://api.iaas.test", "plain_http": true, "auth": {"bearer": "${token}"}})),
        grant(json!({"to": "https://*.iaas.test:8443"})),
        grant(json!({"auth": {"basic": {"user": "admin", "password": "${password}"}}})),
        grant(json!({"auth": {"header": {"name": "X-Key", "value": "Key ${a.key}"}}})),
        grant(json!({"operations": {"in": "form:Action", "allow": ["CreateServer"]}})),
        grant(
            json!({"operations": {"in": "form:Action", "allow": ["CreateServer", "ListServers", "GetServer"], "read_only": ["List*", "GetServer"]},
                   "slots": [{"method": "POST", "path": "/v1/x", "operation": "CreateServer", "place": "form:UserData"}],
                   "fields": [{"method": "POST", "path": "/v1/x", "operation": "ListServers", "others": "deny"}]}),
        ),
        grant(json!({"slots": [{"method": "POST", "path": "/v1/*/servers", "place": "json:/server/user_data"},
                           {"method": "POST", "path": "/v1/keys", "place": "body", "takes": ["agent", "a.key", "token"]}]})),
        grant(json!({"captures": [{"method": "POST", "path": "/v1/login", "place": "cookie:session", "as": "token"}]})),
        grant(
            json!({"slots": [{"method": "POST", "path": "/v1/servers", "place": "json:/server/user_data", "max_bytes": 65535,
                                "show": ["json:/server/id", "xml:instanceId", "header:Location"]}]}),
        ),
        grant(json!({"drop": ["json:/Config/Env", "json:/list/*/Cmd", "xml:userData", "header:X-Echo"], "query": []})),
        grant(json!({"drop": [], "query": ["name", "tag:Name", "fields"]})),
        grant(
            json!({"tls": {"ca": "ca.pem", "client": {"cert": "c.pem", "key": "${key}"}, "pin_sha256": ["0f".repeat(32)]}}),
        ),
        login(json!({})),
        login(json!({"method": "PUT", "headers": {"X-Project": "${project}"}, "expires": {"at": "json:/expires"},
                 "send": {"header": "Authorization", "prefix": "Bearer "}, "show": {"catalog": "json:/catalog"}})),
        login(json!({"body": "REMOVED", "form": {"grant_type": "client_credentials", "client_secret": "${secret}"},
                 "expires": {"in_seconds": "json:/expires_in"}, "addresses": ["10.0.0.0/8"], "tls": {"ca": "ca.pem"}})),
        login(json!({"token": "header:X-Subject-Token", "show": {"all": "body", "token": "json:/token"}})),
        login(json!({"alternatives": "use the preset other.json"})),
        signed(keys(json!({"session_token": "${token}"})), json!({"region": "${region}"})),
        signed(keys(json!({})), json!({"service": "${service}", "region": "${a.region}"})),
        signed(json!({"metadata": {"ipv6": true}}), json!({})),
        role(
            json!({"role": "${role}", "roles": ["arn:cloud-x:iam::123456789012:role/a/b"], "session_name": "cpi@here",
                    "to": "https://tokens.${region}.iaas.test", "region": "${region}",
                    "addresses": ["10.0.0.0/8"], "tls": {"ca": "ca.pem"}}),
        ),
    ]
}

#[test]
fn complete_files_are_read() {
    for policy in complete_files() {
        file(&policy);
    }
}

/// Returns policies with one mistake each: the key that a problem names, and a part of its remedy.
pub(super) fn mistakes() -> Vec<(Value, &'static str, &'static str)> {
    let slot = |more: Value| {
        let mut slot = object(&json!({"method": "POST", "path": "/v1/servers", "place": "json:/user_data"}));
        slot.extend(object(&more));
        grant(json!({"slots": [slot]}))
    };
    let capture = |more: Value| {
        let mut capture =
            object(&json!({"method": "POST", "path": "/v1/login", "place": "json:/token", "as": "token"}));
        capture.extend(object(&more));
        grant(json!({"captures": [capture]}))
    };
    vec![
        (slot(json!({"place": "xml:UserData"})), "http[0].slots[0].place", "`xml:/Envelope/Body/Create/UserData`"),
        (slot(json!({"place": "json:/servers/*/user_data"})), "http[0].slots[0].place", "one entry for each place"),
        (capture(json!({"place": "json:/keys/*"})), "http[0].captures[0].place", "one entry for each place"),
        (slot(json!({"show": ["xml:/a/b"]})), "http[0].slots[0].show[0]", "`xml:E`"),
        (grant(json!({"drop": ["xml:/a"]})), "http[0].drop[0]", "`xml:E`"),
        (slot(json!({"show": "json:/id"})), "http[0].slots[0].show", "write a list"),
        (slot(json!({"show": ["id"]})), "http[0].slots[0].show[0]", "`json:/a/*/b`"),
        (slot(json!({"show": ["json:/id", "body"]})), "http[0].slots[0].show[1]", "`json:/a/*/b`"),
        (slot(json!({"show": ["json:/id", "json:/id"]})), "http[0].slots[0].show[1]", "remove it"),
        (slot(json!({"show": ["json:/user_data"]})), "http[0].slots[0].show", "list other places"),
        (slot(json!({"show": ["json:/USER_DATA/x"]})), "http[0].slots[0].show", "list other places"),
        (slot(json!({"show": ["json:/*"]})), "http[0].slots[0].show", "list other places"),
        (slot(json!({"show": ["json:/env/pin"]})), "http[0].slots[0].show", "list other places"),
        (slot(json!({"show": ["json:/list/*/mbus"]})), "http[0].slots[0].show", "list other places"),
        (slot(json!({"place": "body", "show": ["json:/id"]})), "http[0].slots[0].show", "headers only"),
        (
            slot(json!({"place": "body", "takes": ["password"], "show": ["xml:id"]})),
            "http[0].slots[0].show",
            "headers only",
        ),
        (slot(json!({"max_bytes": 0})), "http[0].slots[0].max_bytes", "65535"),
        (slot(json!({"max_bytes": 1.5})), "http[0].slots[0].max_bytes", "65535"),
        (slot(json!({"max_bytes": "64k"})), "http[0].slots[0].max_bytes", "65535"),
        (slot(json!({"max_bytes": 9, "takes": ["token"]})), "http[0].slots[0].max_bytes", "remove it"),
        (grant(json!({"drop": ["form:UserData"]})), "http[0].drop[0]", "`json:/a/*/b`"),
        (grant(json!({"drop": ["cookie:c"]})), "http[0].drop[0]", "`json:/a/*/b`"),
        (grant(json!({"drop": ["json:Env"]})), "http[0].drop[0]", "`json:/a/*/b`"),
        (grant(json!({"query": ["a b"]})), "http[0].query[0]", "its name alone"),
        (grant(json!({"query": [""]})), "http[0].query[0]", "its name alone"),
        (grant(json!({"query": ["a", "a"]})), "http[0].query[1]", "remove it"),
        (json!([]), "", "write an object"),
        (json!({}), "version", "\"version\": 1"),
        (json!({"version": 2, "nonsense": 1}), "version", "\"version\": 1"),
        (json!({"version": "1"}), "version", "\"version\": 1"),
        (
            json!({"version": 1, "https": []}),
            "https",
            "known here: version, trust_undeclared, presets, expose, registry, regions, credentials, logins, http",
        ),
        (json!({"version": 1, "http": {}}), "http", "write a list"),
        (json!({"version": 1, "http": ["x"]}), "http[0]", "write an object"),
        (json!({"version": 1, "trust_undeclared": "yes"}), "trust_undeclared", "true or false"),
        (json!({"version": 1, "expose": "all"}), "expose", "\"declared\""),
        (json!({"version": 1, "expose": ["${region}"]}), "expose[0]", "`region`"),
        (json!({"version": 1, "registry": {"keys": ["a/b"]}}), "registry.keys[0]", "letters, digits"),
        (json!({"version": 1, "registry": {"read": ["a"]}}), "registry.read", "known here: keys"),
        (json!({"version": 1, "regions": ["EU"]}), "regions[0]", "lower-case letters"),
        (json!({"version": 1, "regions": ["eu", "eu"]}), "regions[1]", "remove it"),
        (grant(json!({"id": "REMOVED"})), "http[0].id", "\"id\": \"compute\""),
        (grant(json!({"id": "a b"})), "http[0].id", "letters, digits"),
        (grant(json!({"guest_auth": true})), "http[0].guest_auth", "remove it"),
        (grant(json!({"to": "REMOVED"})), "http[0].to", "https://api.example.com"),
        (grant(json!({"to": 7})), "http[0].to", "write a string"),
        (grant(json!({"to": "*://api.iaas.test"})), "http[0].to", "write it like"),
        (grant(json!({"to": "https://*"})), "http[0].to", "name the host"),
        (grant(json!({"to": "https://bücher.test"})), "http[0].to", "xn--bcher-kva.test"),
        (grant(json!({"to": "http://169.254.169.254"})), "http[0].to", "remove the grant"),
        (grant(json!({"to": METADATA_V6})), "http[0].to", "remove the grant"),
        (grant(json!({"to": "https://api.iaas.test/v1"})), "http[0].to", "`paths`"),
        (grant(json!({"methods": "REMOVED"})), "http[0].methods", "[\"GET\"]"),
        (grant(json!({"methods": []})), "http[0].methods", "[\"GET\"]"),
        (grant(json!({"methods": ["get"]})), "http[0].methods[0]", "GET, HEAD, POST"),
        (grant(json!({"methods": ["GET", "*"]})), "http[0].methods[1]", "GET, HEAD, POST"),
        (grant(json!({"methods": ["CONNECT"]})), "http[0].methods[0]", "GET, HEAD, POST"),
        (grant(json!({"paths": "REMOVED"})), "http[0].paths", "[\"/v1/**\"]"),
        (grant(json!({"paths": []})), "http[0].paths", "[\"/v1/**\"]"),
        (grant(json!({"paths": ["/v1", "v2"]})), "http[0].paths[1]", "`/v1/**`"),
        (grant(json!({"paths": ["/v1/${x}"]})), "http[0].paths[0]", "write it as"),
        (grant(json!({"addresses": "private"})), "http[0].addresses", "\"public\""),
        (grant(json!({"addresses": []})), "http[0].addresses", "10.0.0.0/8"),
        (grant(json!({"addresses": ["10.0.0.5"]})), "http[0].addresses[0]", "`10.0.0.5/32`"),
        (grant(json!({"addresses": ["10.0.0.5/8"]})), "http[0].addresses[0]", "`10.0.0.0/8`"),
        (grant(json!({"addresses": ["${net}"]})), "http[0].addresses[0]", "`10.0.0.0/8`"),
        (grant(json!({"addresses": ["169.254.169.0/24"]})), "http[0].addresses[0]", "remove it"),
        (grant(json!({"addresses": ["::ffff:10.0.0.0/104"]})), "http[0].addresses[0]", "as IPv4"),
        (grant(json!({"operations": {"in": "form:Action", "allow": []}})), "http[0].operations.allow", "at least one"),
        (grant(json!({"operations": {"in": "nowhere", "allow": ["A"]}})), "http[0].operations.in", "`form:F`"),
        (grant(json!({"operations": {"allow": ["A"]}})), "http[0].operations.in", "add it"),
        (grant(json!({"operations": {"in": "json", "allow": ["A*"]}})), "http[0].operations.allow[0]", "without `*`"),
        (
            grant(json!({"operations": {"in": "json", "allow": ["A"], "read_only": ["*"]}})),
            "http[0].operations.read_only[0]",
            "`Describe*`",
        ),
        (
            grant(json!({"operations": {"in": "json", "allow": ["A"], "read_only": ["B*"]}})),
            "http[0].operations.read_only[0]",
            "to `allow`",
        ),
        (
            grant(json!({"operations": {"in": "form:A", "allow": ["A"]}, "query": ["name"]})),
            "http[0].query",
            "remove it",
        ),
        (slot(json!({"operation": "Run"})), "http[0].slots[0].operation", "`operations.allow`"),
        (slot(json!({"operation": "Run*"})), "http[0].slots[0].operation", "without `*`"),
        (grant(json!({"auth": {}})), "http[0].auth", "one of basic, bearer, header, login, sigv4"),
        (
            grant(json!({"auth": {"bearer": "${a}", "header": {"name": "X", "value": "${b}"}}})),
            "http[0].auth",
            "one of basic, bearer, header, login, sigv4",
        ),
        (grant(json!({"auth": {"digest": {}}})), "http[0].auth.digest", "known here"),
        (grant(json!({"auth": {"bearer": "abc"}})), "http[0].auth.bearer", "properties"),
        (grant(json!({"auth": {"bearer": "${a"}})), "http[0].auth.bearer", "${property}"),
        (grant(json!({"auth": {"basic": {"user": "u"}}})), "http[0].auth.basic.password", "add it"),
        (
            grant(json!({"auth": {"basic": {"user": "u", "password": "pw"}}})),
            "http[0].auth.basic.password",
            "properties",
        ),
        (
            grant(json!({"auth": {"header": {"name": "Host", "value": "${a}"}}})),
            "http[0].auth.header.name",
            "another header",
        ),
        (
            grant(json!({"auth": {"header": {"name": "a b", "value": "${a}"}}})),
            "http[0].auth.header.name",
            "X-Auth-Token",
        ),
        (grant(json!({"auth": {"login": "main"}})), "http[0].auth.login", "under `logins`"),
        (
            grant(json!({"to": "http://api.iaas.test", "auth": {"bearer": "${a}"}})),
            "http[0].to",
            "\"plain_http\": true",
        ),
        (grant(json!({"to": "https://*.iaas.test", "auth": {"bearer": "${a}"}})), "http[0].to", "name the host"),
        (
            grant(
                json!({"to": "https://*.iaas.test", "slots": [{"method": "POST", "path": "/v1/x", "place": "body"}]}),
            ),
            "http[0].to",
            "name the host",
        ),
        (grant(json!({"to": "http://api.iaas.test", "tls": {"ca": "x.pem"}})), "http[0].tls", "https://"),
        (grant(json!({"tls": {"insecure": true}})), "http[0].tls.insecure", "known here: ca, client, pin_sha256"),
        (grant(json!({"tls": {"ca": "x${ca}"}})), "http[0].tls.ca", "write one of them"),
        (grant(json!({"tls": {"ca": ""}})), "http[0].tls.ca", "write one of them"),
        (grant(json!({"tls": {"client": {"cert": "c.pem"}}})), "http[0].tls.client.key", "add it"),
        (
            grant(json!({"tls": {"client": {"cert": "c.pem", "key": "dir/${key}"}}})),
            "http[0].tls.client.key",
            "write one of them",
        ),
        (grant(json!({"tls": {"pin_sha256": ["abc"]}})), "http[0].tls.pin_sha256[0]", "64 hexadecimal"),
        (slot(json!({"method": "PUT"})), "http[0].slots[0].method", "add the method"),
        (slot(json!({"path": "/v2/servers"})), "http[0].slots[0].path", "narrow it"),
        (slot(json!({"path": "/**"})), "http[0].slots[0].path", "narrow it"),
        (slot(json!({"place": "json:user_data"})), "http[0].slots[0].place", "`json:/a/b`"),
        (slot(json!({"place": "cookie:x"})), "http[0].slots[0].place", "header"),
        (slot(json!({"takes": []})), "http[0].slots[0].takes", "at least one"),
        (slot(json!({"takes": ["${a}"]})), "http[0].slots[0].takes[0]", "without `${}`"),
        (slot(json!({"takes": ["a", "a"]})), "http[0].slots[0].takes[1]", "remove it"),
        (slot(json!({"when": 1})), "http[0].slots[0].when", "known here"),
        (capture(json!({"as": "agent"})), "http[0].captures[0].as", "not `agent`"),
        (capture(json!({"as": "a b"})), "http[0].captures[0].as", "letters"),
        (capture(json!({"place": "form:x"})), "http[0].captures[0].place", "json:"),
        (capture(json!({"path": "/x"})), "http[0].captures[0].path", "narrow it"),
        (login(json!({"to": "http://id.iaas.test"})), "logins.main.to", "\"plain_http\": true"),
        (login(json!({"to": "https://*.iaas.test"})), "logins.main.to", "name the host"),
        (login(json!({"path": "REMOVED"})), "logins.main.path", "add it"),
        (login(json!({"path": "/tokens/**"})), "logins.main.path", "the one path"),
        (login(json!({"path": "tokens"})), "logins.main.path", "`/v1/**`"),
        (login(json!({"method": "post"})), "logins.main.method", "GET, HEAD, POST"),
        (login(json!({"form": {"a": "b"}})), "logins.main.form", "keep one"),
        (login(json!({"body": "REMOVED", "form": {"a": 1}})), "logins.main.form.a", "write a string"),
        (login(json!({"body": {"a": ["${"]}})), "logins.main.body.a[0]", "${property}"),
        (login(json!({"headers": {"Host": "x"}})), "logins.main.headers.Host", "another header"),
        (login(json!({"headers": {"X-A": "x", "x-a": "y"}})), "logins.main.headers.x-a", "keep one"),
        (login(json!({"token": "REMOVED"})), "logins.main.token", "add it"),
        (login(json!({"send": "REMOVED"})), "logins.main.send", "X-Auth-Token"),
        (login(json!({"send": {"prefix": "x"}})), "logins.main.send.header", "add it"),
        (login(json!({"send": {"header": "X", "prefix": "a\n"}})), "logins.main.send.prefix", "`Bearer `"),
        (login(json!({"expires": {}})), "logins.main.expires", "either `at` or `in_seconds`"),
        (login(json!({"expires": {"at": "nowhere"}})), "logins.main.expires.at", "`json:/a/b`"),
        (login(json!({"show": {"x": "json:/token"}})), "logins.main.show.x", "without it"),
        (login(json!({"show": {"x": "json:/token/id"}})), "logins.main.show.x", "without it"),
        (login(json!({"token": "json:/a/b", "show": {"x": "json:/a"}})), "logins.main.show.x", "without it"),
        (login(json!({"show": {"x": "body"}})), "logins.main.show.x", "without it"),
        (login(json!({"token": "header:T", "show": {"x": "header:t"}})), "logins.main.show.x", "without it"),
        (login(json!({"token": "cookie:s", "show": {"x": "header:set-cookie"}})), "logins.main.show.x", "without it"),
        (login(json!({"token": "header:set-cookie", "show": {"x": "cookie:s"}})), "logins.main.show.x", "without it"),
        (login(json!({"show": {"x": 1}})), "logins.main.show.x", "json:/catalog"),
        (login(json!({"insecure": true})), "logins.main.insecure", "known here"),
        (signed(keys(json!({})), json!({"service": "REMOVED"})), "http[0].auth.sigv4.service", "add it"),
        (signed(keys(json!({})), json!({"service": "Compute"})), "http[0].auth.sigv4.service", "lower case"),
        (signed(keys(json!({})), json!({"service": "a${b}"})), "http[0].auth.sigv4.service", "alone"),
        (signed(keys(json!({})), json!({"service": "${b"})), "http[0].auth.sigv4.service", "alone"),
        (signed(keys(json!({})), json!({"services": ["a"]})), "http[0].auth.sigv4.services", "known here"),
        (signed(keys(json!({})), json!({"region": "s3"})), "http[0].auth.sigv4.region", "`eu-central-1`"),
        (signed(keys(json!({})), json!({"region": "REMOVED"})), "http[0].auth.sigv4.region", "add it"),
        (signed(keys(json!({})), json!({"region": "${a|b}"})), "http[0].auth.sigv4.region", "alone"),
        (signed(keys(json!({})), json!({"regions": ["us-east-1"]})), "http[0].auth.sigv4.regions", "known here"),
        (
            signed(keys(json!({"secret_access_key": "literal"})), json!({})),
            "credentials.main.static.secret_access_key",
            "properties",
        ),
        (
            signed(keys(json!({"access_key_id": "literal"})), json!({})),
            "credentials.main.static.access_key_id",
            "properties",
        ),
        (
            signed(keys(json!({"session_token": "literal"})), json!({})),
            "credentials.main.static.session_token",
            "properties",
        ),
        (
            signed(keys(json!({"access_key_id": "REMOVED"})), json!({})),
            "credentials.main.static.access_key_id",
            "add it",
        ),
        (signed(json!({}), json!({})), "credentials.main", "one of static, metadata, assume_role"),
        (signed(json!({"file": {}}), json!({})), "credentials.main.file", "known here: static, metadata, assume_role"),
        (signed(json!({"metadata": {"ipv6": "yes"}}), json!({})), "credentials.main.metadata.ipv6", "true or false"),
        (
            signed(json!({"metadata": {"address": "10.0.0.1"}}), json!({})),
            "credentials.main.metadata.address",
            "known here: ipv6",
        ),
        (role(json!({"role": "cpi"})), "credentials.main.assume_role.role", "the full name (ARN) of a role"),
        (
            role(json!({"role": "arn:cloud:iam::1:role/x"})),
            "credentials.main.assume_role.role",
            "the full name (ARN) of a role",
        ),
        (role(json!({"roles": ["cpi"]})), "credentials.main.assume_role.roles[0]", "write the values out"),
        (role(json!({"roles": ["${role}"]})), "credentials.main.assume_role.roles[0]", "write the values out"),
        (role(json!({"roles": "cpi"})), "credentials.main.assume_role.roles", "`${property}` alone"),
        (role(json!({"roles": 7})), "credentials.main.assume_role.roles", "write a list"),
        (role(json!({"regions": ["us-east-1"]})), "credentials.main.assume_role.regions", "known here"),
        (role(json!({"to": "http://tokens.iaas.test"})), "credentials.main.assume_role.to", "\"plain_http\": true"),
        (role(json!({"to": "https://*.iaas.test"})), "credentials.main.assume_role.to", "name the host"),
        (role(json!({"session_name": "a b"})), "credentials.main.assume_role.session_name", "letters, digits"),
        (role(json!({"duration": 900})), "credentials.main.assume_role.duration", "known here"),
    ]
}

#[test]
fn each_mistake_is_named_with_its_key_and_a_remedy() {
    for (policy, key, remedy) in mistakes() {
        let problems = PolicyFile::parse(&policy.to_string()).err().unwrap_or_else(|| panic!("{policy} was read"));
        let found = problems.iter().any(|problem| problem.key == key && problem.remedy.contains(remedy));
        assert!(found, "{policy}: `{key}` … {remedy} in {problems:#?}");
        assert_eq!(problems.len(), 1, "{policy}: {problems:#?}");
    }
}

#[test]
fn names_must_be_unique_and_used() {
    let twice = json!({"version": 1, "http": [
        {"id": "a", "to": "https://a.test", "methods": ["POST"], "paths": ["/**"], "captures": [{"method": "POST", "path": "/x", "place": "json:/t", "as": "t"}]},
        {"id": "a", "to": "https://b.test", "methods": ["POST"], "paths": ["/**"], "captures": [{"method": "POST", "path": "/x", "place": "json:/t", "as": "t"}]}]});
    let problems = PolicyFile::parse(&twice.to_string()).err().unwrap();
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    assert_eq!(keys, ["http[1].id", "http[1].captures[0].as"]);

    let mut unused = login(json!({}));
    unused["http"] = json!([]);
    let problems = PolicyFile::parse(&unused.to_string()).err().unwrap();
    assert_eq!(
        problems[0].to_string(),
        "`logins.main`: is used by no grant; name it in a grant's `auth`, or remove it"
    );
}

#[test]
fn all_problems_are_reported_at_once() {
    let policy = json!({"version": 1, "x": 1, "http": [
        {"id": "a", "to": "https://*", "methods": [], "paths": ["x"], "y": 1},
        {"id": "a", "to": "https://b.test", "methods": ["GET"], "paths": ["/"], "auth": {"login": "none"}}]});
    let problems = PolicyFile::parse(&policy.to_string()).err().unwrap();
    let mut keys: Vec<&str> = problems.iter().map(|problem| problem.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        ["http[0].methods", "http[0].paths[0]", "http[0].to", "http[0].y", "http[1].auth.login", "http[1].id", "x"]
    );
}

#[test]
fn a_duplicate_key_is_an_error() {
    for text in [
        r#"{"version": 1, "version": 1}"#,
        r#"{"version": 1, "http": [{"id": "a", "to": "https://a.test", "to": "https://b.test", "methods": ["GET"], "paths": ["/"]}]}"#,
    ] {
        let problems = PolicyFile::parse(text).err().unwrap();
        assert!(problems[0].what.contains("twice"), "{problems:?}");
    }
    for text in ["", "{", "{} x", "\u{feff}{}", "null"] {
        assert!(PolicyFile::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn debug_shows_no_value_that_may_be_secret() {
    let policy =
        login(json!({"body": {"password": "hunter2", "more": ["x hunter2 ${user}"]}, "headers": {"X": "hunter2"},
                              "tls": {"client": {"cert": "-----BEGIN hunter2", "key": "-----BEGIN hunter2"}}}));
    let shown = format!("{:?}", file(&policy));
    assert!(!shown.contains("hunter2"), "{shown}");
}

proptest! {
    #[test]
    fn parsing_never_panics_on_any_text(text in r#"\{"version":1,"http":\[\{("(id|to|methods|paths|auth|slots|tls|addresses|operations)":("[a-z:/*.$\{\}]{0,12}"|\["[A-Z/*]{0,4}"\]|\{"[a-z]{2,8}":"[$\{\}a-z:/]{0,8}"\}|1|null),){0,5}"id":"a"\}\]\}"#) {
        if let Err(problems) = PolicyFile::parse(&text) {
            prop_assert!(!problems.is_empty());
            prop_assert!(problems.iter().all(|problem| !problem.what.is_empty() && !problem.remedy.is_empty()));
        }
    }

    #[test]
    fn parsing_never_panics_on_any_origin_or_path(to in r"\PC{0,30}", path in r"/?\PC{0,20}", cidr in r"[0-9a-f:./]{0,20}") {
        let policy = grant(json!({"to": to, "paths": [path], "addresses": [cidr]}));
        let first = PolicyFile::parse(&policy.to_string()).map(|file| format!("{file:?}"));
        let second = PolicyFile::parse(&policy.to_string()).map(|file| format!("{file:?}"));
        prop_assert_eq!(first, second);
    }
}
