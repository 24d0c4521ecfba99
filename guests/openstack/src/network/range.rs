//! The range of a subnet, and the part of it that Neutron's own services use: DHCP
//! and routers take addresses by themselves, and must not take those of VMs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wasm_cpi_sdk::Error;

/// The number of addresses for Neutron, and the number in a small range.
const NEUTRON_COUNT: u128 = 3;
const NEUTRON_COUNT_IN_SMALL_RANGE: u128 = 2;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    address: IpAddr,
    bits: u32,
}

impl Range {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || Error::cpi(format!("create_network: `{text}` is not a range; expected one like 10.0.0.0/24"));
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits = bits.parse::<u8>().map_err(|_| wrong())?.into();
        if bits > width(address) { Err(wrong()) } else { Ok(Self { address, bits }) }
    }

    pub(super) fn version(&self) -> u8 {
        if self.address.is_ipv4() { 4 } else { 6 }
    }

    /// Returns the addresses for Neutron in ascending order. A tiny range has none;
    /// with DHCP that is an error, as DHCP would take the address of a VM.
    pub(super) fn neutron_addresses(&self, gateway: Option<&str>, dhcp: bool) -> Result<Vec<String>, Error> {
        let count = match width(self.address) - self.bits {
            0..=2 if dhcp => {
                return Err(Error::cpi(format!(
                    "create_network: a range of /{} has no room for DHCP and VMs; use a larger one, or the property \
                     use_dhcp: false",
                    self.bits
                )));
            }
            0..=2 => return Ok(vec![]),
            3 => NEUTRON_COUNT_IN_SMALL_RANGE,
            _ => NEUTRON_COUNT,
        };
        let broadcast = number(self.address) | (u128::MAX >> (128 - width(self.address)) >> self.bits);
        // If the gateway is at the end of the range, Neutron's addresses are before it.
        let gateway = gateway.and_then(|text| text.parse::<IpAddr>().ok());
        let last = match gateway.filter(|gateway| gateway.is_ipv4() == self.address.is_ipv4()).map(number) {
            Some(gateway) if gateway < broadcast && broadcast - gateway <= count => gateway - 1,
            _ => broadcast - 1,
        };
        Ok((last + 1 - count..=last).map(|number| self.address_of(number)).collect())
    }

    fn address_of(&self, number: u128) -> String {
        match (self.address, u32::try_from(number)) {
            (IpAddr::V4(_), Ok(number)) => Ipv4Addr::from(number).to_string(),
            _ => Ipv6Addr::from(number).to_string(),
        }
    }
}

/// Returns the number of bits of an address.
fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neutron_gets_the_end_of_the_range_without_the_gateway() {
        for (range, gateway, dhcp, own) in [
            ("10.0.0.0/24", None, true, Ok(&["10.0.0.252", "10.0.0.253", "10.0.0.254"][..])),
            ("10.0.0.0/24", Some("10.0.0.1"), false, Ok(&["10.0.0.252", "10.0.0.253", "10.0.0.254"])),
            ("10.0.0.0/24", Some("10.0.0.254"), true, Ok(&["10.0.0.251", "10.0.0.252", "10.0.0.253"])),
            ("10.0.0.0/24", Some("10.0.0.252"), true, Ok(&["10.0.0.249", "10.0.0.250", "10.0.0.251"])),
            ("10.0.0.16/28", None, true, Ok(&["10.0.0.28", "10.0.0.29", "10.0.0.30"])),
            ("10.0.0.8/29", Some("10.0.0.9"), true, Ok(&["10.0.0.13", "10.0.0.14"])),
            ("10.0.0.8/29", Some("10.0.0.14"), true, Ok(&["10.0.0.12", "10.0.0.13"])),
            ("10.0.0.8/30", None, false, Ok(&[])),
            ("10.0.0.8/30", None, true, Err("a range of /30 has no room")),
            (
                "fd00::/64",
                None,
                true,
                Ok(&["fd00::ffff:ffff:ffff:fffc", "fd00::ffff:ffff:ffff:fffd", "fd00::ffff:ffff:ffff:fffe"]),
            ),
            ("fd00::/127", None, true, Err("a range of /127 has no room")),
        ] {
            match (Range::parse(range).unwrap().neutron_addresses(gateway, dhcp), own) {
                (Ok(found), Ok(own)) => assert_eq!(found, own, "{range} {gateway:?}"),
                (Err(error), Err(said)) => assert!(error.message.contains(said), "{error}"),
                (found, _) => panic!("{range} {gateway:?}: {found:?}"),
            }
        }
    }

    #[test]
    fn texts_that_are_not_ranges_are_rejected() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "x/24", "10.0.0.0/-1", "10.0.0/24", "fd00::/129"] {
            assert!(Range::parse(text).unwrap_err().message.contains("expected one like"), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_a_range_or_an_error(text in r"[0-9a-f.:/]{0,20}", gateway in r"[0-9.]{0,15}") {
            if let Ok(range) = Range::parse(&text) {
                let _ = range.neutron_addresses(Some(&gateway), true);
            }
        }

        #[test]
        fn neutron_gets_only_addresses_of_the_range(
            address in proptest::prelude::any::<u32>(), bits in 0..=29u32, gateway in proptest::prelude::any::<u32>(),
        ) {
            let range = Range { address: Ipv4Addr::from(address).into(), bits };
            let gateway = Ipv4Addr::from(gateway).to_string();
            for own in range.neutron_addresses(Some(&gateway), true).unwrap() {
                let own: Ipv4Addr = own.parse().unwrap();
                assert!((u32::from(own) ^ address).leading_zeros() >= bits);
                assert_ne!(own.to_string(), gateway);
            }
        }
    }
}
