//! The IP addresses and prefixes of network interfaces.

use super::Call;
use crate::aws::error::{Error, combination, invalid};
use crate::aws::ip_range::IpRange;
use crate::aws::kind::Kind;
use crate::aws::parameters::{list, number, required, text, texts};
use crate::aws::state::State;
use crate::simulation::Item;
use serde_json::{Value, json};

/// The sizes of delegated prefixes: /28 and /80.
const IPV4_PREFIX: u128 = 1 << 4;
const IPV6_PREFIX: u128 = 1 << 48;

/// The element of an interface with the addresses of a kind, and the key within it.
const PLACES: [(&str, &str); 4] = [
    ("privateIpAddressesSet", "privateIpAddress"),
    ("ipv6AddressesSet", "ipv6Address"),
    ("ipv4PrefixSet", "ipv4Prefix"),
    ("ipv6PrefixSet", "ipv6Prefix"),
];

/// The addresses of a new interface.
pub(super) struct Addresses {
    pub(super) primary: String,
    pub(super) secondary: Vec<String>,
    pub(super) ipv6: Vec<String>,
    pub(super) ipv4_prefixes: Vec<String>,
    pub(super) ipv6_prefixes: Vec<String>,
}

/// Chooses addresses in one subnet. What it has chosen, it does not choose again.
struct Chooser<'a> {
    state: &'a mut State,
    subnet: Item,
    chosen: Vec<IpRange>,
}

/// Chooses the addresses that the parameters of a new interface describe.
pub(super) fn choose(state: &mut State, subnet: &Item, given: &Value) -> Result<Addresses, Error> {
    refuse_prefixes_with_addresses(given)?;
    let mut chooser = Chooser { state, subnet: subnet.clone(), chosen: Vec::new() };
    let specified = list(given, "PrivateIpAddresses");
    let marked: Vec<&str> = specified
        .iter()
        .filter(|address| address["Primary"] == true)
        .filter_map(|address| text(address, "PrivateIpAddress"))
        .collect();
    let primary = match (text(given, "PrivateIpAddress"), marked.as_slice()) {
        (Some(address), []) => chooser.take(address)?,
        (None, [address]) => chooser.take(address)?,
        (None, []) => chooser.next(false, 1)?,
        _ => return Err(combination("Only one primary private IP address can be specified.")),
    };
    let mut secondary = Vec::new();
    for address in specified.iter().filter(|address| address["Primary"] != true) {
        secondary.push(chooser.take(required(address, "PrivateIpAddress")?)?);
    }
    secondary.extend(chooser.several(false, 1, number(given, "SecondaryPrivateIpAddressCount"))?);
    let mut ipv6 = Vec::new();
    for address in list(given, "Ipv6Addresses") {
        ipv6.push(chooser.take(required(address, "Ipv6Address")?)?);
    }
    ipv6.extend(chooser.several(true, 1, number(given, "Ipv6AddressCount"))?);
    let mut prefixes = |key: &str, count: &str, is_v6: bool, size: u128| {
        let mut taken = Vec::new();
        for prefix in list(given, key) {
            taken.push(chooser.take_prefix(required(prefix, key)?, size)?);
        }
        taken.extend(chooser.several(is_v6, size, number(given, count))?);
        Ok::<_, Error>(taken)
    };
    let ipv4_prefixes = prefixes("Ipv4Prefix", "Ipv4PrefixCount", false, IPV4_PREFIX)?;
    let ipv6_prefixes = prefixes("Ipv6Prefix", "Ipv6PrefixCount", true, IPV6_PREFIX)?;
    Ok(Addresses { primary, secondary, ipv6, ipv4_prefixes, ipv6_prefixes })
}

