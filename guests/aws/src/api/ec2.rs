//! EC2: its query API of version 2016-11-15.

mod images;
mod instance_types;
mod instances;
mod interfaces;
mod modifications;
mod networks;
mod registration;
mod routes;
mod snapshots;
mod tags;
mod volumes;
mod zones;

use wasm_cpi_sdk::query_api::Operation;
use wasm_cpi_sdk::xml::{Element, XmlError};

pub(crate) use images::Image;
pub(crate) use instance_types::InstanceType;
pub(crate) use instances::Instance;
pub(crate) use interfaces::Interface;
pub(crate) use modifications::Modification;
pub(crate) use networks::{Address, SecurityGroup};
pub(crate) use routes::RouteTable;
pub(crate) use volumes::Volume;

use super::Query;

const VERSION: &str = "2016-11-15";

/// The operations of EC2. Each function returns a request.
pub(crate) struct Ec2 {
    url: String,
}

impl Ec2 {
    pub(crate) fn new(url: String) -> Self {
        Self { url }
    }

    /// Returns a request that has the same effect if it is sent twice.
    fn repeatable<T>(&self, operation: Operation, read: fn(&Element) -> Result<T, XmlError>) -> Query<T> {
        Query::repeatable(&self.url, operation, read)
    }

    /// Returns a request that has another effect if it is sent twice.
    fn once<T>(&self, operation: Operation, read: fn(&Element) -> Result<T, XmlError>) -> Query<T> {
        Query::once(&self.url, operation, read)
    }
}

fn operation(action: &str) -> Operation {
    Operation::new(action, VERSION)
}

/// The reader of operations whose answer says only that they succeeded.
fn nothing(_: &Element) -> Result<(), XmlError> {
    Ok(())
}

/// Returns the texts of the elements at a path.
fn texts(element: &Element, path: &str) -> Vec<String> {
    element.items(path).into_iter().map(|item| item.value().to_owned()).collect()
}

/// Returns the text at a path, or an empty text.
fn text_or_empty(element: &Element, path: &str) -> String {
    element.text(path).unwrap_or_default().to_owned()
}
