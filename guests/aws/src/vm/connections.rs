//! What points to a VM from outside: load balancers, target groups and routes. `create_vm` connects them, and notes
//! their names in tags of the instance, so that `delete_vm` can remove what `create_vm` added.

use wasm_cpi_sdk::{Error, log};

use super::properties::{AdvertisedRoute, VmProperties};
use crate::api::ec2::RouteTable;
use crate::api::elbv2::TargetGroup;
use crate::api::{ApiError, Batch, Query};
use crate::session::Session;
use crate::tags::Tags;

/// The tags, each with names that are separated by blanks. A list that is too long for one tag continues in others.
const ELBS: &str = "bosh-cpi/elbs";
const TARGET_GROUPS: &str = "bosh-cpi/target-groups";
const ROUTES: &str = "bosh-cpi/routes";

const LONGEST_VALUE: usize = 250;

/// The names of what points to a VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Connections {
    elbs: Vec<String>,
    target_groups: Vec<String>,
    routes: Vec<AdvertisedRoute>,
}

impl Connections {
    pub(super) fn of(vm: &VmProperties) -> Self {
        Self { elbs: vm.elbs().to_vec(), target_groups: vm.target_groups().to_vec(), routes: vm.routes().to_vec() }
    }

    /// Returns the connections that the tags of an instance name.
    pub(super) fn of_tags(tags: &Tags) -> Self {
        let routes = listed(tags, ROUTES).into_iter().filter_map(|text| {
            let (table_id, destination) = text.split_once('=')?;
            Some(AdvertisedRoute { table_id: table_id.to_owned(), destination: destination.to_owned() })
        });
        Self { elbs: listed(tags, ELBS), target_groups: listed(tags, TARGET_GROUPS), routes: routes.collect() }
    }

    pub(super) fn note(&self, tags: &mut Tags) {
        let routes = self.routes.iter().map(|route| format!("{}={}", route.table_id, route.destination)).collect();
        for (key, names) in [(ELBS, self.elbs.clone()), (TARGET_GROUPS, self.target_groups.clone()), (ROUTES, routes)] {
            for (number, value) in joined(&names).into_iter().enumerate() {
                let key = if number == 0 { key.to_owned() } else { format!("{key}.{}", number + 1) };
                tags.insert(&key, &value);
            }
        }
    }

    pub(super) fn has_routes(&self) -> bool {
        !self.routes.is_empty()
    }

