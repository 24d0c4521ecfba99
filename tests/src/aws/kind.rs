//! The kinds of resources, and what EC2 answers if one does not exist.

use super::error::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Address,
    Image,
    Instance,
    KeyPair,
    LoadBalancer,
    Modification,
    NetworkInterface,
    PlacementGroup,
    RouteTable,
    SecurityGroup,
    Snapshot,
    Subnet,
    TargetGroup,
    Volume,
    Vpc,
}

/// What ids of a kind start with, what a message calls it, and the prefix of its error codes.
struct Words {
    prefix: &'static str,
    noun: &'static str,
    code: &'static str,
    malformed: &'static str,
}

impl Kind {
    fn words(self) -> Words {
        let words = |prefix, noun, code, malformed| Words { prefix, noun, code, malformed };
        match self {
            Kind::Address => words("eipalloc", "allocation", "InvalidAllocationID", "InvalidParameterValue"),
            Kind::Image => words("ami", "image", "InvalidAMIID", "InvalidAMIID.Malformed"),
            Kind::Instance => words("i", "instance", "InvalidInstanceID", "InvalidInstanceID.Malformed"),
            Kind::KeyPair => words("key", "key pair", "InvalidKeyPair", "InvalidKeyPair.NotFound"),
            Kind::LoadBalancer => words("elb", "load balancer", "LoadBalancerNotFound", "ValidationError"),
            Kind::Modification => words("mod", "modification", "InvalidVolumeModification", "InvalidParameterValue"),
            Kind::NetworkInterface => {
                words("eni", "networkInterface", "InvalidNetworkInterfaceID", "InvalidNetworkInterfaceId.Malformed")
            }
            Kind::PlacementGroup => words("pg", "Placement Group", "InvalidPlacementGroup", "InvalidParameterValue"),
            Kind::RouteTable => words("rtb", "routeTable", "InvalidRouteTableID", "InvalidRouteTableId.Malformed"),
            Kind::SecurityGroup => words("sg", "security group", "InvalidGroup", "InvalidGroupId.Malformed"),
            Kind::Snapshot => words("snap", "snapshot", "InvalidSnapshot", "InvalidSnapshotID.Malformed"),
            Kind::Subnet => words("subnet", "subnet", "InvalidSubnetID", "InvalidSubnetID.Malformed"),
            Kind::TargetGroup => words("tg", "target group", "TargetGroupNotFound", "ValidationError"),
            Kind::Volume => words("vol", "volume", "InvalidVolume", "InvalidVolumeID.Malformed"),
            Kind::Vpc => words("vpc", "vpc", "InvalidVpcID", "InvalidVpcID.Malformed"),
        }
    }

    /// Returns what ids of this kind start with.
    pub(super) fn prefix(self) -> String {
        format!("{}-", self.words().prefix)
    }

    /// Returns the type in tag specifications.
    pub(super) fn resource_type(self) -> &'static str {
        match self {
            Kind::NetworkInterface => "network-interface",
            other => other.words().noun,
        }
    }

    pub(super) fn not_found(self, id: &str) -> Error {
        let Words { noun, code, .. } = self.words();
        Error::new(&format!("{code}.NotFound"), format!("The {noun} '{id}' does not exist"))
    }

    /// Rejects ids that cannot belong to any resource of this kind.
    pub(super) fn check_form(self, id: &str) -> Result<(), Error> {
        let digits = id.strip_prefix(&self.prefix()).unwrap_or_default();
        let long = [8, 17].contains(&digits.len());
        if long && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
            return Ok(());
        }
        Err(Error::new(self.words().malformed, format!("Invalid id: \"{id}\"")))
    }

    /// Returns the kind of an id that tags can be added to.
    pub(super) fn of_id(id: &str) -> Option<Kind> {
        const TAGGED: [Kind; 9] = [
            Kind::Address,
            Kind::Image,
            Kind::Instance,
            Kind::NetworkInterface,
            Kind::RouteTable,
            Kind::SecurityGroup,
            Kind::Snapshot,
            Kind::Subnet,
            Kind::Volume,
        ];
        TAGGED.into_iter().find(|kind| id.starts_with(&kind.prefix()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_the_kind_are_well_formed() {
        for (kind, id, good) in [
            (Kind::Instance, "i-0123456789abcdef0", true),
            (Kind::Instance, "i-01234567", true),
            (Kind::Instance, "i-0123", false),
            (Kind::Instance, "vol-0123456789abcdef0", false),
            (Kind::Instance, "i-0123456789ABCDEF0", false),
            (Kind::Volume, "vol-0123456789abcdef0", true),
        ] {
            assert_eq!(kind.check_form(id).is_ok(), good, "{id}");
        }
    }
}