/// EC2 takes prefixes of a new interface only without addresses of the same version of IP.
fn refuse_prefixes_with_addresses(given: &Value) -> Result<(), Error> {
    let ipv4 = ["PrivateIpAddress", "PrivateIpAddresses", "SecondaryPrivateIpAddressCount"];
    let ipv6 = ["Ipv6Addresses", "Ipv6AddressCount"];
    for (prefixes, addresses) in
        [(["Ipv4Prefix", "Ipv4PrefixCount"], &ipv4[..]), (["Ipv6Prefix", "Ipv6PrefixCount"], &ipv6[..])]
    {
        let first = |names: &[&'static str]| names.iter().copied().find(|name| given.get(*name).is_some());
        if let (Some(prefix), Some(address)) = (first(&prefixes), first(addresses)) {
            return Err(combination(format!("The parameter {prefix} cannot be used together with {address}.")));
        }
    }
    Ok(())
}

impl Chooser<'_> {
    /// Returns the range of the subnet for this version of IP.
    fn subnet_range(&self, is_v6: bool) -> Option<IpRange> {
        let view = &self.subnet.view;
        let text = if is_v6 { &view["ipv6CidrBlockAssociationSet"][0]["ipv6CidrBlock"] } else { &view["cidrBlock"] };
        IpRange::parse(text.as_str()?)
    }

    fn take(&mut self, address: &str) -> Result<String, Error> {
        let range = IpRange::parse(address).filter(|range| range.count() == 1);
        let range = range.ok_or_else(|| invalid("address", address, "It is not an IP address."))?;
        let subnet = self.subnet_range(range.is_v6()).filter(|subnet| subnet.contains(range));
        let subnet = subnet.ok_or_else(|| {
            let message = "Address does not fall within the subnet's address range";
            Error::new("InvalidParameterValue", message)
        })?;
        if !subnet.usable().contains(range) {
            return Err(Error::new("InvalidParameterValue", "Address is in subnet's reserved address range"));
        }
        self.reserve(range)?;
        Ok(range.address())
    }

    fn take_prefix(&mut self, prefix: &str, size: u128) -> Result<String, Error> {
        let range = IpRange::parse(prefix).filter(|range| range.count() == size);
        let range = range.ok_or_else(|| invalid("prefix", prefix, "It is not a prefix of the right length."))?;
        if !self.subnet_range(range.is_v6()).is_some_and(|subnet| subnet.contains(range)) {
            return Err(invalid("prefix", prefix, "It does not fall within the subnet's address range."));
        }
        self.reserve(range)?;
        Ok(range.cidr())
    }

    /// Marks the range as used, unless an interface uses a part of it.
    fn reserve(&mut self, range: IpRange) -> Result<(), Error> {
        let owner = self.owner(range);
        if owner.is_none() && !self.chosen.iter().any(|chosen| chosen.overlaps(range)) {
            self.chosen.push(range);
            return Ok(());
        }
        // A client that waits for an address must see it become free.
        if let Some((interface, instance)) = owner {
            self.state.count_read(&[&interface, &instance]);
        }
        Err(Error::new("InvalidIPAddress.InUse", format!("Address {} is in use.", range.address())))
    }

    /// Returns the interface that uses a part of the range, and its instance.
    fn owner(&self, range: IpRange) -> Option<(String, String)> {
        let interfaces = self.state.resources.iter().filter(|item| item.view["subnetId"] == self.subnet.id);
        let mut users = interfaces.filter(|item| ranges(&item.view).iter().any(|own| own.overlaps(range)));
        let user = users.next()?;
        Some((user.id.clone(), user.view["attachment"]["instanceId"].as_str().unwrap_or_default().to_owned()))
    }

    fn several(&mut self, is_v6: bool, size: u128, count: Option<i64>) -> Result<Vec<String>, Error> {
        (0..count.unwrap_or_default()).map(|_| self.next(is_v6, size)).collect()
    }

    /// Takes the first free range of this size.
    fn next(&mut self, is_v6: bool, size: u128) -> Result<String, Error> {
        let full = || Error::new("InsufficientFreeAddressesInSubnet", "The subnet has not enough free addresses.");
        let subnet = self.subnet_range(is_v6).ok_or_else(full)?;
        // Clients choose low addresses of the small test subnets, so others come from the upper half.
        let first = subnet.count().min(256) / size / 2;
        for number in first..first + 4096 {
            let Some(range) = subnet.part(size, number) else { break };
            if (size > 1 || subnet.usable().contains(range)) && self.reserve_free(range) {
                return Ok(if size > 1 { range.cidr() } else { range.address() });
            }
        }
        Err(full())
    }

    fn reserve_free(&mut self, range: IpRange) -> bool {
        self.owner(range).is_none() && self.reserve(range).is_ok()
    }
}

