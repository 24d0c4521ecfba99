//! The part of the network that a process can use after the lock-down.

use std::collections::BTreeSet;
use std::fmt;

/// The port of name servers, which also accept TCP for answers that are too large for UDP.
const DNS: u16 = 53;

/// The network access of a locked-down process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// No socket at all.
    None,
    /// TCP to these ports, and UDP.
    Ports(BTreeSet<u16>),
}

impl Network {
    /// Allows connections to these ports, and the name resolution that they need.
    pub fn to(ports: impl IntoIterator<Item = u16>) -> Network {
        let mut ports: BTreeSet<u16> = ports.into_iter().collect();
        if ports.is_empty() {
            return Network::None;
        }
        ports.insert(DNS);
        Network::Ports(ports)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = match self {
            Network::None => return f.write_str("[]"),
            Network::Ports(ports) => ports,
        };
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        write!(f, "[{}]", ports.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dns_port_is_added_if_any_other_port_is_granted() {
        assert_eq!(Network::to([]), Network::None);
        assert_eq!(Network::to([443, 5000, 443]).to_string(), "[53, 443, 5000]");
        assert_eq!(Network::None.to_string(), "[]");
    }
}
