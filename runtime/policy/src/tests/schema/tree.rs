//! The JSON Schemas in `docs/schema`: validates documents, and follows a schema beside a document.
//! The runtime's tests include this file, too, for the schema of `cpi.json`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Map, Value, json};

/// A key that no file has.
pub(crate) const UNKNOWN: &str = "unknown-key";

/// One schema, with the policy's schema, to which the others refer.
pub(crate) struct Schema {
    compiled: Schemas,
    index: SchemaIndex,
    own: Value,
    policy: Value,
}

/// A part of a schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Node {
    /// True if the part is in the policy's schema, and the schema is another one.
    foreign: bool,
    /// The JSON pointer of the part.
    pointer: String,
}

impl Schema {
    /// Loads `docs/schema/NAME.schema.json`.
    pub(crate) fn load(name: &str) -> Schema {
        let file = |name: &str| repository().join("docs/schema").join(format!("{name}.schema.json"));
        let read = |name: &str| serde_json::from_str(&std::fs::read_to_string(file(name)).unwrap()).unwrap();
        let mut compiled = Schemas::new();
        let index = Compiler::new().compile(file(name).to_str().unwrap(), &mut compiled);
        let index = index.unwrap_or_else(|error| panic!("{name}: {error:#}"));
        Schema { compiled, index, own: read(name), policy: read("policy") }
    }

    /// Returns what the schema rejects in a document, if there is anything.
    pub(crate) fn rejects(&self, document: &Value) -> Option<String> {
        self.compiled.validate(document, self.index).err().map(|error| error.to_string())
    }

    /// Returns the value of a part.
    pub(crate) fn value(&self, node: &Node) -> &Value {
        let file = if node.foreign { &self.policy } else { &self.own };
        file.pointer(&node.pointer).unwrap_or_else(|| panic!("{node:?} leads nowhere"))
    }

    /// Returns the value of a keyword of a part, or of the part that it refers to.
    pub(crate) fn keyword(&self, node: &Node, keyword: &str) -> Option<&Value> {
        self.alternatives(node).iter().find_map(|node| self.value(node).get(keyword))
    }

    /// Returns the part for the value at this JSON pointer of a document.
    pub(crate) fn at(&self, pointer: &str) -> Option<Node> {
        let mut segments = pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"));
        segments.try_fold(root(), |node, segment| self.child(&node, &segment))
    }

    /// Returns the part for a key of an object, or for an element of a list.
    fn child(&self, node: &Node, segment: &str) -> Option<Node> {
        self.alternatives(node).iter().find_map(|node| {
            let value = self.value(node);
            if value.pointer("/properties").is_some_and(|properties| properties.get(segment).is_some()) {
                return Some(below(node, &["properties", segment]));
            }
            if segment.parse::<usize>().is_ok() && value.get("items").is_some() {
                return Some(below(node, &["items"]));
            }
            value["additionalProperties"].is_object().then(|| below(node, &["additionalProperties"]))
        })
    }

    /// Returns the part that describes an object at this part, if one can be there.
    pub(crate) fn object(&self, node: &Node) -> Option<Node> {
        self.alternatives(node).into_iter().find(|node| {
            let kind = &self.value(node)["type"];
            *kind == "object" || kind.as_array().is_some_and(|kinds| kinds.contains(&json!("object")))
        })
    }

    /// Returns all parts of this schema that describe an object in a document.
    pub(crate) fn objects(&self) -> BTreeSet<Node> {
        let (mut seen, mut left) = (BTreeSet::new(), vec![root()]);
        while let Some(node) = left.pop() {
            for node in self.alternatives(&node).into_iter().filter(|node| !node.foreign) {
                let value = self.value(&node);
                let properties = value["properties"].as_object().into_iter().flat_map(Map::keys);
                let mut parts: Vec<Node> = properties.map(|key| below(&node, &["properties", key])).collect();
                parts.extend(value.get("items").map(|_| below(&node, &["items"])));
                parts
                    .extend(value["additionalProperties"].is_object().then(|| below(&node, &["additionalProperties"])));
                if seen.insert(node) {
                    left.extend(parts);
                }
            }
        }
        seen.into_iter().filter(|node| self.object(node).as_ref() == Some(node)).collect()
    }

