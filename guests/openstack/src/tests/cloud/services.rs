//! Processes the requests.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::Answer;

use super::Cloud;

/// The number of groups in one page.
const PAGE: usize = 2;

fn missing() -> Answer {
    Answer::json(404, json!({"itemNotFound": {"code": 404, "message": "could not be found"}}))
}

fn refused(status: u16, message: &str) -> Answer {
    Answer::json(status, json!({"badRequest": {"code": status, "message": message}}))
}

fn parameter<'q>(query: &'q str, name: &str) -> Option<String> {
    let found: Option<&'q str> = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let codes = [("%3D", "="), ("%5E", ""), ("%24", ""), ("%7B", "{"), ("%22", "\""), ("%3A", ":"), ("%7D", "}")];
    found.map(|value| codes.iter().fold(value.to_owned(), |value, (code, text)| value.replace(code, text)))
}

impl Cloud {
    pub(super) fn process(&mut self, method: &str, path: &str, query: &str, body: &Value) -> Answer {
        let parts: Vec<&str> = path.split('/').collect();
        match (method, parts.as_slice()) {
            ("GET", [kind, "detail"]) => self.list(kind, query),
            ("GET", [kind @ ("ports" | "networks" | "subnets" | "security-groups" | "floatingips" | "snapshots")]) => {
                self.list(kind, query)
            }
            ("GET", [""]) => Answer::json(200, json!({"version": {"min_version": "2.1", "version": self.newest}})),
            ("GET", ["os-server-groups"]) => {
                let asked = parameter(query, "offset").map_or(0, |offset| offset.parse().unwrap());
                let skip = if self.same_page { 0 } else { asked };
                let page: Vec<Value> = self.all("groups").into_iter().skip(skip).take(PAGE).collect();
                if let Some((id, group)) = self.late_group.take_if(|_| page.is_empty()) {
                    self.put("groups", &id, group);
                }
                Answer::json(200, json!({"server_groups": page}))
            }
            ("GET", ["pools"]) => self.list("pools", query),
            ("GET", ["pools", _, "members"]) => self.list("members", query),
            ("GET", ["pools", _, "members", id]) => self.show("members", id),
            ("POST", ["pools", pool, "members"]) => self.add_member(pool, &body["member"]),
            ("DELETE", ["pools", _, "members", id]) if self.busy => self.immutable(id),
            ("DELETE", ["pools", _, "members", id]) => self.change("members", id, |member| {
                member["provisioning_status"] = json!("PENDING_DELETE");
                member["deleting"] = json!(true);
            }),
            ("GET", ["os-keypairs", name]) if *name != "bosh" => missing(),
            ("GET", ["os-keypairs", name]) => Answer::json(200, json!({"keypair": {"name": name}})),
            ("GET", ["servers", id, "os-volume_attachments"]) => self.attachments(id),
            ("GET", [kind, id]) => self.show(kind, id),
            ("POST", ["servers"]) => self.create_server(body),
            ("POST", ["ports"]) => self.create_port(body),
            ("POST", ["os-server-groups"]) => {
                let mut group = body["server_group"].clone();
                group["members"] = json!(self.own_members);
                let id = self.create("groups", group);
                for (id, group) in std::mem::take(&mut self.parallel_groups) {
                    self.put("groups", &id, group);
                }
                Answer::json(200, json!({"server_group": self.get("groups", &id)}))
            }
            ("POST", [kind]) => self.create_other(kind, body),
            ("POST", ["servers", id, "os-volume_attachments"]) => self.attach(id, &body["volumeAttachment"]),
            ("POST", ["servers", id, "action"]) if body["forceDelete"] == "now" => self.delete_server(id),
            ("POST", ["servers", id, "action"]) => {
                self.change("servers", id, |server| server["status"] = json!("REBOOT"))
            }
            ("POST", ["volumes", id, "action"]) => self.act(id, body),
            ("POST", [kind, id, "metadata"]) => self.change(kind, id, |thing| {
                for (key, value) in body["metadata"].as_object().unwrap() {
                    thing["metadata"][key] = value.clone();
                }
            }),
            ("PUT", ["servers", id]) => {
                self.change("servers", id, |server| server["name"] = body["server"]["name"].clone())
            }
            ("PUT", ["subnets", id]) => self.change("subnets", id, |subnet| {
                for (key, value) in body["subnet"].as_object().unwrap() {
                    subnet[key] = value.clone();
                }
            }),
            ("PUT", ["floatingips", id]) => {
                self.change("floatingips", id, |ip| ip["port_id"] = body["floatingip"]["port_id"].clone())
            }
            ("PUT", ["ports", id, "tags", tag]) => self.change("ports", id, |port| {
                let mut tags = port["tags"].as_array().cloned().unwrap_or_default();
                tags.push(json!(tag));
                port["tags"] = json!(tags);
            }),
            ("PUT", ["images", id, "file"]) => {
                let status = if self.slow_images { "saving" } else { "active" };
                self.change("images", id, |image| {
                    image["status"] = json!(status);
                    image["data"] = body["image"].clone();
                })
            }
            ("DELETE", ["servers", server, "os-volume_attachments", volume]) => self.detach(server, volume),
            ("DELETE", ["os-server-groups", id]) => self.delete("groups", id),
            ("DELETE", [kind, id]) => self.delete(kind, id),
            _ => panic!("the cloud does not know {method} {path}"),
        }
    }

