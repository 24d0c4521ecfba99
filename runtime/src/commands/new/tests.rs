use super::*;
use serde_json::json;
use tempfile::TempDir;
use wasm_cpi_policy::{Needs, Policy, PolicyFile, Properties};

/// Creates a repository with an SDK, and a directory beside it.
fn repository() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("repo/guests/sdk")).unwrap();
    fs::create_dir(dir.path().join("beside")).unwrap();
    fs::write(dir.path().join("repo/guests/sdk/Cargo.toml"), "[package]\nname = \"wasm-cpi-sdk\"\n").unwrap();
    dir
}

fn options(name: &str, dir: &Path, sdk: Option<PathBuf>) -> NewOptions {
    NewOptions { name: name.to_owned(), dir: dir.to_owned(), sdk }
}

fn refusal(options: &NewOptions) -> String {
    new(options).err().unwrap().to_string()
}

#[test]
fn every_file_is_written_without_placeholders() {
    let root = repository();
    fs::write(root.path().join("repo/guests/Cargo.lock"), "version = 4\n").unwrap();
    let dir = root.path().join("repo/guests");
    let report = new(&options("my-cloud", &dir, None)).unwrap();
    for (file, _) in FILES {
        let text = fs::read_to_string(dir.join("my-cloud").join(file)).unwrap();
        assert!(!text.contains("{{") || file.ends_with(".rs"), "{file}: {text}");
    }
    let manifest = fs::read_to_string(dir.join("my-cloud/Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"my-cloud\"") && manifest.contains("{ path = \"../sdk\" }"), "{manifest}");
    assert_eq!(fs::read_to_string(dir.join("my-cloud/Cargo.lock")).unwrap(), "version = 4\n");
    assert!(report.good && report.text.contains("cargo xtask guest guests/my-cloud"), "{}", report.text);
}

#[test]
fn the_option_sdk_accepts_a_path_with_special_characters() {
    let root = repository();
    let odd = root.path().join("re\"po x");
    fs::rename(root.path().join("repo"), &odd).unwrap();
    new(&options("mine", &root.path().join("beside"), Some(odd.join("guests/sdk")))).unwrap();
    let manifest = fs::read_to_string(root.path().join("beside/mine/Cargo.toml")).unwrap();
    assert!(manifest.contains(r#"path = "../../re\"po x/guests/sdk""#), "{manifest}");
    let readme = fs::read_to_string(root.path().join("beside/mine/README.md")).unwrap();
    assert!(readme.contains("cargo xtask guest ../beside/mine\n"), "{readme}");
}

#[test]
fn a_directory_that_is_not_the_sdk_is_rejected_with_a_remedy() {
    let root = repository();
    let beside = root.path().join("beside");
    for sdk in [beside.clone(), beside.join("absent")] {
        let said = refusal(&options("mine", &beside, Some(sdk)));
        assert!(said.contains("is not the SDK") && said.contains("guests/sdk"), "{said}");
    }
    assert!(!beside.join("mine").exists());
}

#[test]
fn only_names_for_crates_and_files_are_accepted() {
    let root = repository();
    let dir = root.path().join("repo");
    let longest = "a".repeat(MAX_NAME);
    for name in ["a", "my-cloud", "c2", &longest] {
        new(&options(name, &dir, None)).unwrap();
    }
    let too_long = "a".repeat(MAX_NAME + 1);
    for name in ["", "A", "aB", "2c", "-a", "a_b", "a/b", "..", "a.b", "é", "a\n", &too_long] {
        assert!(refusal(&options(name, &dir, None)).contains("is not a name"), "{name}");
    }
}

#[test]
fn existing_files_are_not_touched() {
    let root = repository();
    let dir = root.path().join("repo");
    fs::create_dir_all(dir.join("full/src")).unwrap();
    fs::write(dir.join("file"), "mine").unwrap();
    fs::create_dir(dir.join("empty")).unwrap();
    assert!(refusal(&options("full", &dir, None)).contains("not empty"));
    assert!(refusal(&options("file", &dir, None)).contains("not a directory"));
    assert!(refusal(&options("mine", &dir.join("absent"), None)).contains("--dir"));
    assert_eq!(fs::read_to_string(dir.join("file")).unwrap(), "mine");
    assert_eq!(fs::read_dir(dir.join("full")).unwrap().count(), 1);
    new(&options("empty", &dir, None)).unwrap();
}

#[test]
fn the_example_policies_grant_exactly_what_the_guest_needs() {
    let text = |wanted: &str| FILES.iter().find(|(file, _)| *file == wanted).unwrap().1;
    let needs = Needs::parse(text("needs.json").as_bytes()).unwrap();
    let example: Value = serde_json::from_str(text("examples/properties.json")).unwrap();
    let real = json!({"endpoint": "https://cloud.example", "token": "t"});
    for (policy, properties, allow_local) in [("policy.json", real, false), ("examples/policy.json", example, true)] {
        let properties = Properties::merge(properties.as_object().unwrap().clone(), serde_json::Map::new());
        let file = PolicyFile::parse(text(policy)).unwrap();
        let resolved = Policy::resolve(&file, &properties, Some(&needs), &[], allow_local).unwrap();
        let compared = resolved.compare_needs(&needs);
        assert!(compared.hidden.is_empty() && compared.http.iter().all(|need| need.missing.is_empty()), "{compared:?}");
        let (grant, need) = (&resolved.http[0], &needs.http[0]);
        assert_eq!((resolved.http.len(), needs.http.len(), &grant.paths), (1, 1, &need.paths), "{policy}");
        assert_eq!(wasm_cpi_policy::Restriction::Only(grant.methods.clone()), need.methods, "{policy}");
    }
}
