//! A job with a secret in every field that can hold one, the clouds it speaks
//! to, and a guest that uses all of it.

use super::garden::{Fit, Garden};
use crate::dns::Reply;
use crate::world::{Served, World};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tests::cloud::{networks, post};
use tests::servers::with;
use tests::{Call, Job};

/// Everybody there is, each at an address of its own.
const HOSTS: [&str; 10] = ["api", "id", "oauth", "form", "basic", "bearer", "header", "mtls", "open", "registry"];

/// All of them, as contacts.
pub(super) const CLOUDS: &[&str] = &[
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
];

/// Operations of `visits` that are answered with a status.
const ANSWERED: std::ops::RangeInclusive<usize> = 6..=17;

pub(super) struct Scene {
    pub(super) garden: Garden,
    pub(super) job: Job,
    pub(super) served: Value,
    pub(super) context: Value,
    pub(super) env: Value,
    /// What the process finds in its environment.
    pub(super) process: (String, String),
    pub(super) search: Search,
}

/// What is looked for in the guest's memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Search {
    /// Nothing, where time is short.
    Nothing,
    /// Every secret, as it is and in JSON.
    Plain,
    /// In all forms.
    All,
}

impl Scene {
    /// Every turn puts other shapes into the fields.
    pub(super) fn new(world: &World, turn: usize) -> Scene {
        let mut garden = Garden::new(turn);
        let (properties, config) = config(world, &mut garden);
        let job = Job::default().policy(policy(world)).properties(properties).configure(|known| {
            for (key, value) in config.as_object().into_iter().flatten() {
                known[key] = value.clone();
            }
        });
        let (context, env) = (context(&mut garden), env(&mut garden));
        let process = ("AWS_SECRET_ACCESS_KEY".to_owned(), garden.plant("process", Fit::Header));
        let served = served(&mut garden);
        Scene { garden, job, served, context, env, process, search: Search::Plain }
    }

    pub(super) fn set(&self, world: &World) -> Result<(), String> {
        let address = |(number, host): (usize, &&str)| {
            let number = u8::try_from(number).unwrap_or_default();
            (format!("{host}.iaas.test"), vec![Reply::Addresses(vec![[5, 6, 7, 10 + number].into()])])
        };
        let names: HashMap<String, Vec<Reply>> = HOSTS.iter().enumerate().map(address).collect();
        world.set(names, Served::new(&self.served))
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

    /// All that a guest can ask for, then a look for every secret in its memory, and
    /// lines on stderr that say what came of it.
    pub(super) fn visits(&self) -> Vec<Value> {
        let get = |host: &str, path: &str| json!({"op": "http", "url": format!("https://{host}.iaas.test{path}")});
        let api = |path: &str| format!("https://api.iaas.test/v1/{path}");
        let typed = |path: &str, kind: &str, body: &str| json!({"op": "http", "method": "POST", "url": api(path), "headers": {"Content-Type": kind}, "body": body});
        let part = "--X\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{{props.slots.part}}\r\n--X--\r\n";
        let mut visits = vec![
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
        ];
        let first = visits.len();
        visits.extend(self.searches());
        let found: Vec<String> = (first..visits.len()).map(|at| format!("{{{{{at}.ok.count}}}}")).collect();
        // An exposed property is in there: the search does find what there is.
        let control = visits.len();
        visits.push(json!({"op": "find", "reversed": EXPOSED.chars().rev().collect::<String>()}));
        let statuses: Vec<String> = ANSWERED.map(|at| format!("{{{{{at}.ok.status}}}}")).collect();
        for (what, values) in
            [("answered", statuses), ("found", found), ("control", vec![format!("{{{{{control}.ok.count}}}}")])]
        {
            visits.push(json!({"op": "log", "message": format!("{what}: {};", values.join(" "))}));
        }
        visits
    }

    pub(super) fn searches(&self) -> Vec<Value> {
        match self.search {
            Search::Nothing => Vec::new(),
            search => self.garden.needles().operations(search == Search::All),
        }
    }

    /// Those lines, as they must be.
    pub(super) fn held(&self, stderr: &str) -> Result<(), String> {
        let line = |what: &str| {
            // Lines of JSON have it as their message.
            let after = |line: &'_ str| line.split_once(&format!("{what}: ")).map(|(_, rest)| rest.to_owned());
            let told = stderr.lines().filter(|line| line.contains(" info: ") || line.contains("\"level\":\"info\""));
            let line = told.filter_map(after).find_map(|rest| Some(rest.split_once(';')?.0.to_owned()));
            line.ok_or_else(|| format!("the guest did not say what was {what}: {stderr}"))
        };
        let answered = line("answered")?;
        if answered.split(' ').any(|status| status != "200") {
            return Err(format!("not everybody answered: {answered}"));
        }
        let found = line("found")?;
        let found: Vec<&str> = found.split_whitespace().collect();
        if found.iter().any(|count| *count != "0") || found.len() != self.searches().len() {
            return Err(format!("secrets in the guest's memory: {found:?}"));
        }
        if line("control")?.parse::<u64>().unwrap_or_default() == 0 {
            return Err("an exposed property is not found in the guest's memory".to_owned());
        }
        Ok(())
    }

    /// What arrived holds no secret but those that belong there; answers which ones
    /// came to whom.
    pub(super) fn arrived(&self, world: &World) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for arrived in world.arrived() {
            let names = self.garden.names_in(&arrived.request.raw);
            let allowed = self.belonging(&arrived.host);
            if let Some(name) = names.iter().find(|name| !allowed.contains(*name)) {
                return Err(format!("`{name}` came to {}", arrived.summary()));
            }
            all.entry(arrived.host).or_default().extend(names);
        }
        Ok(all)
    }