    fn create(&mut self, kind: &str, thing: Value) -> String {
        self.next += 1;
        let id = thing["id"].as_str().map_or_else(|| format!("{kind}-{}", self.next), str::to_owned);
        self.put(kind, &id, thing);
        id
    }

    fn change(&mut self, kind: &str, id: &str, change: impl FnOnce(&mut Value)) -> Answer {
        match self.things.get_mut(kind).and_then(|things| things.get_mut(id)) {
            None => missing(),
            Some(thing) => {
                change(thing);
                Answer::json(200, json!({}))
            }
        }
    }

    fn list(&mut self, kind: &str, query: &str) -> Answer {
        let wanted = |thing: &Value| {
            ["id", "name", "network_id", "device_id", "floating_ip_address", "address"]
                .iter()
                .all(|key| parameter(query, key).is_none_or(|value| thing[*key] == value.as_str()))
                && parameter(query, "fixed_ips")
                    .is_none_or(|ip| thing["fixed_ips"][0]["ip_address"] == ip.strip_prefix("ip_address=").unwrap())
                && parameter(query, "tags")
                    .is_none_or(|tag| thing["tags"].as_array().is_some_and(|tags| tags.contains(&json!(tag))))
                && parameter(query, "metadata")
                    .is_none_or(|pair| serde_json::from_str::<Value>(&pair).unwrap() == thing["metadata"])
        };
        let mut found: Vec<Value> = self.all(kind).into_iter().filter(wanted).collect();
        let key = kind.replace('-', "_");
        let mut answer = json!({});
        if kind == "security-groups" {
            let marker = parameter(query, "marker").filter(|_| !self.same_page).unwrap_or_default();
            found.retain(|group| group["id"].as_str().unwrap() > marker.as_str());
            if found.len() > PAGE {
                answer[format!("{key}_links")] = json!([{"rel": "next", "href": "https://neutron.test/"}]);
            }
            found.truncate(PAGE);
        }
        answer[key] = json!(found);
        Answer::json(200, answer)
    }

    /// Returns an object, and changes its status for the next read.
    fn show(&mut self, kind: &str, id: &str) -> Answer {
        let thing = self.get(kind, id);
        if thing.is_null() {
            return missing();
        }
        let singular = kind.trim_end_matches('s');
        let shown = Answer::json(200, if kind == "images" { thing.clone() } else { json!({singular: thing}) });
        let mut next = thing.clone();
        let looks = thing["looks"].as_u64().unwrap_or(0);
        if looks < self.slow {
            next["looks"] = json!(looks + 1);
            self.put(kind, id, next);
            return shown;
        }
        next["looks"] = json!(0);
        let fault = self.broken.clone();
        match (kind, thing["status"].as_str().unwrap_or_default()) {
            ("servers", "BUILD") => match fault {
                Some(text) => {
                    next["status"] = json!("ERROR");
                    next["fault"] = json!({"code": 500, "message": text});
                }
                None => next["status"] = json!("ACTIVE"),
            },
            ("servers", "REBOOT") => next["status"] = json!("ACTIVE"),
            ("volumes" | "snapshots", "creating" | "extending" | "retyping" | "detaching") => {
                next["status"] = json!(fault.map_or("available", |_| "error"));
            }
            ("members", _) if thing["deleting"] != true => next["provisioning_status"] = json!("ACTIVE"),
            ("images", "saving") => next["status"] = json!("active"),
            ("volumes", "attaching") => next["status"] = json!(fault.map_or("in-use", |_| "error")),
            _ => {}
        }
        if thing["deleting"] == true {
            self.remove(kind, id);
        } else {
            self.put(kind, id, next);
        }
        shown
    }

