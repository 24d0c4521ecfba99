//! Ranges of IP addresses: subnets, prefixes, and single addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IpRange {
    is_v6: bool,
    first: u128,
    last: u128,
}

impl IpRange {
    /// Reads `10.0.0.0/24`, or a single address. The host bits of a range must be zero.
    pub(super) fn parse(text: &str) -> Option<IpRange> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let (is_v6, bits, first) = match address.parse().ok()? {
            IpAddr::V4(address) => (false, 32, u128::from(u32::from(address))),
            IpAddr::V6(address) => (true, 128, u128::from(address)),
        };
        let free = bits - length.filter(|length| *length <= bits).or(length.is_none().then_some(bits))?;
        let rest = 1_u128.checked_shl(free).map_or(u128::MAX, |count| count - 1);
        (first & rest == 0).then_some(IpRange { is_v6, first, last: first | rest })
    }

    pub(super) fn is_v6(self) -> bool {
        self.is_v6
    }

    pub(super) fn count(self) -> u128 {
        (self.last - self.first).saturating_add(1)
    }

    pub(super) fn contains(self, other: IpRange) -> bool {
        self.is_v6 == other.is_v6 && self.first <= other.first && other.last <= self.last
    }

    pub(super) fn overlaps(self, other: IpRange) -> bool {
        self.is_v6 == other.is_v6 && self.first <= other.last && other.first <= self.last
    }

    /// Returns the range without the addresses that a subnet reserves: four at its start
    /// and one at its end.
    pub(super) fn usable(self) -> IpRange {
        IpRange { first: self.first + 4, last: self.last.saturating_sub(1), ..self }
    }

    /// Returns the part of this range with this number among parts of equal size.
    pub(super) fn part(self, size: u128, number: u128) -> Option<IpRange> {
        let first = self.first.checked_add(size.checked_mul(number)?)?;
        let last = first.checked_add(size - 1)?;
        (last <= self.last).then_some(IpRange { first, last, ..self })
    }

    /// Returns the first address as text.
    pub(super) fn address(self) -> String {
        if self.is_v6 {
            return Ipv6Addr::from(self.first).to_string();
        }
        Ipv4Addr::from(u32::try_from(self.first).unwrap_or_default()).to_string()
    }

    /// Returns the range as text, with its length.
    pub(super) fn cidr(self) -> String {
        let bits = if self.is_v6 { 128 } else { 32 };
        let length = bits - (self.last - self.first).count_ones();
        format!("{}/{length}", self.address())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> IpRange {
        IpRange::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn ranges_are_read_and_written() {
        for (text, written) in [
            ("10.0.0.0/24", "10.0.0.0/24"),
            ("10.0.0.5", "10.0.0.5/32"),
            ("fd00:1::/64", "fd00:1::/64"),
            ("fd00:1:0:0::a", "fd00:1::a/128"),
        ] {
            assert_eq!(range(text).cidr(), written);
        }
        for wrong in ["10.0.0.1/24", "10.0.0.0/33", "10.0.0", "x", "10.0.0.0/", "fd00::1/64"] {
            assert_eq!(IpRange::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn parts_lie_in_the_range() {
        let subnet = range("10.0.0.0/24");
        assert_eq!((subnet.count(), subnet.usable().address()), (256, "10.0.0.4".to_owned()));
        assert!(subnet.contains(range("10.0.0.16/28")) && !subnet.contains(range("10.0.1.0")));
        assert!(range("10.0.0.16/28").overlaps(range("10.0.0.31")) && !subnet.overlaps(range("fd00::")));
        assert_eq!(subnet.part(16, 15).map(IpRange::cidr), Some("10.0.0.240/28".to_owned()));
        assert_eq!(subnet.part(16, 16), None);
    }
}
