//! A job with a secret in every field that can hold one, the servers that it
//! contacts, and a guest that uses everything.

use super::secret_set::{Fit, SecretSet};
use crate::dns::Reply;
use crate::world::{Served, World};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tests::cloud::{networks, post};
use tests::servers::with;
use tests::{Call, Job};

/// The names of all servers. Each has its own address.
const HOSTS: [&str; 14] = [
    "api", "id", "oauth", "form", "basic", "bearer", "header", "mtls", "open", "registry", "signed", "machine", "role",
    "issuer",
];

/// All servers, as contacts.
pub(super) const SERVERS: &[&str] = &[
    "dns",
    "api:443",
    "5.6.7.11:443",
    "5.6.7.12:443",
    "5.6.7.13:443",
    "5.6.7.14:443",
    "5.6.7.15:443",
    "5.6.7.16:443",
    "5.6.7.17:443",
    "5.6.7.18:443",
    "5.6.7.19:25777",
    "5.6.7.20:443",
    "5.6.7.21:443",
    "5.6.7.22:443",
    "5.6.7.23:443",
    "169.254.169.254:80",
];

/// The operations of `use_everything` that return a status.
const ANSWERED: [std::ops::RangeInclusive<usize>; 2] = [6..=17, 21..=23];

pub(super) struct Scenario {
    pub(super) secrets: SecretSet,
    pub(super) job: Job,
    pub(super) served: Value,
    pub(super) context: Value,
    pub(super) env: Value,
    /// A variable in the environment of the process.
    pub(super) process: (String, String),
    pub(super) search: Search,
}

/// The secrets that are searched for in the guest's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// None, where time is short.
    Nothing,
    /// Every secret, in plain text and in JSON.
    Plain,
    /// Every secret, in all encodings.
    All,
}

impl Scenario {
    /// Creates a job. Each turn puts secrets of other shapes into the fields.
    pub(super) fn new(world: &World, turn: usize) -> Scenario {
        let mut secrets = SecretSet::new(turn);
        let (properties, config) = config(world, &mut secrets);
        let job = Job::default().policy(policy(world)).properties(properties).configure(|known| {
            for (key, value) in config.as_object().into_iter().flatten() {
                known[key] = value.clone();
            }
        });
        let (context, env) = (context(&mut secrets), env(&mut secrets));
        let process = ("AWS_SECRET_ACCESS_KEY".to_owned(), secrets.generate("process", Fit::Header));
        let served = served(&mut secrets);
        Scenario { secrets, job, served, context, env, process, search: Search::Plain }
    }

    /// Sets up the names and answers of all servers.
    pub(super) fn set_up(&self, world: &World) -> Result<(), String> {
        let address = |(number, host): (usize, &&str)| {
            let number = u8::try_from(number).unwrap_or_default();
            (format!("{host}.iaas.test"), vec![Reply::Addresses(vec![[5, 6, 7, 10 + number].into()])])
        };
        let names: HashMap<String, Vec<Reply>> = HOSTS.iter().enumerate().map(address).collect();
        world.reset(names, Served::new(&self.served))
    }

