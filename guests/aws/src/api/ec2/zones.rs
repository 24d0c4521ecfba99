//! Availability zones.

use super::{Ec2, operation, text_or_empty};
use crate::api::Query;

impl Ec2 {
    /// Returns the names of the availability zones that can be used, without local zones.
    pub(crate) fn zones(&self) -> Query<Vec<String>> {
        self.repeatable(operation("DescribeAvailabilityZones").filter("state", ["available"]), |answer| {
            let zones = answer.items("availabilityZoneInfo/item").into_iter();
            let usual = zones.filter(|zone| matches!(&*text_or_empty(zone, "zoneType"), "availability-zone" | ""));
            usual.map(|zone| zone.required_text("zoneName").map(str::to_owned)).collect()
        })
    }
}
