//! The TLS settings of a grant or login: a CA, a client certificate and pins.
//!
//! No setting turns verification off. This module only names files, and the caller reads them.
//! A property holds PEM text and never a file name, so that a cpi-config cannot make this
//! program read a file.

use super::object_reader::ObjectReader;
use super::problem::{PolicyProblem, Problems};
use super::properties::Properties;
use super::template::Template;
use crate::secret::{Layer, Secret};
use wasm_cpi_checks::Check;

/// The TLS settings of one grant or login. The default trusts the public roots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// The certificates that are trusted instead of the public roots.
    pub ca: Option<Pem>,
    /// The certificate with which the host authenticates itself.
    pub client: Option<ClientCertificate>,
    /// SHA-256 digests of public keys (SubjectPublicKeyInfo) or of whole certificates. If there are
    /// any, the server must have one of them, in addition to being trusted.
    pub pin_sha256: Vec<[u8; 32]>,
}

impl Tls {
    /// Returns the names of the files that the caller has to read, as they are written.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let client = self.client.iter().flat_map(|client| [&client.cert, &client.key]);
        self.ca.iter().chain(client).filter_map(|pem| match pem {
            Pem::File(name) => Some(name.as_str()),
            Pem::Inline(_) => None,
        })
    }
}

/// A certificate and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, followed by its chain.
    pub cert: Pem,
    /// The private key of the certificate.
    pub key: Pem,
}

/// Certificates or a key in PEM format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pem {
    /// The name of a file as it is written, relative to the policy file.
    File(String),
    /// The PEM text itself, from the policy or a property.
    Inline(Secret),
}

impl Pem {
    fn written(text: &str) -> Pem {
        if is_pem(text) { Pem::Inline(Secret::new(text)) } else { Pem::File(text.to_owned()) }
    }
}

fn is_pem(text: &str) -> bool {
    text.trim_start().starts_with("-----BEGIN ")
}

/// The key `tls` as it is written in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TlsSpec {
    ca: Option<Part>,
    client: Option<(Part, Part)>,
    pin_sha256: Vec<[u8; 32]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Written(Pem),
    Property(Template),
}

impl TlsSpec {
    pub(super) fn read(parent: &mut ObjectReader<'_>) -> TlsSpec {
        let Some(value) = parent.value("tls") else { return TlsSpec::default() };
        let Some(mut reader) = ObjectReader::open(value, parent.at("tls"), parent.problems()) else {
            return TlsSpec::default();
        };
        let ca = reader.value("ca").and_then(|_| part(&mut reader, "ca"));
        let client = reader.value("client").and_then(|value| {
            let mut client = ObjectReader::open(value, reader.at("client"), reader.problems())?;
            let parts = (part(&mut client, "cert"), part(&mut client, "key"));
            client.close();
            Some((parts.0?, parts.1?))
        });
        let mut pin_sha256 = Vec::new();
        for (at, text) in reader.texts("pin_sha256") {
            match pin(text) {
                Some(pin) => pin_sha256.push(pin),
                None => reader.problems().add(at, "is not a SHA-256 digest", "write 64 hexadecimal digits"),
            }
        }
        reader.close();
        TlsSpec { ca, client, pin_sha256 }
    }

    pub(super) fn is_empty(&self) -> bool {
        *self == TlsSpec::default()
    }

    pub(super) fn has_client(&self) -> bool {
        self.client.is_some()
    }

    /// Fills in the properties for an origin that comes from the layer `to`.
    pub(super) fn resolve(&self, properties: &Properties, to: Layer, at: &str, problems: &Problems) -> Option<Tls> {
        let client = match &self.client {
            None => None,
            Some((cert, key)) => {
                let cert = cert.resolve(properties, to, &format!("{at}.client.cert"), problems);
                let key = key.resolve(properties, to, &format!("{at}.client.key"), problems);
                Some(ClientCertificate { cert: cert?, key: key? })
            }
        };
        let ca = match &self.ca {
            None => None,
            Some(ca) => Some(ca.resolve_ca(properties, to, &format!("{at}.ca"), problems)?),
        };
        Some(Tls { ca, client, pin_sha256: self.pin_sha256.clone() })
    }
}

impl Part {
    /// Resolves a CA. A CA is not a secret, so the job's may be used for any origin; but a CA
    /// of the context is not used for an origin of the job.
    fn resolve_ca(&self, properties: &Properties, to: Layer, at: &str, problems: &Problems) -> Option<Pem> {
        let Part::Property(template) = self else { return self.resolve(properties, Layer::Job, at, problems) };
        let found = template.resolve(properties, Layer::Job, at, problems)?;
        let trusted = problems.ensure(Check::LayerCa, found.layer != Layer::Context || to != Layer::Job, || {
            let what =
                format!("comes from `{}` in the context (a cpi-config), but the origin comes from the job", found.name);
            PolicyProblem::new(at, what, "set the origin in the cpi-config too, or the CA in the job's properties")
        });
        if trusted { self.resolve(properties, Layer::Job, at, problems) } else { None }
    }

    fn resolve(&self, properties: &Properties, to: Layer, at: &str, problems: &Problems) -> Option<Pem> {
        match self {
            Part::Written(pem) => {
                let may_go = problems.ensure(Check::LayerCertificate, to != Layer::Context, || {
                    let what = "comes from the job, but the origin comes from the context (a cpi-config)";
                    PolicyProblem::new(at, what, "take it from a property of the cpi-config")
                });
                may_go.then(|| pem.clone())
            }
            Part::Property(template) => {
                let found = template.resolve(properties, to, at, problems)?;
                let pem = problems.ensure(Check::PropertyPem, is_pem(found.secret.reveal()), || {
                    let what = format!("the property `{}` does not hold PEM text", found.name);
                    PolicyProblem::new(at, what, "put the certificate or key itself into the property, not a file name")
                });
                pem.then_some(Pem::Inline(found.secret))
            }
        }
    }
}

fn part(reader: &mut ObjectReader<'_>, key: &'static str) -> Option<Part> {
    let text = reader.required_text(key, "${property} or file.pem")?;
    match Template::parse(text) {
        Ok(template) if template.whole_property().is_some() => Some(Part::Property(template)),
        Ok(template) if !template.has_property() && !text.is_empty() => Some(Part::Written(Pem::written(text))),
        _ => {
            reader.problem(key, "is neither one `${property}` nor a file nor PEM text", "write one of them");
            None
        }
    }
}

/// Parses the 64 hexadecimal digits of a SHA-256 digest.
fn pin(text: &str) -> Option<[u8; 32]> {
    let mut pin = [0; 32];
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in pin.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(pin)
}