    pub(super) fn call(&self, method: &str, arguments: Value) -> Call<'_> {
        let call = self.job.call(method, arguments).env(&self.process.0, &self.process.1);
        let context = self.context.as_object().into_iter().flatten();
        context.fold(call, |call, (key, value)| call.context(key, value.clone()))
    }

    pub(super) fn create_vm(&self, operations: &[Value]) -> Call<'_> {
        let arguments = json!(["agent-1", "stemcell-1", {"probe": operations}, networks(), ["disk-1"], self.env]);
        self.call("create_vm", arguments)
    }

    /// Returns operations that use every capability, search the guest's memory for every
    /// secret, and log the results.
    pub(super) fn use_everything(&self) -> Vec<Value> {
        let get = |host: &str, path: &str| json!({"op": "http", "url": format!("https://{host}.iaas.test{path}")});
        let api = |path: &str| format!("https://api.iaas.test/v1/{path}");
        let typed = |path: &str, kind: &str, body: &str| json!({"op": "http", "method": "POST", "url": api(path), "headers": {"Content-Type": kind}, "body": body});
        let part = "--X\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{{props.slots.part}}\r\n--X--\r\n";
        let mut operations = vec![
            json!({"op": "config"}),
            json!({"op": "env"}),
            json!({"op": "args"}),
            json!({"op": "stdin"}),
            json!({"op": "call"}),
            json!({"op": "agent.bootstrap", "vm_name": "vm-2", "encodings": ["base64"]}),
            post(&api("vms"), &json!({"server": {"name": "vm-2", "user_data": "{{5.ok}}"}})),
            post(&api("keys"), &json!({})),
            with(get("api", "/v1/use"), json!({"headers": {"X-Key": "{{7.ok.body.key}}"}})),
            get("basic", "/"),
            get("bearer", "/"),
            get("header", "/"),
            get("mtls", "/"),
            get("form", "/"),
            post(&api("slot/json"), &json!({"data": "{{props.slots.json}}"})),
            typed("slot/form", "application/x-www-form-urlencoded", "a=b&data={{props.slots.form}}"),
            typed("slot/xml", "text/xml", "<r><data>{{props.slots.xml}}</data></r>"),
            typed("slot/part", "multipart/form-data; boundary=X", part),
            json!({"op": "session", "name": "main"}),
            json!({"op": "log", "level": "debug", "message": "{{0.ok|json}} {{1.ok|json}} {{6.ok|json}} {{7.ok|json}} {{18.ok|json}} {{args.env|json}}"}),
            json!({"op": "print", "text": "{{0.ok|base64}} {{5.ok}} {{7.ok|hex}}", "stream": "stderr"}),
            get("signed", "/"),
            get("machine", "/"),
            get("role", "/"),
        ];
        let first = operations.len();
        operations.extend(self.search_operations());
        let found: Vec<String> = (first..operations.len()).map(|at| format!("{{{{{at}.ok.count}}}}")).collect();
        // An exposed property must be found, which proves that the search works.
        let control = operations.len();
        operations.push(json!({"op": "find", "reversed": EXPOSED.chars().rev().collect::<String>()}));
        let statuses: Vec<String> =
            ANSWERED.into_iter().flatten().map(|at| format!("{{{{{at}.ok.status}}}}")).collect();
        for (what, values) in
            [("answered", statuses), ("found", found), ("control", vec![format!("{{{{{control}.ok.count}}}}")])]
        {
            operations.push(json!({"op": "log", "message": format!("{what}: {};", values.join(" "))}));
        }
        operations
    }

    /// Returns operations that search the guest's memory for the secrets.
    pub(super) fn search_operations(&self) -> Vec<Value> {
        match self.search {
            Search::Nothing => Vec::new(),
            search => self.secrets.needles().search_operations(search == Search::All),
        }
    }

    /// Fails unless the lines that `use_everything` logs are as expected.
    pub(super) fn check_logged_results(&self, stderr: &str) -> Result<(), String> {
        let line = |what: &str| {
            // The line may be JSON, with the text as its message.
            let after = |line: &'_ str| line.split_once(&format!("{what}: ")).map(|(_, rest)| rest.to_owned());
            let logged = stderr.lines().filter(|line| line.contains(" info: ") || line.contains("\"level\":\"info\""));
            let line = logged.filter_map(after).find_map(|rest| Some(rest.split_once(';')?.0.to_owned()));
            line.ok_or_else(|| format!("the guest did not log what was {what}: {stderr}"))
        };
        let answered = line("answered")?;
        if answered.split(' ').any(|status| status != "200") {
            return Err(format!("not every server answered: {answered}"));
        }
        let found = line("found")?;
        let found: Vec<&str> = found.split_whitespace().collect();
        if found.iter().any(|count| *count != "0") || found.len() != self.search_operations().len() {
            return Err(format!("secrets in the guest's memory: {found:?}"));
        }
        if line("control")?.parse::<u64>().unwrap_or_default() == 0 {
            return Err("an exposed property is not found in the guest's memory".to_owned());
        }
        Ok(())
    }

    /// Returns the names of the secrets that each host received. Fails if one of them
    /// does not belong there.
    pub(super) fn received_secrets(&self, world: &World) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for arrived in world.requests() {
            let names = self.secrets.names_in(&arrived.request.raw);
            let allowed = self.allowed_at(&arrived.host);
            if let Some(name) = names.iter().find(|name| !allowed.contains(*name)) {
                return Err(format!("`{name}` arrived with {}", arrived.summary()));
            }
            all.entry(arrived.host).or_default().extend(names);
        }
        Ok(all)
    }

    /// Returns the names of the secrets that a host may receive.
    pub(super) fn allowed_at(&self, host: &str) -> BTreeSet<String> {
        let prefixes: &[&str] = match host.strip_suffix(".iaas.test").unwrap_or(host) {
            "api" => &["token.main", "captured", "slots.", "agent.", "env.", "registry.agents"],
            "id" => &["auth.", "api_key", "extra"],
            "oauth" => &["oauth."],
            "form" => &["token.form"],
            "basic" => &["basic."],
            "bearer" => &["bearer"],
            "header" => &["header"],
            // The secret keys are not sent.
            "signed" | "issuer" => &["static.id", "static.token"],
            "machine" => &["machine.id", "machine.token"],
            "role" => &["role.id", "role.token"],
            METADATA => &["machine.metadata"],
            "registry" => &["registry.user", "registry.password", "agent.", "env.", "stored."],
            _ => &[],
        };
        let belongs = |name: &&String| prefixes.iter().any(|prefix| name.starts_with(prefix));
        self.secrets.all().iter().map(|(name, _)| name).filter(belongs).cloned().collect()
    }
}

