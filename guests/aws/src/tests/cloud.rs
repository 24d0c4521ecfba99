//! A small EC2 in memory: what `create_vm` and `delete_vm` create, connect and delete. A fault replaces the answer to
//! one request, before or after the request is processed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use wasm_cpi_sdk::bindings::bosh::cpi::http;
use wasm_cpi_sdk::fake::{Answer, form_fields};

use super::answers::{address, answer, done, failure, failure_with, groups, image, instance, target_groups};

pub(super) type Shared = Rc<RefCell<Cloud>>;

/// A fault of one request.
#[derive(Clone)]
pub(super) enum Fault {
    /// The request is not processed.
    Before(Answer),
    /// The request is processed.
    After(Answer),
}

#[derive(Default)]
struct Vm {
    has_ended: bool,
    tags: String,
}

#[derive(Clone, Default)]
struct Nic {
    vm: Option<String>,
    index: usize,
    ends_with_vm: bool,
    tag: String,
    prefix: String,
}

#[derive(Default)]
pub(super) struct Cloud {
    vms: BTreeMap<String, Vm>,
    nics: BTreeMap<String, Nic>,
    /// The results of requests with tokens.
    tokens: BTreeMap<String, String>,
    /// The destinations of routes, and the VMs that they lead to.
    routes: BTreeMap<String, String>,
    /// The members of the load balancer and of the target group.
    balanced: BTreeSet<String>,
    next: usize,
    /// The requests so far, by their operations.
    pub(super) seen: Vec<String>,
    /// The number of requests to process before, and the fault.
    pub(super) fault: Option<(usize, Fault)>,
    /// The number of requests to process before all others fail.
    pub(super) outage: Option<usize>,
}

type Form = BTreeMap<String, String>;

impl Cloud {
    pub(super) fn shared(fault: Option<(usize, Fault)>) -> Shared {
        Rc::new(RefCell::new(Self { fault, ..Self::default() }))
    }

    pub(super) fn answer(&mut self, request: &http::Request) -> Answer {
        let form = form_fields(request).unwrap();
        self.seen.push(form["Action"].clone());
        let number = self.seen.len() - 1;
        if self.outage.is_some_and(|at| number >= at) {
            return answer(&failure_with(503, "Unavailable", "An outage."));
        }
        match self.fault.clone().filter(|(at, _)| *at == number) {
            Some((_, Fault::Before(fault))) => fault,
            Some((_, Fault::After(fault))) => {
                self.process(&form);
                fault
            }
            None => answer(&self.process(&form)),
        }
    }

    /// Returns what exists: VMs, interfaces, routes and members of load balancers.
    pub(super) fn left(&self) -> Vec<String> {
        let vms = self.vms.iter().filter(|(_, vm)| !vm.has_ended).map(|(id, _)| id.clone());
        let routes = self.routes.iter().map(|(destination, vm)| format!("{destination} to {vm}"));
        vms.chain(self.nics.keys().cloned()).chain(routes).chain(self.balanced.iter().cloned()).collect()
    }

    fn process(&mut self, form: &Form) -> String {
        let text = |name: &str| form.get(name).cloned().unwrap_or_default();
        match &*form["Action"] {
            "DescribeImages" => image(),
            "DescribeSecurityGroups" => groups(&[("sg-1", "web", "vpc-1")]),
            "DescribeAddresses" => address("198.51.100.1", "eipalloc-1"),
            "DescribeTargetGroups" => target_groups(&[("tg", "arn:tg")]),
            "RunInstances" => self.launch(form),
            "DescribeInstances" => self.describe(form),
            "TerminateInstances" => self.end(&text("InstanceId.1")),
            "CreateNetworkInterface" => self.create_nic(form),
            "DescribeNetworkInterfaces" => {
                let own = self.nics.iter().filter(|(id, nic)| match form.get("NetworkInterfaceId.1") {
                    Some(wanted) => *id == wanted,
                    None => nic.tag == text("Filter.1.Value.1"),
                });
                let items: String = own.map(|(id, nic)| nic_item(id, nic)).collect();
                format!("<R><networkInterfaceSet>{items}</networkInterfaceSet></R>")
            }
            "AssignPrivateIpAddresses" if self.nics.values().any(|nic| nic.prefix == text("Ipv4Prefix.1")) => {
                failure("InvalidIPAddress.InUse")
            }
            "AssignPrivateIpAddresses" => {
                self.nics.get_mut(&text("NetworkInterfaceId")).unwrap().prefix = text("Ipv4Prefix.1");
                done()
            }
            "DeleteNetworkInterface" => match self.nics.get(&text("NetworkInterfaceId")) {
                None => failure("InvalidNetworkInterfaceID.NotFound"),
                Some(nic) if nic.vm.is_some() => failure("InvalidParameterValue"),
                Some(_) => {
                    self.nics.remove(&text("NetworkInterfaceId"));
                    done()
                }
            },
            "ModifyNetworkInterfaceAttribute" => {
                if let Some(nic) = self.nics.get_mut(&text("NetworkInterfaceId")) {
                    nic.ends_with_vm |= form.contains_key("Attachment.DeleteOnTermination");
                }
                done()
            }
            "CreateRoute" if self.routes.contains_key(&text("DestinationCidrBlock")) => failure("RouteAlreadyExists"),
            "CreateRoute" | "ReplaceRoute" => {
                let vm = self.nics.get(&text("NetworkInterfaceId")).and_then(|nic| nic.vm.clone()).unwrap_or_default();
                self.routes.insert(text("DestinationCidrBlock"), vm);
                done()
            }
            "DescribeRouteTables" => {
                let vm = self.routes.get("10.9.0.0/16").cloned().unwrap_or_default();
                super::answers::route_table("rtb-1", "10.9.0.0/16", &vm)
            }
            "DeleteRoute" => {
                self.routes.remove(&text("DestinationCidrBlock"));
                done()
            }
            "RegisterInstancesWithLoadBalancer" => {
                self.balance("balancer", &text("Instances.member.1.InstanceId"), true)
            }
            "RegisterTargets" => self.balance("group", &text("Targets.member.1.Id"), true),
            "DeregisterInstancesFromLoadBalancer" => {
                self.balance("balancer", &text("Instances.member.1.InstanceId"), false)
            }
            "DeregisterTargets" => self.balance("group", &text("Targets.member.1.Id"), false),
            "AssociateAddress" | "CreateTags" => done(),
            other => panic!("{other} has no answer"),
        }
    }

