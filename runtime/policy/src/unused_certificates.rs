//! Certificates in properties that nothing uses. An operator who sets a property for the cloud's
//! CA expects that it is trusted, but only `tls` of the policy makes the host trust a CA.

use std::collections::BTreeSet;

use crate::destination::Scheme;
use crate::problem::PolicyProblem;
use crate::properties::Properties;
use crate::tls::{Pem, Tls};
use crate::{Policy, Slot};

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

impl Policy {
    /// Returns a warning for each property with a certificate that no grant and no login uses: not
    /// as a CA, not as a client certificate, and not in a slot. There are none if the policy does
    /// not grant `https://` at all.
    pub fn unused_certificates(&self, properties: &Properties) -> Vec<PolicyProblem> {
        let origins =
            self.http.iter().map(|grant| &grant.origin).chain(self.logins.values().map(|login| &login.origin));
        if !origins.into_iter().any(|origin| origin.scheme == Scheme::Https) {
            return vec![];
        }
        let trusted: BTreeSet<&str> = self.tls_settings().flat_map(certificates).collect();
        let sent = |name: &str| {
            let takes = |slot: &Slot| slot.takes.iter().any(|taken| taken == name);
            self.http.iter().any(|grant| grant.slots.iter().any(takes))
        };
        let mut unused = BTreeSet::new();
        properties.for_each_leaf(|path, value| {
            if let Some(text) = value.as_str()
                && text.contains(CERTIFICATE)
                && !trusted.contains(text)
                && !sent(path)
            {
                unused.insert(path.to_owned());
            }
        });
        unused.into_iter().map(|name| warning(&name)).collect()
    }
}

/// Returns the texts of the certificates that come from the policy or from properties.
fn certificates(tls: &Tls) -> impl Iterator<Item = &str> {
    let client = tls.client.iter().map(|client| &client.cert);
    tls.ca.iter().chain(client).filter_map(|pem| match pem {
        Pem::Inline(text) => Some(text.reveal()),
        Pem::File(_) => None,
    })
}

fn warning(name: &str) -> PolicyProblem {
    let what = format!("no grant or login trusts the certificate in the property `{name}`");
    let line = format!("\"tls\": {{\"ca\": \"${{{name}}}\"}}");
    PolicyProblem::new(
        "tls.ca",
        what,
        format!("add {line} to the entry of `presets`, or to the grants and logins themselves"),
    )
}
