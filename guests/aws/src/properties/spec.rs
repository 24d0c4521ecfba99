//! Every property of bosh-aws-cpi's job spec, and what becomes of it. A test compares this list with README.md.

/// What the guest or the host does with a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// The guest reads it.
    Read,
    /// The host uses it, and the guest sees at most whether it is set.
    Host,
    /// It has no effect. The README says what to do instead.
    WithoutEffect,
    /// It belongs to another part of the config of wasm-cpi. The README says which one.
    Moved,
}

pub(crate) const SPEC: [(&str, Treatment); 33] = [
    ("aws.credentials_source", Treatment::Read),
    ("aws.access_key_id", Treatment::Host),
    ("aws.secret_access_key", Treatment::Host),
    ("aws.session_token", Treatment::Host),
    ("aws.role_arn", Treatment::Read),
    ("aws.region", Treatment::Read),
    ("aws.ec2_endpoint", Treatment::Read),
    ("aws.elb_endpoint", Treatment::Read),
    ("aws.dualstack", Treatment::Read),
    ("aws.max_retries", Treatment::WithoutEffect),
    ("aws.default_key_name", Treatment::Read),
    ("aws.default_iam_instance_profile", Treatment::Read),
    ("aws.default_security_groups", Treatment::Read),
    ("aws.encrypted", Treatment::Read),
    ("aws.kms_key_arn", Treatment::Read),
    ("aws.metadata_options", Treatment::Read),
    ("aws.enable_describe_instance_types", Treatment::Read),
    ("aws.connection_options.ca_cert", Treatment::Host),
    ("aws.stemcell.kernel_id", Treatment::WithoutEffect),
    ("registry.username", Treatment::Moved),
    ("registry.password", Treatment::Moved),
    ("registry.host", Treatment::Moved),
    ("registry.port", Treatment::Moved),
    ("ntp", Treatment::Moved),
    ("agent.mbus", Treatment::Moved),
    ("nats.user", Treatment::Moved),
    ("nats.password", Treatment::Moved),
    ("agent.nats.address", Treatment::Moved),
    ("nats.address", Treatment::Moved),
    ("nats.port", Treatment::Moved),
    ("env.http_proxy", Treatment::Moved),
    ("env.https_proxy", Treatment::Moved),
    ("env.no_proxy", Treatment::Moved),
];