    fn balance(&mut self, by: &str, vm: &str, is_member: bool) -> String {
        let member = format!("{by} to {vm}");
        if is_member {
            self.balanced.insert(member);
        } else if !self.balanced.remove(&member) {
            return failure("InvalidInstance");
        }
        done()
    }

    fn new_id(&mut self, kind: &str) -> String {
        self.next += 1;
        format!("{kind}-{}", self.next)
    }

    fn launch(&mut self, form: &Form) -> String {
        // Spot instances are too expensive here.
        if form.contains_key("InstanceMarketOptions.MarketType") {
            return failure("SpotMaxPriceTooLow");
        }
        let shown = |id: &str| format!("<shown><instanceId>{id}</instanceId></shown>");
        if let Some(known) = self.tokens.get(&form["ClientToken"]) {
            return shown(known);
        }
        let id = self.new_id("i");
        let mut tags = String::new();
        for number in 1..10 {
            let field = |part: &str| form.get(&format!("TagSpecification.1.Tag.{number}.{part}"));
            if let (Some(key), Some(value)) = (field("Key"), field("Value")) {
                tags.push_str(&format!("<item><key>{key}</key><value>{value}</value></item>"));
            }
        }
        for index in 0..2 {
            let field = |part: &str| form.get(&format!("NetworkInterface.{}.{part}", index + 1)).cloned();
            if let Some(existing) = field("NetworkInterfaceId") {
                let nic = self.nics.get_mut(&existing).unwrap();
                (nic.vm, nic.index) = (Some(id.clone()), index);
            } else if field("SubnetId").is_some() {
                let nic = self.new_id("eni");
                self.nics.insert(nic, Nic { vm: Some(id.clone()), index, ends_with_vm: true, ..Nic::default() });
            }
        }
        self.vms.insert(id.clone(), Vm { has_ended: false, tags });
        self.tokens.insert(form["ClientToken"].clone(), id.clone());
        shown(&id)
    }

    fn describe(&self, form: &Form) -> String {
        let by_token = form.get("Filter.1.Value.1").map(|token| self.tokens.get(token).cloned().unwrap_or_default());
        let id = by_token.clone().unwrap_or_else(|| form["InstanceId.1"].clone());
        match self.vms.get(&id) {
            None if by_token.is_some() => "<R/>".to_owned(),
            None => failure("InvalidInstanceID.NotFound"),
            Some(vm) => {
                let own = self.nics.iter().filter(|(_, nic)| nic.vm.as_ref() == Some(&id));
                let nics: String = own.map(|(id, nic)| nic_item(id, nic)).collect();
                let more = format!("<networkInterfaceSet>{nics}</networkInterfaceSet><tagSet>{}</tagSet>", vm.tags);
                instance(&id, if vm.has_ended { "terminated" } else { "running" }, &more)
            }
        }
    }

    fn end(&mut self, id: &str) -> String {
        let Some(vm) = self.vms.get_mut(id) else { return failure("InvalidInstanceID.NotFound") };
        vm.has_ended = true;
        self.nics.retain(|_, nic| nic.vm.as_deref() != Some(id) || !nic.ends_with_vm);
        self.nics.values_mut().filter(|nic| nic.vm.as_deref() == Some(id)).for_each(|nic| nic.vm = None);
        done()
    }

    fn create_nic(&mut self, form: &Form) -> String {
        let known = self.tokens.get(&form["ClientToken"]).cloned();
        let id = known.unwrap_or_else(|| {
            let id = self.new_id("eni");
            let tag = form["TagSpecification.1.Tag.1.Value"].clone();
            self.nics.insert(id.clone(), Nic { tag, ..Nic::default() });
            id
        });
        self.tokens.insert(form["ClientToken"].clone(), id.clone());
        let item = nic_item(&id, &self.nics[&id]);
        let fields = item.strip_prefix("<item>").and_then(|item| item.strip_suffix("</item>")).unwrap();
        format!("<R><networkInterface>{fields}</networkInterface></R>")
    }
}

fn nic_item(id: &str, nic: &Nic) -> String {
    let attachment = match nic.vm {
        Some(_) => format!(
            "<attachment><attachmentId>a-{id}</attachmentId><deviceIndex>{}</deviceIndex></attachment>",
            nic.index
        ),
        None => String::new(),
    };
    let prefixes = format!("<ipv4PrefixSet><item><ipv4Prefix>{}</ipv4Prefix></item></ipv4PrefixSet>", nic.prefix);
    format!(
        "<item><networkInterfaceId>{id}</networkInterfaceId><macAddress>02:00</macAddress>{attachment}{prefixes}</item>"
    )
}