    /// Returns the request that finds the target groups, if there are any. It fails if one does not exist.
    pub(super) fn groups_query(&self, session: &Session) -> Option<Query<Vec<TargetGroup>>> {
        let names: Vec<&str> = self.target_groups.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| session.elbv2().target_groups(&names))
    }

    /// Returns the requests that connect a VM to its load balancers and target groups.
    pub(super) fn register(&self, session: &Session, vm: &str, groups: &[TargetGroup]) -> Vec<Query<()>> {
        let elbs = self.elbs.iter().map(|name| session.elb().register(name, vm));
        elbs.chain(groups.iter().map(|group| session.elbv2().register(&group.arn, vm))).collect()
    }

    /// Creates the routes to an interface, or changes those that exist.
    pub(super) fn advertise(&self, session: &Session, interface: &str) -> Result<(), ApiError> {
        let ec2 = session.ec2();
        let mut batch = Batch::default();
        let create = |route: &AdvertisedRoute| ec2.create_route(&route.table_id, &route.destination, interface);
        let tickets: Vec<_> = self.routes.iter().map(|route| batch.add(create(route))).collect();
        let mut answers = batch.send();
        for (route, ticket) in self.routes.iter().zip(tickets) {
            match answers.take(&ticket) {
                Err(error) if error.is("RouteAlreadyExists") => {
                    ec2.replace_route(&route.table_id, &route.destination, interface).send()?;
                }
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Removes a VM from its load balancers and target groups, so that they stop sending connections to it. AWS does that,
    /// too, when the instance has ended, so a failure is only logged.
    pub(super) fn deregister(&self, session: &Session, vm: &str) {
        let groups = self.existing_groups(session, vm);
        let mut batch = Batch::default();
        let elbs = self.elbs.iter().map(|name| session.elb().deregister(name, vm));
        let groups = groups.iter().map(|group| session.elbv2().deregister(&group.arn, vm));
        let tickets: Vec<_> = elbs.chain(groups).map(|query| batch.add(query)).collect();
        let mut answers = batch.send();
        for ticket in tickets {
            match answers.take(&ticket) {
                Err(error) if !error.is_not_found() && !error.is("InvalidInstance") => warn(vm, &error),
                _ => {}
            }
        }
    }

    /// Returns the target groups that exist.
    fn existing_groups(&self, session: &Session, vm: &str) -> Vec<TargetGroup> {
        match self.groups_query(session).map(|query| query.send()) {
            None => vec![],
            Some(Ok(groups)) => groups,
            // One that was deleted hides the others.
            Some(Err(error)) if error.is_not_found() => {
                let mut batch = Batch::default();
                let asked: Vec<_> =
                    self.target_groups.iter().map(|name| batch.add(session.elbv2().target_groups(&[name]))).collect();
                let mut answers = batch.send();
                let mut groups = vec![];
                for ticket in asked {
                    match answers.take(&ticket) {
                        Ok(found) => groups.extend(found),
                        Err(error) if error.is_not_found() => {}
                        Err(error) => warn(vm, &error),
                    }
                }
                groups
            }
            Some(Err(error)) => {
                warn(vm, &error);
                vec![]
            }
        }
    }

    /// Deletes the routes that still lead to a VM. Another VM may have taken them over.
    pub(super) fn withdraw(&self, session: &Session, vm: &str) -> Result<(), Error> {
        let mut ids: Vec<&str> = self.routes.iter().map(|route| route.table_id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        let ec2 = session.ec2();
        let tables = ec2.route_tables(&ids).send()?;
        for route in &self.routes {
            let leads_here = |table: &RouteTable| {
                table.id == route.table_id
                    && table
                        .routes
                        .iter()
                        .any(|other| other.destination == route.destination && other.instance.as_deref() == Some(vm))
            };
            if tables.iter().any(leads_here) {
                match ec2.delete_route(&route.table_id, &route.destination).send() {
                    Err(error) if error.is_not_found() => {}
                    Err(error) if crate::error::is_unauthorized(error.code()) => warn(vm, &error),
                    outcome => outcome?,
                }
            }
        }
        Ok(())
    }
}

fn warn(vm: &str, error: &ApiError) {
    log::warn(format_args!("VM `{vm}` is deleted, but not all that points to it was removed: {error}"));
}

/// Joins names with blanks to as many texts as needed.
fn joined(names: &[String]) -> Vec<String> {
    let mut texts: Vec<String> = vec![];
    for name in names {
        match texts.last_mut() {
            Some(last) if last.len() + 1 + name.len() <= LONGEST_VALUE => {
                last.push(' ');
                last.push_str(name);
            }
            _ => texts.push(name.clone()),
        }
    }
    texts
}

/// Returns the names in a tag and in those that continue it.
fn listed(tags: &Tags, key: &str) -> Vec<String> {
    let more = (2..).map(|number| format!("{key}.{number}"));
    let texts = std::iter::once(key.to_owned()).chain(more).map_while(|key| tags.get(&key).map(str::to_owned));
    texts.flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_read_back_from_tags() {
        let names = |count: usize| (0..count).map(|number| format!("name-{number}")).collect::<Vec<_>>();
        for count in [0, 1, 2, 90] {
            let route = |table_id: String| AdvertisedRoute { table_id, destination: "2001:db8::/64".to_owned() };
            let routes = names(count).into_iter().map(route).collect();
            let all = Connections { elbs: names(count), target_groups: names(count), routes };
            let mut tags = Tags::default();
            all.note(&mut tags);
            assert_eq!(tags.is_empty(), count == 0);
            assert!(tags.iter().all(|(_, value)| value.len() <= 255));
            assert_eq!(Connections::of_tags(&tags), all);
        }
    }
}
