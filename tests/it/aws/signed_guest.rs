//! The probe as a guest of an AWS: its requests are signed by the host, and it runs the life of a VM and a disk.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::aws::{Client, Service, element, escape};
use tests::cloud::{answered, create_vm, outcomes, vm_outcomes, with_policy};
use tests::servers::with;
use tests::{Job, audit};

/// How often a resource is looked at until it has the expected state.
const LOOKS: usize = 10;

/// Where the keys of a job come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// Properties. The property of the session token is not set.
    Static,
    /// Properties with temporary keys and their session token.
    Session,
    /// The metadata service.
    Machine,
    /// A role that is assumed with the keys of properties.
    Role,
    /// A role that is assumed with the keys of the metadata service.
    RoleOfMachine,
}

/// Returns keys of the cloud's role: identifier, secret and session token.
pub(super) fn role_keys(cloud: &Value) -> [String; 3] {
    let parameters = [("RoleArn", text(cloud, "role_arn")), ("RoleSessionName", "tests".to_owned())];
    let parameters: Vec<(&str, &str)> = parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = Client::new(cloud).call(Service::Sts, "AssumeRole", &parameters);
    let part = |name: &str| element(&answer, name).unwrap_or_else(|| panic!("no {name} in the answer of AssumeRole"));
    [part("AccessKeyId"), part("SecretAccessKey"), part("SessionToken")]
}

/// Returns a job with an audit log whose guest may use EC2 of this cloud.
pub(super) fn job(cloud: &Value, keys: Keys) -> Job {
    let mut properties = json!({
        "access_key_id": cloud["access_key_id"], "secret_access_key": cloud["secret_access_key"],
        "role_arn": cloud["role_arn"], "region": cloud["region"],
    });
    if keys == Keys::Session {
        let [id, secret, token] = role_keys(cloud);
        properties =
            with(properties, json!({"access_key_id": id, "secret_access_key": secret, "session_token": token}));
    }
    audit::audited(with_policy(policy(cloud, keys)).properties(properties))
}

fn policy(cloud: &Value, keys: Keys) -> Value {
    let of_properties = json!({"static": {
        "access_key_id": "${access_key_id}", "secret_access_key": "${secret_access_key}", "session_token": "${session_token}",
    }});
    let of_role = json!({"assume_role": with(
        origin(cloud, Service::Sts), json!({"role": "${role_arn}", "with": "base", "region": "${region}"}),
    )});
    let machine = json!({"metadata": {}});
    let credentials = match keys {
        Keys::Static | Keys::Session => json!({"main": of_properties}),
        Keys::Machine => json!({"main": machine}),
        Keys::Role => json!({"main": of_role, "base": of_properties}),
        Keys::RoleOfMachine => json!({"main": of_role, "base": machine}),
    };
    let grant = json!({
        "id": "compute", "methods": ["POST"], "paths": ["/"],
        "auth": {"sigv4": {"service": "ec2", "region": "${region}", "credentials": "main"}},
        "operations": {"in": "form:Action", "read_only": ["Describe*"], "allow": [
            "AttachVolume", "CreateVolume", "DeleteVolume", "DescribeInstances", "DescribeVolumes", "DetachVolume",
            "RunInstances", "TerminateInstances",
        ]},
        "slots": [{"method": "POST", "path": "/", "operation": "RunInstances", "place": "form:UserData",
            "show": ["xml:instanceId"]}],
        "fields": [{"method": "POST", "path": "/", "operation": "RunInstances", "places": {
            "form:IamInstanceProfile": "absent", "form:LaunchTemplate": "absent"}}],
        "drop": ["xml:userData"],
    });
    json!({"credentials": credentials, "http": [with(grant, origin(cloud, Service::Ec2))]})
}

/// Returns the keys of a grant that say where a service is.
fn origin(cloud: &Value, service: Service) -> Value {
    let to = service.origin(cloud).unwrap_or_default();
    let place = json!({"to": to, "addresses": ["127.0.0.0/8"]});
    if to.starts_with("https:") {
        with(place, json!({"tls": {"ca": cloud["ca"]}}))
    } else {
        with(place, json!({"plain_http": true}))
    }
}

