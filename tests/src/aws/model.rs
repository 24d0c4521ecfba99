//! The public service models: which parameters operations have, and which elements their
//! responses have. `tests/aws/models.py` writes the table.

use super::service::Api;
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// Whether a shape belongs to a request or to a response: its names differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Input,
    Output,
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'a> {
    String,
    Integer,
    Number,
    Boolean,
    Timestamp,
    Blob,
    /// One of these strings.
    Enum(&'a [Value]),
    /// `item` is the level between a list and its elements, if there is one.
    List {
        member: &'a str,
        item: &'a str,
    },
    Structure(Structure<'a>),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Structure<'a> {
    members: Option<&'a Map<String, Value>>,
    table: &'a Value,
}

/// One operation of an API.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    api: Api,
    pub(super) name: &'static str,
    table: &'static Value,
}

fn tables() -> &'static Value {
    static TABLES: OnceLock<Value> = OnceLock::new();
    TABLES.get_or_init(|| {
        let text = include_str!("../../aws/models.json");
        serde_json::from_str(text).unwrap_or_else(|error| panic!("models.json: {error}"))
    })
}

fn table(api: Api) -> &'static Value {
    &tables()[api.model()]
}

/// Returns the version of the API, as in the parameter `Version`.
pub(super) fn version(api: Api) -> &'static str {
    table(api)["version"].as_str().unwrap_or_default()
}

/// Returns the XML namespace of the API's responses.
pub(super) fn namespace(api: Api) -> &'static str {
    table(api)["namespace"].as_str().unwrap_or_default()
}

pub(super) fn operations(api: Api) -> impl Iterator<Item = Operation> {
    let rows = table(api)["operations"].as_object().into_iter().flatten();
    rows.map(move |(name, table)| Operation { api, name, table })
}

pub(super) fn operation(api: Api, name: &str) -> Option<Operation> {
    operations(api).find(|operation| operation.name == name)
}

impl Operation {
    /// Returns the shape of the request or of the response; `None` if that is empty.
    pub(super) fn shape(self, direction: Direction) -> Option<Structure<'static>> {
        match self.resolve(direction, self.table[direction.key()].as_str()?) {
            Shape::Structure(structure) => Some(structure),
            other => panic!("models.json: {} of {} is {other:?}", direction.key(), self.name),
        }
    }

    /// Returns the shape with this name.
    pub(super) fn resolve(self, direction: Direction, name: &str) -> Shape<'static> {
        match name {
            "string" => return Shape::String,
            "integer" => return Shape::Integer,
            "number" => return Shape::Number,
            "boolean" => return Shape::Boolean,
            "timestamp" => return Shape::Timestamp,
            "blob" => return Shape::Blob,
            _ => {}
        }
        let table = &table(self.api)[direction.key()][name];
        if let Some(values) = table["enum"].as_array() {
            return Shape::Enum(values);
        }
        if let Some(member) = table["list"].as_str() {
            return Shape::List { member, item: table["item"].as_str().unwrap_or_default() };
        }
        Shape::Structure(Structure { members: table["members"].as_object(), table })
    }

    /// Returns the element around the result of the query protocol.
    pub(super) fn wrapper(self) -> Option<&'static str> {
        self.table["wrapper"].as_str()
    }

    /// Returns a text of the row: `method` and `path` of REST APIs.
    pub(super) fn text(self, key: &str) -> &'static str {
        self.table[key].as_str().unwrap_or_default()
    }

    /// Returns the status of a successful response of a REST API.
    pub(super) fn status(self) -> u16 {
        self.table["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200)
    }
}

impl<'a> Structure<'a> {
    /// Returns the name of a member's shape.
    pub(super) fn member(self, name: &str) -> Option<&'a str> {
        self.members?.get(name)?.as_str()
    }

    pub(super) fn members(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.members.into_iter().flatten().map(|(name, shape)| (name.as_str(), shape.as_str().unwrap_or_default()))
    }

    pub(super) fn required(self) -> impl Iterator<Item = &'a str> {
        self.table["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns where a REST API has this member: `header`, `uri`, `querystring`, or in the
    /// body.
    pub(super) fn place(self, name: &str) -> Option<&'a str> {
        self.table["places"][name].as_str()
    }

    /// Returns the member that is the whole body.
    pub(super) fn payload(self) -> Option<&'a str> {
        self.table["payload"].as_str()
    }
}

impl Direction {
    fn key(self) -> &'static str {
        match self {
            Direction::Input => "input",
            Direction::Output => "output",
        }
    }
}
