//! Target groups: the query API of version 2015-12-01 of Elastic Load Balancing.

use serde_json::json;
use wasm_cpi_sdk::query_api::Operation;
use wasm_cpi_sdk::xml::Element;

use super::Query;

const VERSION: &str = "2015-12-01";

pub(crate) struct ElbV2 {
    url: String,
}

/// A group of targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetGroup {
    pub(crate) name: String,
    pub(crate) arn: String,
}

impl ElbV2 {
    pub(crate) fn new(url: String) -> Self {
        Self { url }
    }

    /// Returns the groups with these names. The request fails if one does not exist.
    pub(crate) fn target_groups(&self, names: &[&str]) -> Query<Vec<TargetGroup>> {
        let operation = Operation::new("DescribeTargetGroups", VERSION).member_lists().set("Names", names);
        Query::repeatable(&self.url, operation, |answer| {
            let read = |item: &Element| {
                let text = |name| item.required_text(name).map(str::to_owned);
                Ok(TargetGroup { name: text("TargetGroupName")?, arn: text("TargetGroupArn")? })
            };
            answer.items("DescribeTargetGroupsResult/TargetGroups/member").into_iter().map(read).collect()
        })
    }

    pub(crate) fn register(&self, group: &str, instance: &str) -> Query<()> {
        // A new instance may not run yet from the point of view of the load balancer.
        self.change("RegisterTargets", group, instance)
            .passing(&["InvalidTarget"])
            .changes(format!("added instance {instance} to target group {group}"))
    }

    pub(crate) fn deregister(&self, group: &str, instance: &str) -> Query<()> {
        self.change("DeregisterTargets", group, instance)
            .changes(format!("removed instance {instance} from target group {group}"))
    }

    fn change(&self, action: &str, group: &str, instance: &str) -> Query<()> {
        let operation = Operation::new(action, VERSION)
            .member_lists()
            .set("TargetGroupArn", group)
            .set("Targets", json!([{"Id": instance}]));
        Query::repeatable(&self.url, operation, |_| Ok(()))
    }
}