    /// Returns the part, what it refers to, and the members of its `anyOf`. Members that are only
    /// conditions on other parts have neither a type nor a reference, and are left out.
    fn alternatives(&self, node: &Node) -> Vec<Node> {
        let value = self.value(node);
        let mut all = vec![node.clone()];
        if let Some(reference) = value["$ref"].as_str() {
            let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
            let target = Node { foreign: node.foreign || !file.is_empty(), pointer: pointer.to_owned() };
            all.extend(self.alternatives(&target));
        }
        for (index, member) in value["anyOf"].as_array().into_iter().flatten().enumerate() {
            if member.get("$ref").is_some() || member.get("type").is_some() {
                all.extend(self.alternatives(&below(node, &["anyOf", &index.to_string()])));
            }
        }
        all
    }
}

/// Compares the keys of a schema with those of a reader, in every object of `sample`, which has
/// all objects that there can be. `known` gets the sample with an unknown key at the object with
/// this JSON pointer, and returns the keys that the reader knows there, or `None` if the reader
/// accepts the key.
pub(crate) fn compare_keys(schema: &Schema, sample: &Value, known: impl Fn(&Value, &str) -> Option<BTreeSet<String>>) {
    let mut seen = BTreeSet::new();
    for pointer in objects_of(sample, "") {
        let node = schema.at(&pointer).and_then(|node| schema.object(&node));
        let node = node.unwrap_or_else(|| panic!("the schema has no object at `{pointer}`"));
        let mut document = sample.clone();
        document.pointer_mut(&pointer).unwrap()[UNKNOWN] = json!("x");
        let value = schema.value(&node);
        let keys: BTreeSet<String> = value["properties"].as_object().into_iter().flat_map(Map::keys).cloned().collect();
        match known(&document, &pointer) {
            Some(known) => assert_eq!((known, &value["additionalProperties"]), (keys, &json!(false)), "{pointer}"),
            None => assert!(keys.is_empty() && value["additionalProperties"] != json!(false), "{pointer}"),
        }
        seen.insert(node);
    }
    let missing: Vec<Node> = schema.objects().into_iter().filter(|node| !seen.contains(node)).collect();
    assert!(missing.is_empty(), "the sample has no object for {missing:#?}");
}

/// Checks for every default that the reader reads a file with the default as one without the key.
pub(crate) fn compare_defaults(schema: &Schema, sample: &Value, read: impl Fn(&Value) -> String) {
    let mut count = 0;
    for pointer in objects_of(sample, "") {
        let node = schema.object(&schema.at(&pointer).unwrap()).unwrap();
        for key in schema.value(&node)["properties"].as_object().into_iter().flat_map(Map::keys) {
            let Some(default) = schema.keyword(&below(&node, &["properties", key]), "default") else { continue };
            let (mut with, mut without) = (sample.clone(), sample.clone());
            with.pointer_mut(&pointer).unwrap()[key] = default.clone();
            without.pointer_mut(&pointer).and_then(Value::as_object_mut).unwrap().shift_remove(key);
            assert_eq!(read(&with), read(&without), "the default of `{pointer}/{key}`");
            count += 1;
        }
    }
    assert!(count > 0);
}

/// Checks that each key has a description, in sentences.
pub(crate) fn check_descriptions(schema: &Schema) {
    for node in schema.objects() {
        for key in schema.value(&node)["properties"].as_object().into_iter().flat_map(Map::keys) {
            let description = schema.keyword(&below(&node, &["properties", key]), "description");
            let text = description.and_then(Value::as_str).unwrap_or_default();
            assert!(text.ends_with('.') && text.starts_with(char::is_uppercase), "{}/{key}: {text}", node.pointer);
        }
    }
}

/// Returns the directory of the repository.
pub(crate) fn repository() -> PathBuf {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    above.find(|directory| directory.join("docs/schema").is_dir()).unwrap().to_owned()
}

/// Returns the JSON pointers of all objects in a value.
pub(crate) fn objects_of(value: &Value, at: &str) -> Vec<String> {
    match value {
        Value::Object(map) => {
            let inner = map.iter().flat_map(|(key, value)| objects_of(value, &format!("{at}/{}", escaped(key))));
            std::iter::once(at.to_owned()).chain(inner).collect()
        }
        Value::Array(list) => {
            list.iter().enumerate().flat_map(|(index, value)| objects_of(value, &format!("{at}/{index}"))).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the part below this one.
pub(crate) fn below(node: &Node, segments: &[&str]) -> Node {
    let pointer = segments.iter().fold(node.pointer.clone(), |at, segment| format!("{at}/{}", escaped(segment)));
    Node { pointer, ..*node }
}

fn root() -> Node {
    Node { foreign: false, pointer: String::new() }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