    /// Names of the secrets that may come to a host.
    pub(super) fn belonging(&self, host: &str) -> BTreeSet<String> {
        let prefixes: &[&str] = match host.split('.').next().unwrap_or_default() {
            "api" => &["token.main", "captured", "slots.", "agent.", "env.", "registry.agents"],
            "id" => &["auth.", "api_key", "extra"],
            "oauth" => &["oauth."],
            "form" => &["token.form"],
            "basic" => &["basic."],
            "bearer" => &["bearer"],
            "header" => &["header"],
            "registry" => &["registry.user", "registry.password", "agent.", "env.", "stored."],
            _ => &[],
        };
        let belongs = |name: &&String| prefixes.iter().any(|prefix| name.starts_with(prefix));
        self.garden.planted().iter().map(|(name, _)| name).filter(belongs).cloned().collect()
    }
}

/// The one property that guests see.
pub(super) const EXPOSED: &str = "exposed-to-the-guest";

fn config(world: &World, garden: &mut Garden) -> (Value, Value) {
    let client = world.client();
    for (number, line) in client.key.lines().filter(|line| !line.starts_with('-')).enumerate() {
        garden.note(&format!("client.key.{number}"), line);
    }
    let number = 100_000_000_000_000_000 + garden.number() % 100_000_000_000_000_000;
    garden.note("number", &number.to_string());
    let mut any = |name: &str| garden.plant(name, Fit::Any);
    let mut properties = json!({
        "region": EXPOSED, "number": number, "yes": true, "nothing": null,
        "auth": {"user": any("auth.user"), "password": any("auth.password")}, "api_key": any("api_key"),
        "innocent": any("innocent"), "zones": [any("zones.0"), {"deep": [[any("zones.1.deep")]]}],
        "oauth": {"id": any("oauth.id"), "secret": any("oauth.secret")},
        "slots": {"json": any("slots.json"), "form": any("slots.form"), "xml": any("slots.xml"), "part": any("slots.part")},
        "client": {"cert": client.certificate, "key": client.key}, "hidden": any("hidden"),
    });
    let mut line = |name: &str| garden.plant(name, Fit::Header);
    properties["extra"] = json!(line("extra"));
    properties["basic"] = json!({"user": line("basic.user"), "password": line("basic.password")});
    properties["bearer"] = json!(line("bearer"));
    properties["header"] = json!(line("header"));
    let registry = json!({"user": line("registry.user"), "password": line("registry.password")});
    let mut url = |name: &str| garden.plant(name, Fit::Url);
    properties["url"] = json!(format!("https://u:{}@cloud.test/x", url("url")));
    let agents = format!("https://agent:{}@10.0.0.6:25777", url("registry.agents"));
    let registry = with(
        registry,
        json!({"endpoint": "https://registry.iaas.test:25777", "ca": world.authority(), "agent_endpoint": agents}),
    );
    let (mbus, blobs) = (url("agent.mbus"), url("agent.blobstore.endpoint"));
    let mut any = |name: &str| garden.plant(name, Fit::Any);
    let agent = json!({
        "mbus": format!("nats://nats:{mbus}@10.0.0.6:4222"), "ntp": [any("agent.ntp")],
        "blobstore": {"provider": "s3", "options": {
            "access_key_id": any("agent.blobstore.id"), "secret_access_key": any("agent.blobstore.key"),
            "endpoint": format!("https://u:{blobs}@10.0.0.9:25250"), "credentials": {"deep": [any("agent.blobstore.deep")]},
        }},
    });
    (
        properties,
        json!({"agent": agent, "registry": registry, "log": {"level": "debug"}, "audit": {"path": "../audit.log"}}),
    )
}

