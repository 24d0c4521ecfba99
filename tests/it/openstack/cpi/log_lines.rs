//! The lines that `bosh task N --cpi` shows at the default level: one for each change.

use super::{Cpi, small_vm};
use serde_json::json;
use tests::openstack::on_each_cloud;

#[test]
fn a_successful_call_logs_one_line_for_each_change_at_the_default_level() {
    on_each_cloud(|name, gateway| {
        let cpi = Cpi::new(gateway);
        let stemcell = cpi.stemcell();
        let created = cpi.run("create_vm", small_vm(&cpi, &stemcell, "10.0.0.95"));
        let vm = created.result()[0].as_str().unwrap_or_default().to_owned();
        let lines = |stderr: &str| stderr.lines().map(str::to_owned).collect::<Vec<_>>();
        let found = lines(&created.stderr);
        assert_eq!(found.len(), 2, "{name}: {}", created.stderr);
        assert!(found[0].contains("created port ") && found[0].contains("10.0.0.95"), "{name}: {found:?}");
        assert!(found[1].contains(&format!("created server {vm}")), "{name}: {found:?}");
        let read = cpi.run("has_vm", json!([vm]));
        assert_eq!(lines(&read.stderr), Vec::<String>::new(), "{name}");
        let deleted = cpi.run("delete_vm", json!([vm]));
        let found = lines(&deleted.stderr);
        for said in [format!("deleted server {vm}"), "deleted port ".to_owned()] {
            assert_eq!(found.iter().filter(|line| line.contains(&said)).count(), 1, "{name}: {found:?}");
        }
        cpi.ok("delete_stemcell", json!([stemcell]));
    });
}