    fn create_server(&mut self, body: &Value) -> Answer {
        let mut server = body["server"].clone();
        server["status"] = json!("BUILD");
        server["hints"] = body["os:scheduler_hints"].clone();
        server["flavor"] = json!({"id": server["flavorRef"]});
        server["image"] = server.get("imageRef").map_or(json!(""), |id| json!({"id": id}));
        server["OS-EXT-AZ:availability_zone"] = server.get("availability_zone").cloned().unwrap_or(json!("nova"));
        if server["availability_zone"] == "mars" {
            return refused(400, "The requested availability zone is not available");
        }
        if server["metadata"].is_null() {
            server["metadata"] = json!({});
        }
        let networks = server["networks"].as_array().cloned().unwrap_or_default();
        let boots = server.get("block_device_mapping_v2").is_some();
        let id = self.create("servers", server);
        for network in networks {
            match network["port"].as_str() {
                Some(port) => drop(self.change("ports", port, |port| port["device_id"] = json!(id))),
                None => {
                    let fixed = json!([{"ip_address": "10.0.0.200"}]);
                    let port = json!({"network_id": network["uuid"], "device_id": id, "fixed_ips": fixed, "own": true});
                    self.create("ports", port);
                }
            }
        }
        if boots {
            let places = json!([{"server_id": id, "device": "/dev/vda"}]);
            self.create("volumes", json!({"status": "in-use", "name": "", "bootable": "true", "attachments": places}));
        }
        Answer::json(202, json!({"server": {"id": id}}))
    }

    fn create_port(&mut self, body: &Value) -> Answer {
        let mut port = body["port"].clone();
        let ip = port["fixed_ips"][0]["ip_address"].clone();
        if self.all("ports").iter().any(|other| other["fixed_ips"][0]["ip_address"] == ip) {
            let error = json!({"type": "IpAddressAlreadyAllocated", "message": "IP address already allocated"});
            return Answer::json(409, json!({"NeutronError": error}));
        }
        port["mac_address"] = json!("fa:16:3e:00:00:01");
        for (key, value) in [("status", "DOWN"), ("device_id", ""), ("device_owner", "")] {
            port[key] = json!(value);
        }
        let id = self.create("ports", port);
        Answer::json(201, json!({"port": self.get("ports", &id)}))
    }

    fn add_member(&mut self, pool: &str, member: &Value) -> Answer {
        let taken =
            |other: &Value| other["address"] == member["address"] && other["protocol_port"] == member["protocol_port"];
        if self.busy {
            return self.immutable(pool);
        }
        if self.all("members").iter().any(taken) {
            return Answer::json(409, json!({"faultcode": "Client", "faultstring": "Another member uses it"}));
        }
        let mut member = member.clone();
        member["provisioning_status"] = json!("PENDING_CREATE");
        let id = self.create("members", member);
        Answer::json(201, json!({"member": self.get("members", &id)}))
    }

    /// Answers 409 once.
    fn immutable(&mut self, id: &str) -> Answer {
        self.busy = false;
        Answer::json(409, json!({"faultcode": "Client", "faultstring": format!("{id} is immutable")}))
    }

    fn create_other(&mut self, kind: &str, body: &Value) -> Answer {
        let singular = kind.trim_end_matches('s');
        let mut thing = if kind == "images" { body.clone() } else { body[singular].clone() };
        thing["status"] = json!(if kind == "images" { "queued" } else { "creating" });
        if kind == "subnets" && !thing["subnetpool_id"].is_null() {
            thing["cidr"] = json!("10.8.0.0/26");
            thing["gateway_ip"] = json!("10.8.0.1");
        }
        if kind == "volumes" {
            thing["attachments"] = json!([]);
            thing["bootable"] = json!("false");
        }
        let id = self.create(kind, thing);
        let made = self.get(kind, &id);
        Answer::json(201, if kind == "images" { made } else { json!({singular: made}) })
    }

