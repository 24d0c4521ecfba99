//! Requests of query APIs: one URL for everything, a form that names the operation and holds its parameters,
//! and responses in XML. The parameters are a JSON value, from `json!` or any `Serialize`:
//!
//! ```
//! use serde_json::json;
//! use wasm_cpi_sdk::fake::{Answer, Fake};
//! use wasm_cpi_sdk::query_api::Operation;
//! use wasm_cpi_sdk::{Error, http};
//!
//! fn create_volume(zone: &str, gib: u32, tags: &[(&str, &str)]) -> Result<String, Error> {
//!     let tags: Vec<_> = tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})).collect();
//!     let operation = Operation::new("CreateVolume", "2016-11-15")
//!         .set("AvailabilityZone", zone)
//!         .set("Size", gib)
//!         .set("TagSpecification", json!([{"ResourceType": "volume", "Tag": tags}]));
//!     let response = http::post("https://ec2.example/").operation(&operation).send()?.ok()?;
//!     Ok(response.xml(|volume| Ok(volume.required_text("volumeId")?.to_owned()))?)
//! }
//!
//! let answer = Answer::xml(200, "<CreateVolumeResponse><volumeId>vol-1</volumeId></CreateVolumeResponse>");
//! let host = Fake::new().on_operation("CreateVolume", answer).install();
//! assert_eq!(create_volume("z1", 10, &[("Name", "disk 1")]).unwrap(), "vol-1");
//! let form = host.request_form(0).unwrap();
//! assert_eq!(form["TagSpecification.1.Tag.1.Value"], "disk 1");
//! ```
//!
//! Many operations are POST requests that change nothing: allow the SDK to repeat them with
//! [`crate::http::Request::repeatable`]. [`crate::retry`] repeats requests that the API throttles, and
//! [`crate::idempotency`] makes tokens with which a create operation can be repeated.

mod parameters;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::{Map, Value, json};

use parameters::Fields;

use crate::http::{Cause, RequestError, form};
use crate::xml;

/// An operation of a query API, with its parameters.
#[derive(Clone, Debug)]
pub struct Operation {
    action: String,
    version: String,
    has_member_lists: bool,
    parameters: Map<String, Value>,
    filters: Vec<Value>,
    problem: Option<String>,
}

impl Operation {
    /// Starts an operation of an API with this version. Lists are written as EC2 does: `Name.1`, `Name.2`.
    pub fn new(action: &str, version: &str) -> Self {
        Self {
            action: action.to_owned(),
            version: version.to_owned(),
            has_member_lists: false,
            parameters: Map::new(),
            filters: vec![],
            problem: None,
        }
    }

    /// Writes lists as ELB, STS and most other APIs do: `Name.member.1`, `Name.member.2`.
    #[must_use]
    pub fn member_lists(mut self) -> Self {
        self.has_member_lists = true;
        self
    }

    /// Sets a parameter: a text, an integer, a boolean, a list, or an object whose keys are written as
    /// `Name.Key`. Null, as from `None`, leaves the parameter out.
    ///
    /// A request with such an operation fails before it is sent if a parameter is set twice, if the name is
    /// not one of letters, digits and dots, or if a list or an object would send nothing: an API reads a
    /// list that is not there as "all". Pass null to leave a list out.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => self.insert(name.to_owned(), value),
            Err(error) => self.report(format!("parameter `{name}` cannot be written: {error}")),
        }
        self
    }

    /// Sets the parameters of an object: `json!({…})`, or a struct whose fields are renamed to the names of
    /// the API.
    #[must_use]
    pub fn set_all(mut self, parameters: impl Serialize) -> Self {
        match serde_json::to_value(parameters) {
            Ok(Value::Object(parameters)) => {
                parameters.into_iter().for_each(|(name, value)| self.insert(name, value));
            }
            Ok(_) => self.report("the parameters are not an object".to_owned()),
            Err(error) => self.report(format!("the parameters cannot be written: {error}")),
        }
        self
    }

    /// Adds a filter of EC2: `Filter.N.Name`, `Filter.N.Value.1` and so on.
    #[must_use]
    pub fn filter<T: Serialize>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        let values: Result<Vec<Value>, _> = values.into_iter().map(serde_json::to_value).collect();
        match values {
            Ok(values) => self.filters.push(json!({"Name": name, "Value": values})),
            Err(error) => self.report(format!("filter `{name}` cannot be written: {error}")),
        }
        self
    }

    /// Returns the name of the operation.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// Returns the operation as a form, or the problem because of which it cannot be sent.
    pub(crate) fn form(&self) -> Result<String, String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let mut fields = Fields::new(self.has_member_lists);
        fields.add("Action", &json!(self.action))?;
        fields.add("Version", &json!(self.version))?;
        for (name, value) in &self.parameters {
            fields.add(name, value)?;
        }
        if !self.filters.is_empty() {
            fields.add("Filter", &json!(self.filters))?;
        }
        let fields = fields.finish()?;
        Ok(form(fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))))
    }

    fn insert(&mut self, name: String, value: Value) {
        if self.parameters.contains_key(&name) {
            return self.report(format!("parameter `{name}` is set twice"));
        }
        self.parameters.insert(name, value);
    }

    /// Keeps the first problem.
    fn report(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}

/// Returns the code in the XML of an error response, such as `InvalidVolume.NotFound`. After a request with a
/// filled slot there is one only if the slot has `xml:Code` in its `show`.
///
/// ```
/// use wasm_cpi_sdk::fake::{Answer, Fake};
/// use wasm_cpi_sdk::{http, query_api};
///
/// let body = "<Response><Errors><Error><Code>InvalidVolume.NotFound</Code></Error></Errors></Response>";
/// let _host = Fake::new().on("POST", "https://ec2.example/", Answer::xml(400, body)).install();
/// let error = http::post("https://ec2.example/").send().unwrap().ok().unwrap_err();
/// assert_eq!(query_api::error_code(&error).as_deref(), Some("InvalidVolume.NotFound"));
/// ```
pub fn error_code(error: &RequestError) -> Option<String> {
    let Cause::Status { body, .. } = &error.cause else { return None };
    let answer = xml::parse(body).ok()?;
    // EC2 answers in the first form, other query APIs in the second. The host shows a slot's places in the third.
    ["Errors/Error/Code", "Error/Code", "Code"].iter().find_map(|path| answer.text(path)).map(str::to_owned)
}