fn context(garden: &mut Garden) -> Value {
    json!({
        "hidden": garden.plant("context.hidden", Fit::Any), "cpi_password": garden.plant("context.password", Fit::Any),
        "cpi": {"name": garden.plant("context.name", Fit::Any), "keys": [garden.plant("context.keys", Fit::Any)]},
    })
}

fn env(garden: &mut Garden) -> Value {
    let mut any = |name: &str| garden.plant(name, Fit::Any);
    let cert = json!({"ca": any("env.ca"), "certificate": any("env.certificate"), "private_key": any("env.key")});
    let options = json!({"password": any("env.blobs"), "user": "agent", "list": [any("env.list")]});
    let other = json!({"secret": any("env.other")});
    let urls = [format!("nats://n:{}@10.0.0.6:4222", garden.plant("env.mbus", Fit::Url))];
    let password = garden.plant("env.password", Fit::Any);
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
    let slot = |kind: &str| json!({"method": "POST", "path": format!("/v1/slot/{kind}"), "place": match kind { "json" => "json:/data".to_owned(), kind => format!("{kind}:data") }, "takes": [format!("slots.{kind}")]});
    json!({
        "version": 1,
        "expose": ["region"],
        "logins": {
            "main": login("id", json!({"body": {"user": "${auth.user}", "password": "${auth.password}", "nested": [{"key": "${api_key}"}]}, "headers": {"X-Extra": "${extra}"},
                "token": "header:X-Subject-Token", "send": {"header": "X-Auth-Token"}, "show": {"catalog": "json:/catalog"}})),
            "form": login("oauth", json!({"form": {"client_id": "${oauth.id}", "client_secret": "${oauth.secret}"}, "token": "json:/access_token", "send": {"header": "Authorization", "prefix": "Bearer "}})),
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
            grant("open", json!({})),
        ],
    })
}

fn served(garden: &mut Garden) -> Value {
    let mut line = |name: &str| garden.plant(name, Fit::Header);
    let (main, form, captured) = (line("token.main"), line("token.form"), line("captured"));
    let (admin, cookie, key) = (line("server.admin"), line("server.cookie"), line("server.key"));
    let stored = json!({
        "agent_id": "agent-1", "vm": {"name": "vm-1"}, "mbus": format!("nats://n:{}@10.0.0.6:4222", garden.plant("stored.mbus", Fit::Url)),
        "env": {"bosh": {"password": garden.plant("stored.password", Fit::Any), "list": [garden.plant("stored.list", Fit::Any)]}},
        "blobstore": {"options": {"secret_access_key": garden.plant("stored.blobs", Fit::Any)}},
        "disks": {"system": "/dev/sda", "persistent": {}}, "networks": {},
    });
    let json = json!({"Content-Type": "application/json"});
    let answer = |body: Value| json!({"headers": json, "body": body});
    json!({
        "id.iaas.test": {"headers": {"Content-Type": "application/json", "X-Subject-Token": main}, "body": {"catalog": ["https://cloud.test"], "user": {"key": key}}},
        "oauth.iaas.test": answer(json!({"access_token": form, "expires_in": 3600})),
        "api.iaas.test/v1/keys": answer(json!({"key": captured})),
        "api.iaas.test/v1/vms": {"headers": {"Content-Type": "application/json", "Set-Cookie": format!("s={cookie}")}, "body": {"server": {"id": "vm-2", "adminPass": admin}}},
        "mtls.iaas.test": {"tls": "client", "body": "in"},
        "registry.iaas.test/instances/vm-1/settings": answer(json!({"status": "ok", "settings": stored.to_string()})),
        "registry.iaas.test/instances/vm-2/settings": [{"status": 404}, {"status": 200}],
    })
}
