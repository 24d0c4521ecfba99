//! The range of a subnet, and the part of it for Neutron's own use.

use std::net::{IpAddr, Ipv4Addr};

use wasm_cpi_sdk::Error;

/// How many addresses Neutron gets.
const OWN: u32 = 3;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Range {
    address: IpAddr,
    bits: u8,
}

impl Range {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let wrong = || Error::cpi(format!("create_network: range `{text}`: expected one like 10.0.0.0/24"));
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        if bits > most { Err(wrong()) } else { Ok(Self { address, bits }) }
    }

    pub(super) fn version(&self) -> u8 {
        if self.address.is_ipv4() { 4 } else { 6 }
    }

    /// First and last address for Neutron, and each of them; `None` where the
    /// range is too small to part, or IPv6, where no one runs out.
    pub(super) fn pool(&self, gateway: Option<&str>) -> Option<(String, String, Vec<String>)> {
        let IpAddr::V4(address) = self.address else {
            return None;
        };
        if !(8..=28).contains(&self.bits) {
            return None;
        }
        let broadcast = u32::from(address) | (u32::MAX >> self.bits);
        // A gateway at the end of the range moves the rest before it.
        let at_end = gateway.and_then(|text| text.parse::<Ipv4Addr>().ok()).map(u32::from);
        let last = match at_end {
            Some(gateway) if gateway < broadcast && broadcast - gateway <= OWN => gateway - 1,
            _ => broadcast - 1,
        };
        let all: Vec<String> = (last + 1 - OWN..=last).map(|ip| Ipv4Addr::from(ip).to_string()).collect();
        Some((all.first()?.clone(), all.last()?.clone(), all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_is_at_the_end_and_without_the_gateway() {
        for (range, gateway, pool) in [
            ("10.0.0.0/24", None, Some(("10.0.0.252", "10.0.0.254"))),
            ("10.0.0.0/24", Some("10.0.0.1"), Some(("10.0.0.252", "10.0.0.254"))),
            ("10.0.0.0/24", Some("10.0.0.254"), Some(("10.0.0.251", "10.0.0.253"))),
            ("10.0.0.0/24", Some("10.0.0.252"), Some(("10.0.0.249", "10.0.0.251"))),
            ("10.0.0.0/30", None, None),
            ("fd00::/64", None, None),
        ] {
            let found = Range::parse(range).unwrap().pool(gateway);
            let found = found.as_ref().map(|(first, last, _)| (first.as_str(), last.as_str()));
            assert_eq!(found, pool, "{range} {gateway:?}");
        }
    }

    #[test]
    fn other_texts_are_no_ranges() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "x/24", "10.0.0.0/-1", "10.0.0/24"] {
            assert!(Range::parse(text).unwrap_err().message.contains("expected one like"), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_gives_a_range_or_an_error(text in r"[0-9a-f.:/]{0,20}", gateway in r"[0-9.]{0,15}") {
            if let Ok(range) = Range::parse(&text) {
                range.pool(Some(&gateway));
            }
        }
    }
}