/// Creates a disk and a VM, attaches one to the other, and deletes both. Returns what the guest saw.
pub(super) fn run_lifecycle(job: &Job, cloud: &Value) -> Vec<String> {
    let mut guest = Guest { job, cloud, seen: Vec::new() };
    let zone = text(cloud, "availability_zone");
    let disk = guest.call("CreateVolume", &[("AvailabilityZone", &zone), ("Size", "1"), ("VolumeType", "gp3")]);
    let disk = between(&disk, "volumeId");
    guest.wait_for("DescribeVolumes", ("VolumeId.1", &disk), "available");
    let vm = guest.launch();
    guest.wait_for("DescribeInstances", ("InstanceId.1", &vm), "running");
    guest.call("AttachVolume", &[("VolumeId", &disk), ("InstanceId", &vm), ("Device", "/dev/sdf")]);
    guest.wait_for("DescribeVolumes", ("VolumeId.1", &disk), "in-use");
    // moto cannot detach without the instance.
    guest.call("DetachVolume", &[("VolumeId", &disk), ("InstanceId", &vm)]);
    guest.wait_for("DescribeVolumes", ("VolumeId.1", &disk), "available");
    guest.call("DeleteVolume", &[("VolumeId", &disk)]);
    guest.call("TerminateInstances", &[("InstanceId.1", &vm)]);
    guest.wait_for("DescribeInstances", ("InstanceId.1", &vm), "terminated");
    guest.seen
}

struct Guest<'a> {
    job: &'a Job,
    cloud: &'a Value,
    /// The outcomes of all operations.
    seen: Vec<String>,
}

impl Guest<'_> {
    /// Returns the operation of the probe that calls an operation of the API.
    fn request(&self, operation: &str, parameters: &[(&str, &str)]) -> Value {
        let fields = parameters.iter().map(|(name, value)| format!("&{name}={}", escape(value)));
        json!({
            "op": "http", "method": "POST", "url": format!("{}/", Service::Ec2.origin(self.cloud).unwrap_or_default()),
            "headers": {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
            "body": format!("Action={operation}&Version=2016-11-15{}", fields.collect::<String>()),
        })
    }

    /// Calls an operation that must succeed, and returns the body of its response.
    fn call(&mut self, operation: &str, parameters: &[(&str, &str)]) -> String {
        let outcome = outcomes(self.job, &json!([self.request(operation, parameters)])).remove(0);
        self.seen.push(outcome.to_string());
        answered(&outcome, 200)["body"].as_str().unwrap_or_default().to_owned()
    }

    /// Launches a VM with agent settings, and returns its ID.
    fn launch(&mut self) -> String {
        let [image, kind, subnet] = ["image", "instance_type", "subnet"].map(|name| text(self.cloud, name));
        let mut run = self.request(
            "RunInstances",
            &[
                ("ImageId", &image),
                ("InstanceType", &kind),
                ("MinCount", "1"),
                ("MaxCount", "1"),
                ("SubnetId", &subnet),
            ],
        );
        let body = run["body"].as_str().unwrap_or_default().to_owned();
        run["body"] = json!(body + "&UserData={{0.ok}}");
        let bootstrap = json!({"op": "agent.bootstrap", "vm_name": "vm", "encodings": ["base64"]});
        let outcomes = vm_outcomes(&create_vm(self.job, &json!([bootstrap, run])).run());
        self.seen.push(outcomes[1].to_string());
        between(answered(&outcomes[1], 200)["body"].as_str().unwrap_or_default(), "instanceId")
    }

    fn wait_for(&mut self, operation: &str, parameter: (&str, &str), state: &str) {
        let has_state = |body: &str| body.contains(&format!(">{state}<"));
        let reached = (0..LOOKS).any(|_| has_state(&self.call(operation, &[parameter])));
        assert!(reached, "{} is not {state}: {:?}", parameter.1, self.seen.last());
    }
}

/// Returns the text of the first element with this name.
fn between(body: &str, name: &str) -> String {
    let start = body.split_once(&format!("<{name}>")).map(|(_, rest)| rest);
    let inner = start.and_then(|rest| rest.split_once("</")).map(|(inner, _)| inner.to_owned());
    inner.unwrap_or_else(|| panic!("no {name} in {body}"))
}

fn text(cloud: &Value, name: &str) -> String {
    cloud[name].as_str().unwrap_or_else(|| panic!("the cloud has no {name}")).to_owned()
}

/// Returns the agent settings in a form that launches a VM.
pub(super) fn settings_in(form: &[u8]) -> Value {
    let form = String::from_utf8_lossy(form).into_owned();
    let value = form.split('&').find_map(|field| field.strip_prefix("UserData=")).unwrap_or_default();
    let encoded = value.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=");
    let decoded = STANDARD.decode(encoded).unwrap_or_else(|error| panic!("{error}: {form}"));
    serde_json::from_slice(&decoded).unwrap_or_else(|error| panic!("{error}: {form}"))
}

/// Returns the requests for keys in the audit log: `POST` and the target of each.
pub(super) fn requests_for_keys(job: &Job) -> Vec<String> {
    let line = |line: &Value| format!("{} {}", line["operation"].as_str().unwrap_or_default(), line["status"]);
    audit::about(job, "credentials").iter().map(line).collect()
}