    fn attachments(&self, server: &str) -> Answer {
        let here = |volume: &Value| volume["attachments"][0]["server_id"] == server;
        let device =
            |volume: &Value| volume.get("device_at_nova").unwrap_or(&volume["attachments"][0]["device"]).clone();
        let place = |volume: &Value| json!({"volumeId": volume["id"], "device": device(volume)});
        let found: Vec<Value> = self.all("volumes").iter().filter(|volume| here(volume)).map(place).collect();
        Answer::json(200, json!({"volumeAttachments": found}))
    }

    fn attach(&mut self, server: &str, place: &Value) -> Answer {
        let id = place["volumeId"].as_str().unwrap().to_owned();
        if self.get("volumes", &id)["status"] != "available" {
            return refused(400, "Invalid volume");
        }
        self.change("volumes", &id, |volume| {
            volume["status"] = json!("attaching");
            volume["attachments"] = json!([{"server_id": server, "device": place["device"]}]);
        })
    }

    fn detach(&mut self, server: &str, id: &str) -> Answer {
        if ["attaching", "detaching"].iter().any(|state| self.get("volumes", id)["status"] == *state) {
            return refused(400, "Volume status must be 'in-use'");
        }
        if self.get("volumes", id)["attachments"][0]["server_id"] != server {
            return missing();
        }
        self.change("volumes", id, |volume| {
            volume["status"] = json!("detaching");
            volume["attachments"] = json!([]);
        })
    }

    fn act(&mut self, id: &str, body: &Value) -> Answer {
        self.change("volumes", id, |volume| {
            if let Some(size) = body.pointer("/os-extend/new_size") {
                volume["size"] = size.clone();
                volume["status"] = json!("extending");
            }
            match body.pointer("/os-retype/new_type") {
                Some(kind) if kind != "elsewhere" => {
                    volume["volume_type"] = kind.clone();
                    volume["status"] = json!("retyping");
                }
                _ => {}
            }
        })
    }

    fn delete(&mut self, kind: &str, id: &str) -> Answer {
        let thing = self.get(kind, id);
        if thing.is_null() {
            return missing();
        }
        if kind == "servers" && self.soft_deletes {
            return self.change(kind, id, |server| server["status"] = json!("SOFT_DELETED"));
        }
        if kind == "servers" {
            return self.delete_server(id);
        }
        if kind == "ports" {
            for ip in self.all("floatingips").iter().filter(|ip| ip["port_id"] == id) {
                self.change("floatingips", ip["id"].as_str().unwrap(), |ip| ip["port_id"] = Value::Null);
            }
        }
        let busy = ["creating", "attaching", "detaching", "deleting", "in-use"];
        if matches!(kind, "volumes" | "snapshots") && busy.iter().any(|state| thing["status"] == *state) {
            return refused(400, "status must be available");
        }
        if matches!(kind, "volumes" | "snapshots") {
            return self.change(kind, id, |thing| {
                thing["deleting"] = json!(true);
                thing["status"] = json!("deleting");
            });
        }
        self.remove(kind, id);
        Answer::text(204, "")
    }

    fn delete_server(&mut self, id: &str) -> Answer {
        // Nova's own ports and boot volumes are deleted with it. Other ports stay without a server.
        for port in self.all("ports").iter().filter(|port| port["device_id"] == id && port["own"] == true) {
            self.remove("ports", port["id"].as_str().unwrap());
        }
        for port in self.all("ports").iter().filter(|port| port["device_id"] == id) {
            self.change("ports", port["id"].as_str().unwrap(), |port| port["device_id"] = json!(""));
        }
        for volume in self.all("volumes").iter().filter(|volume| volume["attachments"][0]["server_id"] == id) {
            let volume = volume["id"].as_str().unwrap();
            self.detach(id, volume);
            if self.get("volumes", volume)["bootable"] == "true" && self.broken.is_none() && !self.keeps_boot_volumes {
                self.remove("volumes", volume);
            }
        }
        self.change("servers", id, |server| server["deleting"] = json!(true))
    }
}
