//! Stemcells.

use serde_json::{Value, json};
use wasm_cpi_sdk::fake::Fake;
use wasm_cpi_sdk::{Cpi, ErrorKind, Json};

use super::cloud::IMAGE;
use super::{cpi, properties, properties_with, start, start_with};

fn archive(fake: Fake) -> Fake {
    fake.image_member("stemcell.MF", "x").image_member("./root.img", b"QFI\xfb and more".to_vec())
}

#[test]
fn a_heavy_stemcell_is_uploaded_with_its_properties() {
    let (_host, cloud) = start_with(properties_with(json!({"stemcell_public_visibility": true})), archive);
    let cloud_properties = json!({
        "name": "bosh-openstack-kvm", "version": "1.5", "disk_format": "raw", "container_format": "bare",
        "os_type": "linux", "os_distro": "ubuntu", "architecture": "x86_64", "auto_disk_config": true,
        "hypervisor": "kvm", "infrastructure": "openstack", "hw_disk_bus": "scsi", "root_device_name": "/dev/sda1",
    });
    let id = cpi().create_stemcell(Json::from(cloud_properties), vec![("team".into(), "a".into())]).unwrap();
    let image = cloud.borrow().get("images", &id);
    for (key, value) in [
        ("name", "bosh-openstack-kvm/1.5"),
        ("disk_format", "raw"),
        ("visibility", "public"),
        ("os_type", "linux"),
        ("auto_disk_config", "true"),
        ("hypervisor_type", "kvm"),
        ("hw_disk_bus", "scsi"),
        ("data", "ImagePart::Member(\"./root.img\")"),
        ("status", "active"),
    ] {
        assert_eq!(image[key], value, "{key}");
    }
    assert_eq!(image["tags"], json!(["team=a"]));
    assert_eq!((&image["infrastructure"], &image["root_device_name"]), (&Value::Null, &Value::Null));
    cpi().delete_stemcell(id.clone()).unwrap();
    assert_eq!(cpi().delete_stemcell(id).unwrap_err().kind, ErrorKind::StemcellNotFound);
}

/// The properties that the stemcell creators of bosh-openstack-cpi pass on to Glance, in Ruby and in Go.
const RUBY: [&str; 15] = [
    "version",
    "os_type",
    "os_distro",
    "architecture",
    "auto_disk_config",
    "hw_vif_model",
    "hw_vif_multiqueue_enabled",
    "hw_disk_bus_model",
    "hw_scsi_model",
    "hw_disk_bus",
    "hypervisor_type",
    "vmware_adaptertype",
    "vmware_disktype",
    "vmware_linked_clone",
    "vmware_ostype",
];
const GO: [&str; 11] = [
    "version",
    "os_type",
    "os_distro",
    "architecture",
    "auto_disk_config",
    "hw_vif_model",
    "hypervisor_type",
    "vmware_adaptertype",
    "vmware_disktype",
    "vmware_linked_clone",
    "vmware_ostype",
];

#[test]
fn every_image_property_of_the_ruby_and_the_go_cpi_reaches_glance_and_is_in_the_readme() {
    let readme = include_str!("../../README.md");
    let rows: Vec<&str> =
        readme.lines().filter(|line| line.ends_with("| yes | yes |") || line.ends_with("| yes | no |")).collect();
    assert_eq!(rows.len(), RUBY.len(), "{rows:?}");
    for name in RUBY {
        let key = if name == "hypervisor_type" { "hypervisor" } else { name };
        let (_host, cloud) = start_with(properties(), archive);
        let id = cpi().create_stemcell(Json::from(json!({key: true})), vec![]).unwrap();
        assert_eq!(cloud.borrow().get("images", &id)[name], "true", "{name}");
        let row = format!("| `{key}` | `{name}` | yes | {} |", if GO.contains(&name) { "yes" } else { "no" });
        assert!(rows.contains(&row.as_str()), "README.md does not have: {row}");
    }
    assert!(GO.iter().all(|name| RUBY.contains(name)));
}

#[test]
fn empty_properties_are_left_out_and_tags_of_the_manifest_are_kept() {
    let (_host, cloud) = start_with(properties(), archive);
    let cloud_properties = json!({"os_type": "", "hw_vif_multiqueue_enabled": false, "tags": ["one", "team=a", ""]});
    let id = cpi().create_stemcell(Json::from(cloud_properties), vec![("team".into(), "a".into())]).unwrap();
    let image = cloud.borrow().get("images", &id);
    assert_eq!((&image["os_type"], &image["hw_vif_multiqueue_enabled"]), (&Value::Null, &json!("false")));
    assert_eq!(image["tags"], json!(["one", "team=a"]));
    for tags in [json!("one"), json!([1])] {
        let error = cpi().create_stemcell(Json::from(json!({"tags": tags})), vec![]).unwrap_err();
        assert!(error.message.contains("cloud_properties.tags: expected a list of strings"), "{error}");
    }
}

#[test]
fn the_disk_format_is_detected_if_it_is_not_set() {
    let (_host, cloud) = start_with(properties(), archive);
    let id = cpi().create_stemcell(Json::raw("null"), vec![]).unwrap();
    assert_eq!(cloud.borrow().get("images", &id)["disk_format"], "qcow2");
    assert_eq!(cloud.borrow().get("images", &id)["visibility"], "private");
    let (_host, cloud) = start_with(properties(), |fake| fake.image_member("root.img", "other"));
    let id = cpi().create_stemcell(Json::default(), vec![]).unwrap();
    assert_eq!(cloud.borrow().get("images", &id)["disk_format"], "raw");
}

#[test]
fn a_light_stemcell_is_an_existing_image_that_is_never_deleted() {
    let (_host, cloud) = start(properties());
    let id = cpi().create_stemcell(Json::from(json!({"image_id": IMAGE})), vec![]).unwrap();
    assert_eq!(id, format!("{IMAGE} light"));
    cpi().delete_stemcell(id.clone()).unwrap();
    assert_eq!(cloud.borrow().get("images", IMAGE)["status"], "active");
    let mut vm = super::request(super::small(), vec![super::manual()]);
    vm.stemcell = id;
    cpi().create_vm(vm).unwrap();
    assert_eq!(cloud.borrow().only("servers")["imageRef"], IMAGE);
    for (image, part) in [("none", "was not found"), ("queued", "expected status `active`, found `queued`")] {
        cloud.borrow_mut().put("images", "queued", json!({"status": "queued"}));
        let error = cpi().create_stemcell(Json::from(json!({"image_id": image})), vec![]).unwrap_err();
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn a_wrong_stemcell_is_rejected_before_an_image_is_created() {
    for (prepare, cloud_properties, part) in [
        (
            archive as fn(Fake) -> Fake,
            json!({"disk_format": ["raw"]}),
            "cloud_properties.disk_format: expected a string",
        ),
        (|fake| fake.image_member("other", "x"), json!({}), "has no file root.img"),
        (|fake| fake.image("not an archive"), json!({}), "not an archive"),
    ] {
        let (_host, cloud) = start_with(properties(), prepare);
        let error = cpi().create_stemcell(Json::from(cloud_properties), vec![]).unwrap_err();
        assert!(error.message.contains(part), "{error}");
        assert_eq!(error.kind, ErrorKind::Cpi);
        assert_eq!(cloud.borrow().seen.len(), 0);
    }
}