/// How the names of secrets begin that the host obtains from a server and keeps for later calls. The token of the
/// metadata service has such a name, too, and is not kept.
pub(super) const OBTAINED: [&str; 3] = ["token.", "machine.", "role."];

/// The metadata service.
const METADATA: &str = "169.254.169.254";

/// The one property that guests see.
pub(super) const EXPOSED: &str = "exposed-to-the-guest";

fn config(world: &World, secrets: &mut SecretSet) -> (Value, Value) {
    let client = world.client();
    for (number, line) in client.key.lines().filter(|line| !line.starts_with('-')).enumerate() {
        secrets.add(&format!("client.key.{number}"), line);
    }
    let number = 100_000_000_000_000_000 + secrets.number() % 100_000_000_000_000_000;
    secrets.add("number", &number.to_string());
    let mut any = |name: &str| secrets.generate(name, Fit::Any);
    let mut properties = json!({
        "region": EXPOSED, "number": number, "yes": true, "nothing": null,
        "auth": {"user": any("auth.user"), "password": any("auth.password")}, "api_key": any("api_key"),
        "innocent": any("innocent"), "zones": [any("zones.0"), {"deep": [[any("zones.1.deep")]]}],
        "oauth": {"id": any("oauth.id"), "secret": any("oauth.secret")},
        "slots": {"json": any("slots.json"), "form": any("slots.form"), "xml": any("slots.xml"), "part": any("slots.part")},
        "client": {"cert": client.certificate, "key": client.key}, "hidden": any("hidden"),
    });
    let mut line = |name: &str| secrets.generate(name, Fit::Header);
    properties["extra"] = json!(line("extra"));
    properties["basic"] = json!({"user": line("basic.user"), "password": line("basic.password")});
    properties["bearer"] = json!(line("bearer"));
    properties["header"] = json!(line("header"));
    let registry = json!({"user": line("registry.user"), "password": line("registry.password")});
    let mut key = |name: &str| secrets.generate(name, Fit::Key);
    properties["static"] =
        json!({"id": key("static.id"), "secret": key("static.secret"), "token": key("static.token")});
    let mut url = |name: &str| secrets.generate(name, Fit::Url);
    properties["url"] = json!(format!("https://u:{}@cloud.test/x", url("url")));
    let agents = format!("https://agent:{}@10.0.0.6:25777", url("registry.agents"));
    let registry = with(
        registry,
        json!({"endpoint": "https://registry.iaas.test:25777", "ca": world.authority(), "agent_endpoint": agents}),
    );
    let (mbus, blobs) = (url("agent.mbus"), url("agent.blobstore.endpoint"));
    let mut any = |name: &str| secrets.generate(name, Fit::Any);
    let agent = json!({
        "mbus": format!("nats://nats:{mbus}@10.0.0.6:4222"), "ntp": [any("agent.ntp")],
        "blobstore": {"provider": "s3", "options": {
            "access_key_id": any("agent.blobstore.id"), "secret_access_key": any("agent.blobstore.key"),
            "endpoint": format!("https://u:{blobs}@10.0.0.9:25250"), "credentials": {"deep": [any("agent.blobstore.deep")]},
        }},
    });
    (
        properties,
        // Some cases make several calls that leak.
        json!({
            "agent": agent, "registry": registry, "log": {"level": "debug"}, "audit": {"path": "../audit.log"},
            "leaks": "end",
        }),
    )
}

