//! Reads forms: names and values, then the parameters of an operation as a tree with
//! types.
//!
//! It is stricter than the services: a name that occurs twice, a gap in a list, a leading
//! zero, and an empty number are errors, because they are mistakes of a client that the
//! services answer in ways that are hard to understand.

use super::error::{Error, invalid, missing};
use super::model::{Direction, Operation, Shape, Structure};
use super::service::Api;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// The parameters of every request.
const COMMON: [&str; 2] = ["Action", "Version"];

/// Returns the names and values of a form.
pub(super) fn parse(body: &[u8]) -> Result<Vec<(String, String)>, Error> {
    let malformed = |why: &str| Error::new("MalformedQueryString", format!("The form is malformed: {why}."));
    let text = std::str::from_utf8(body).map_err(|_| malformed("it is not UTF-8"))?;
    let mut pairs: Vec<(String, String)> = Vec::new();
    for pair in text.split('&').filter(|_| !text.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or_else(|| malformed("a parameter has no value"))?;
        let decoded = |text| decode(text).ok_or_else(|| malformed("an escape or a character is invalid"));
        let (name, value) = (decoded(name)?, decoded(value)?);
        if pairs.iter().any(|(known, _)| *known == name) {
            return Err(malformed(&format!("the parameter {name} occurs twice")));
        }
        pairs.push((name, value));
    }
    Ok(pairs)
}

/// Returns the text without `+` and escapes. Only letters, digits and `-._~*` may be written without escape.
fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let (mut plain, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let digits = bytes.get(at + 1..at + 3)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                plain.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
                at += 2;
            }
            b'+' => plain.push(b' '),
            byte if byte.is_ascii_alphanumeric() || b"-._~*".contains(&byte) => plain.push(byte),
            _ => return None,
        }
        at += 1;
    }
    String::from_utf8(plain).ok()
}

/// Returns the parameters as the operation's model describes them: structures are
/// objects, lists arrays, numbers and booleans have their type.
pub(super) fn parameters(api: Api, operation: Operation, pairs: &[(String, String)]) -> Result<Value, Error> {
    let mut tree = Map::new();
    for (name, value) in pairs.iter().filter(|(name, _)| !COMMON.contains(&name.as_str())) {
        insert(&mut tree, name, value).ok_or_else(|| unknown(name))?;
    }
    let reader = Reader { api, operation };
    match operation.shape(Direction::Input) {
        Some(shape) => reader.structure(shape, &Value::Object(tree), ""),
        None => tree.keys().next().map_or(Ok(json!({})), |name| Err(unknown(name))),
    }
}

