//! Classic load balancers: the query API of version 2012-06-01.

use serde_json::json;
use wasm_cpi_sdk::query_api::Operation;

use super::Query;

const VERSION: &str = "2012-06-01";

pub(crate) struct Elb {
    url: String,
}

impl Elb {
    pub(crate) fn new(url: String) -> Self {
        Self { url }
    }

    pub(crate) fn register(&self, name: &str, instance: &str) -> Query<()> {
        // A load balancer may not know a new instance yet.
        self.change("RegisterInstancesWithLoadBalancer", name, instance)
            .passing(&["InvalidInstance"])
            .changes(format!("added instance {instance} to load balancer {name}"))
    }

    pub(crate) fn deregister(&self, name: &str, instance: &str) -> Query<()> {
        self.change("DeregisterInstancesFromLoadBalancer", name, instance)
            .changes(format!("removed instance {instance} from load balancer {name}"))
    }

    fn change(&self, action: &str, name: &str, instance: &str) -> Query<()> {
        let operation = Operation::new(action, VERSION)
            .member_lists()
            .set("LoadBalancerName", name)
            .set("Instances", json!([{"InstanceId": instance}]));
        Query::repeatable(&self.url, operation, |_| Ok(()))
    }
}
