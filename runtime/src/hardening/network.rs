//! How much of the network a process keeps.

use std::collections::BTreeSet;
use std::fmt;

/// Where names are asked for when UDP does not do.
const DNS: u16 = 53;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// No socket at all.
    None,
    /// TCP to these ports, and UDP.
    Ports(BTreeSet<u16>),
}

impl Network {
    /// For connections to these ports; names have to be resolved for them.
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
    fn the_port_of_name_servers_comes_with_the_first_other() {
        assert_eq!(Network::to([]), Network::None);
        assert_eq!(Network::to([443, 5000, 443]).to_string(), "[53, 443, 5000]");
        assert_eq!(Network::None.to_string(), "[]");
    }
}