fn context(secrets: &mut SecretSet) -> Value {
    json!({
        "hidden": secrets.generate("context.hidden", Fit::Any), "cpi_password": secrets.generate("context.password", Fit::Any),
        "cpi": {"name": secrets.generate("context.name", Fit::Any), "keys": [secrets.generate("context.keys", Fit::Any)]},
    })
}

fn env(secrets: &mut SecretSet) -> Value {
    let mut any = |name: &str| secrets.generate(name, Fit::Any);
    let cert = json!({"ca": any("env.ca"), "certificate": any("env.certificate"), "private_key": any("env.key")});
    let options = json!({"password": any("env.blobs"), "user": "agent", "list": [any("env.list")]});
    let other = json!({"secret": any("env.other")});
    let urls = [format!("nats://n:{}@10.0.0.6:4222", secrets.generate("env.mbus", Fit::Url))];
    let password = secrets.generate("env.password", Fit::Any);
    json!({"bosh": {"group": "g", "groups": ["g"], "tags": {"t": "v"}, "password": password, "mbus": {"cert": cert, "urls": urls}, "blobstores": [{"provider": "dav", "options": options}]}, "other": other})
}

fn policy(world: &World) -> Value {
    let tls = json!({"ca": world.authority()});
    let grant = |host: &str, keys: Value| {
        with(
            json!({"id": host, "to": format!("https://{host}.iaas.test"), "methods": ["GET", "POST"], "paths": ["/**"], "tls": tls}),
            keys,
        )
    };
    let login = |host: &str, keys: Value| {
        with(json!({"to": format!("https://{host}.iaas.test"), "path": "/tokens", "tls": tls}), keys)
    };
    let sigv4 = |credentials: &str| json!({"auth": {"sigv4": {"service": "compute", "region": "eu-central-1", "credentials": credentials}}});
    let slot = |kind: &str| json!({"method": "POST", "path": format!("/v1/slot/{kind}"), "place": match kind { "json" => "json:/data".to_owned(), "xml" => "xml:/r/data".to_owned(), kind => format!("{kind}:data") }, "takes": [format!("slots.{kind}")]});
    json!({
        "version": 1,
        "expose": ["region"],
        "credentials": {
            "main": {"static": {"access_key_id": "${static.id}", "secret_access_key": "${static.secret}", "session_token": "${static.token}"}},
            "machine": {"metadata": {}},
            "role": {"assume_role": {"role": "arn:cloud:iam::123456789012:role/cpi", "with": "main", "to": "https://issuer.iaas.test", "region": "eu-central-1", "tls": tls}},
        },
        "logins": {
            "main": login("id", json!({"body": {"user": "${auth.user}", "password": "${auth.password}", "nested": [{"key": "${api_key}"}]}, "headers": {"X-Extra": "${extra}"},
                "token": "header:X-Subject-Token", "expires": {"in_seconds": "json:/expires_in"}, "send": {"header": "X-Auth-Token"}, "show": {"catalog": "json:/catalog"}})),
            "form": login("oauth", json!({"form": {"client_id": "${oauth.id}", "client_secret": "${oauth.secret}"}, "token": "json:/access_token", "expires": {"in_seconds": "json:/expires_in"}, "send": {"header": "Authorization", "prefix": "Bearer "}})),
        },
        "http": [
            grant("api", json!({"auth": {"login": "main"},
                "slots": [{"method": "POST", "path": "/v1/vms", "place": "json:/server/user_data"}, {"method": "GET", "path": "/v1/use", "place": "header:X-Key", "takes": ["key"]}, slot("json"), slot("form"), slot("xml"), slot("part")],
                "captures": [{"method": "POST", "path": "/v1/keys", "place": "json:/key", "as": "key"}]})),
            grant("form", json!({"auth": {"login": "form"}})),
            grant("basic", json!({"auth": {"basic": {"user": "${basic.user}", "password": "${basic.password}"}}})),
            grant("bearer", json!({"auth": {"bearer": "${bearer}"}})),
            grant("header", json!({"auth": {"header": {"name": "X-Api-Key", "value": "Key ${header}"}}})),
            grant("mtls", json!({"tls": with(tls.clone(), json!({"client": {"cert": "${client.cert}", "key": "${client.key}"}}))})),
            grant("signed", sigv4("main")),
            grant("machine", sigv4("machine")),
            grant("role", sigv4("role")),
            grant("open", json!({})),
        ],
    })
}