/// Returns all ranges that an interface uses.
fn ranges(view: &Value) -> Vec<IpRange> {
    let texts = PLACES.iter().flat_map(|(set, key)| {
        view[*set].as_array().into_iter().flatten().filter_map(|element| element[*key].as_str())
    });
    texts.filter_map(IpRange::parse).collect()
}

pub(super) fn assign_ipv4(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let (interface, mut chooser) = start(state, call)?;
    let (mut addresses, mut prefixes) = (Vec::new(), Vec::new());
    for address in texts(call.parameters, "PrivateIpAddress") {
        addresses.push(chooser.take(address)?);
    }
    addresses.extend(chooser.several(false, 1, number(call.parameters, "SecondaryPrivateIpAddressCount"))?);
    for prefix in texts(call.parameters, "Ipv4Prefix") {
        prefixes.push(chooser.take_prefix(prefix, IPV4_PREFIX)?);
    }
    prefixes.extend(chooser.several(false, IPV4_PREFIX, number(call.parameters, "Ipv4PrefixCount"))?);
    some(&addresses, &prefixes)?;
    let addresses: Vec<Value> =
        addresses.iter().map(|address| json!({"privateIpAddress": address, "primary": false})).collect();
    let prefixes: Vec<Value> = prefixes.iter().map(|prefix| json!({"ipv4Prefix": prefix})).collect();
    append(state, &interface, "privateIpAddressesSet", &addresses);
    append(state, &interface, "ipv4PrefixSet", &prefixes);
    let shown: Vec<Value> =
        addresses.iter().map(|address| json!({"privateIpAddress": address["privateIpAddress"]})).collect();
    Ok(json!({
        "networkInterfaceId": interface, "assignedPrivateIpAddressesSet": shown, "assignedIpv4PrefixSet": prefixes,
    }))
}

pub(super) fn assign_ipv6(state: &mut State, call: &Call<'_>) -> Result<Value, Error> {
    let (interface, mut chooser) = start(state, call)?;
    let (mut addresses, mut prefixes) = (Vec::new(), Vec::new());
    for address in texts(call.parameters, "Ipv6Addresses") {
        addresses.push(chooser.take(address)?);
    }
    addresses.extend(chooser.several(true, 1, number(call.parameters, "Ipv6AddressCount"))?);
    for prefix in texts(call.parameters, "Ipv6Prefix") {
        prefixes.push(chooser.take_prefix(prefix, IPV6_PREFIX)?);
    }
    prefixes.extend(chooser.several(true, IPV6_PREFIX, number(call.parameters, "Ipv6PrefixCount"))?);
    some(&addresses, &prefixes)?;
    let shown: Vec<Value> = addresses.iter().map(|address| json!({"ipv6Address": address})).collect();
    append(state, &interface, "ipv6AddressesSet", &shown);
    let shown: Vec<Value> = prefixes.iter().map(|prefix| json!({"ipv6Prefix": prefix})).collect();
    append(state, &interface, "ipv6PrefixSet", &shown);
    Ok(json!({
        "networkInterfaceId": interface, "assignedIpv6Addresses": addresses, "assignedIpv6PrefixSet": prefixes,
    }))
}

fn start<'a>(state: &'a mut State, call: &Call<'_>) -> Result<(String, Chooser<'a>), Error> {
    let id = required(call.parameters, "NetworkInterfaceId")?;
    let interface = state.find(Kind::NetworkInterface, call.account, id)?;
    let subnet = state.find(Kind::Subnet, call.account, interface.text("subnetId"))?;
    Ok((interface.id, Chooser { state, subnet, chosen: Vec::new() }))
}

fn some(addresses: &[String], prefixes: &[String]) -> Result<(), Error> {
    if addresses.is_empty() && prefixes.is_empty() {
        return Err(Error::new("MissingParameter", "Either addresses, prefixes or a count must be specified."));
    }
    Ok(())
}

fn append(state: &mut State, interface: &str, set: &str, new: &[Value]) {
    if let Some(item) = state.resources.get_mut(interface) {
        let mut elements = item.view[set].as_array().cloned().unwrap_or_default();
        elements.extend_from_slice(new);
        item.view[set] = json!(elements);
    }
}