fn insert(tree: &mut Map<String, Value>, name: &str, value: &str) -> Option<()> {
    match name.split_once('.') {
        None => match tree.insert(name.to_owned(), json!(value)) {
            None => Some(()),
            Some(_) => None,
        },
        Some((first, rest)) => {
            let branch = tree.entry(first).or_insert_with(|| json!({}));
            insert(branch.as_object_mut()?, rest, value)
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::new("UnknownParameter", format!("The parameter {name} is not recognized"))
}

struct Reader {
    api: Api,
    operation: Operation,
}

impl Reader {
    fn value(&self, shape: &str, given: &Value, name: &str) -> Result<Value, Error> {
        let shape = self.operation.resolve(Direction::Input, shape);
        match shape {
            Shape::Structure(structure) => return self.structure(structure, given, name),
            Shape::List { member, item } => return self.list(member, item, given, name),
            _ => {}
        }
        let text = given.as_str().ok_or_else(|| unknown(name))?;
        let wrong = |why: &str| invalid(name, text, why);
        match shape {
            Shape::Integer => number(text).map(Value::from).ok_or_else(|| wrong("It must be an integer.")),
            Shape::Number => text.parse::<f64>().ok().map(Value::from).ok_or_else(|| wrong("It must be a number.")),
            Shape::Boolean => match text {
                "true" => Ok(json!(true)),
                "false" => Ok(json!(false)),
                _ => Err(wrong("It must be true or false.")),
            },
            Shape::Enum(values) if !values.iter().any(|value| value == text) => {
                Err(wrong("It is not one of the values of the API."))
            }
            Shape::Blob if STANDARD.decode(text).is_err() => Err(wrong("It must be Base64.")),
            _ => Ok(json!(text)),
        }
    }

    fn structure(&self, shape: Structure<'_>, given: &Value, prefix: &str) -> Result<Value, Error> {
        let whole = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
        let given = given.as_object().ok_or_else(|| unknown(prefix))?;
        let mut read = Map::new();
        for (name, value) in given {
            let member = shape.member(name).ok_or_else(|| unknown(&whole(name)))?;
            read.insert(name.clone(), self.value(member, value, &whole(name))?);
        }
        match shape.required().find(|name| !read.contains_key(*name)) {
            Some(name) => Err(missing(&whole(name))),
            None => Ok(Value::Object(read)),
        }
    }

    fn list(&self, member: &str, item: &str, given: &Value, name: &str) -> Result<Value, Error> {
        // The query protocol writes an empty list as an empty value.
        if self.api != Api::Ec2 && given == "" {
            return Ok(json!([]));
        }
        let (given, name) = match item {
            "" => (given, name.to_owned()),
            item => {
                let only = given.as_object().filter(|given| given.len() == 1).and_then(|given| given.get(item));
                (only.ok_or_else(|| unknown(name))?, format!("{name}.{item}"))
            }
        };
        let given = given.as_object().ok_or_else(|| unknown(&name))?;
        let mut values = Vec::new();
        for index in 1..=given.len() {
            let whole = format!("{name}.{index}");
            let value = given.get(&index.to_string()).ok_or_else(|| {
                let why = "its elements must be numbered from 1 without gaps";
                Error::new("InvalidParameterValue", format!("The list {name} is invalid: {why}."))
            })?;
            values.push(self.value(member, value, &whole)?);
        }
        Ok(Value::Array(values))
    }
}

/// Reads an integer that is written in the shortest way.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::super::model;
    use super::*;

    fn read(api: Api, operation: &str, form: &str) -> Result<Value, String> {
        let operation = model::operation(api, operation).unwrap_or_else(|| panic!("{operation}"));
        let pairs = parse(form.as_bytes()).map_err(|error| error.code)?;
        parameters(api, operation, &pairs).map_err(|error| error.code)
    }

    #[test]
    fn parameters_have_the_types_of_the_model() {
        let form = "Action=RunInstances&Version=2016-11-15&MinCount=1&MaxCount=1&NetworkInterface.1.DeviceIndex=0\
            &NetworkInterface.1.SecurityGroupId.1=sg-1&NetworkInterface.1.DeleteOnTermination=true&UserData=a%2Bb%3D+";
        let expected = json!({
            "MinCount": 1, "MaxCount": 1, "UserData": "a+b= ",
            "NetworkInterface": [{"DeviceIndex": 0, "SecurityGroupId": ["sg-1"], "DeleteOnTermination": true}],
        });
        assert_eq!(read(Api::Ec2, "RunInstances", form), Ok(expected));
        let form = "LoadBalancerName=a&Instances.member.1.InstanceId=i-1&Instances.member.2.InstanceId=i-2";
        let instances = json!([{"InstanceId": "i-1"}, {"InstanceId": "i-2"}]);
        let expected = json!({"LoadBalancerName": "a", "Instances": instances});
        assert_eq!(read(Api::Elb, "RegisterInstancesWithLoadBalancer", form), Ok(expected));
    }

    #[test]
    fn mistakes_are_refused() {
        for (operation, form, code) in [
            ("DescribeVolumes", "VolumeIds.1=vol-1", "UnknownParameter"),
            ("DescribeVolumes", "volumeId.1=vol-1", "UnknownParameter"),
            ("DescribeVolumes", "VolumeId=vol-1", "UnknownParameter"),
            ("DescribeVolumes", "VolumeId.2=vol-1", "InvalidParameterValue"),
            ("DescribeVolumes", "VolumeId.01=vol-1", "InvalidParameterValue"),
            ("DescribeVolumes", "VolumeId.0=vol-1", "InvalidParameterValue"),
            ("DescribeVolumes", "VolumeId.member.1=vol-1", "InvalidParameterValue"),
            ("DescribeVolumes", "VolumeId.1=vol-1&VolumeId.1=vol-1", "MalformedQueryString"),
            ("DescribeVolumes", "VolumeId.1=vol-1&VolumeId.1.x=vol-1", "UnknownParameter"),
            ("DescribeVolumes", "MaxResults=5x", "InvalidParameterValue"),
            ("DescribeVolumes", "MaxResults=05", "InvalidParameterValue"),
            ("DescribeVolumes", "DryRun=True", "InvalidParameterValue"),
            ("DescribeVolumes", "DryRun", "MalformedQueryString"),
            ("DescribeVolumes", "NextToken=%2", "MalformedQueryString"),
            ("DescribeVolumes", "NextToken=a b", "MalformedQueryString"),
            ("CreateVolume", "VolumeType=gp9", "InvalidParameterValue"),
            ("AttachVolume", "Device=/dev/sdf&InstanceId=i-1", "MalformedQueryString"),
            ("AttachVolume", "Device=%2Fdev%2Fsdf&InstanceId=i-1", "MissingParameter"),
        ] {
            assert_eq!(read(Api::Ec2, operation, form), Err(code.to_owned()), "{form}");
        }
    }
}