/// The time at which temporary keys expire.
const EXPIRATION: &str = "2999-01-01T00:00:00Z";

fn served(secrets: &mut SecretSet) -> Value {
    let mut line = |name: &str| secrets.generate(name, Fit::Header);
    let (main, form, captured) = (line("token.main"), line("token.form"), line("captured"));
    let (admin, cookie, key) = (line("server.admin"), line("server.cookie"), line("server.key"));
    let stored = json!({
        "agent_id": "agent-1", "vm": {"name": "vm-1"}, "mbus": format!("nats://n:{}@10.0.0.6:4222", secrets.generate("stored.mbus", Fit::Url)),
        "env": {"bosh": {"password": secrets.generate("stored.password", Fit::Any), "list": [secrets.generate("stored.list", Fit::Any)]}},
        "blobstore": {"options": {"secret_access_key": secrets.generate("stored.blobs", Fit::Any)}},
        "disks": {"system": "/dev/sda", "persistent": {}}, "networks": {},
    });
    let mut part = |name: &str| secrets.generate(name, Fit::Key);
    let metadata = part("machine.metadata");
    let machine = json!({
        "Code": "Success", "AccessKeyId": part("machine.id"), "SecretAccessKey": part("machine.secret"),
        "Token": part("machine.token"), "Expiration": EXPIRATION,
    });
    let role = format!(
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>{}</AccessKeyId><SecretAccessKey>{}</SecretAccessKey>\
         <SessionToken>{}</SessionToken><Expiration>{EXPIRATION}</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
        part("role.id"),
        part("role.secret"),
        part("role.token"),
    );
    let json = json!({"Content-Type": "application/json"});
    let answer = |body: Value| json!({"headers": json, "body": body});
    json!({
        "id.iaas.test": {"headers": {"Content-Type": "application/json", "X-Subject-Token": main}, "body": {"catalog": ["https://cloud.test"], "expires_in": 3600, "user": {"key": key}}},
        "oauth.iaas.test": answer(json!({"access_token": form, "expires_in": 3600})),
        "api.iaas.test/v1/keys": answer(json!({"key": captured})),
        "api.iaas.test/v1/vms": {"headers": {"Content-Type": "application/json", "Set-Cookie": format!("s={cookie}")}, "body": {"server": {"id": "vm-2", "adminPass": admin}}},
        "mtls.iaas.test": {"tls": "client", "body": "in"},
        "issuer.iaas.test": {"headers": {"Content-Type": "text/xml"}, "body": role},
        "169.254.169.254/latest/api/token": {"body": metadata},
        "169.254.169.254/latest/meta-data/iam/security-credentials/": {"body": "cpi-role"},
        "169.254.169.254/latest/meta-data/iam/security-credentials/cpi-role": {"body": machine},
        "registry.iaas.test/instances/vm-1/settings": answer(json!({"status": "ok", "settings": stored.to_string()})),
        "registry.iaas.test/instances/vm-2/settings": [{"status": 404}, {"status": 200}],
    })
}
