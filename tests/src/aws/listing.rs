//! Lists resources: by ids, by filters, in pages.

use super::ec2::Call;
use super::error::{Error, combination, invalid};
use super::kind::Kind;
use super::parameters::{list, number, text, texts};
use super::state::State;
use crate::simulation::Item;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// How resources of a kind are listed.
pub(super) struct Listing {
    pub(super) kind: Kind,
    /// The parameter with a list of ids.
    pub(super) ids: &'static str,
    /// The filters, and where in a resource each finds its values.
    pub(super) filters: &'static [(&'static str, &'static str)],
    /// The element of the result.
    pub(super) result: &'static str,
}

/// Returns the result of a `Describe` operation. `view` returns a resource as responses show it.
pub(super) fn describe(
    state: &mut State,
    call: &Call<'_>,
    listing: &Listing,
    view: impl Fn(&State, &Item) -> Value,
) -> Result<Value, Error> {
    let found = select(state, call, listing, &view)?;
    page(call.parameters, listing, found)
}

/// Returns the resources that match ids and filters, as responses show them.
pub(super) fn select(
    state: &mut State,
    call: &Call<'_>,
    listing: &Listing,
    view: impl Fn(&State, &Item) -> Value,
) -> Result<Vec<Value>, Error> {
    let filters = read_filters(call.parameters, listing.filters)?;
    let ids = texts(call.parameters, listing.ids);
    let all = state.list(listing.kind, call.account).into_iter().map(|item| item.id);
    let hidden: Vec<String> = all.filter(|id| state.is_hidden(id)).collect();
    for id in &ids {
        state.find(listing.kind, call.account, id)?;
    }
    let wanted = |item: &Item| ids.is_empty() || ids.contains(&item.id.as_str());
    let matching = |state: &State| -> Vec<(String, Value)> {
        let items = state.list(listing.kind, call.account).into_iter().filter(&wanted);
        let shown = items.filter(|item| !hidden.contains(&item.id)).map(|item| (item.id.clone(), view(state, &item)));
        shown.filter(|(_, view)| filters.iter().all(|filter| filter.matches(view))).collect()
    };
    // A read may complete changes, after which other resources match.
    let mut read: Vec<String> = matching(state).into_iter().map(|(id, _)| id).collect();
    read.extend_from_slice(&hidden);
    state.count_read(&read.iter().map(String::as_str).collect::<Vec<_>>());
    Ok(matching(state).into_iter().map(|(_, view)| view).collect())
}

/// Returns one page of the result.
pub(super) fn page(parameters: &Value, listing: &Listing, found: Vec<Value>) -> Result<Value, Error> {
    let Some(most) = number(parameters, "MaxResults") else {
        return Ok(json!({listing.result: found}));
    };
    if !list(parameters, listing.ids).is_empty() {
        let message = format!("The parameter {} cannot be used with the parameter maxResults", listing.ids);
        return Err(combination(message));
    }
    let most = usize::try_from(most).ok().filter(|most| (5..=1000).contains(most));
    let most = most.ok_or_else(|| invalid("maxResults", &parameters["MaxResults"].to_string(), ""))?;
    let start = match text(parameters, "NextToken") {
        None => 0,
        Some(token) => read_token(token).ok_or_else(|| invalid("nextToken", token, ""))?,
    };
    let mut result = Map::new();
    if start + most < found.len() {
        result.insert("nextToken".to_owned(), json!(STANDARD.encode(format!("from {}", start + most))));
    }
    result.insert(listing.result.to_owned(), found.into_iter().skip(start).take(most).collect());
    Ok(Value::Object(result))
}

fn read_token(token: &str) -> Option<usize> {
    let text = String::from_utf8(STANDARD.decode(token).ok()?).ok()?;
    text.strip_prefix("from ")?.parse().ok()
}

/// A filter matches if one of its patterns matches one of the values.
struct Filter<'a> {
    place: Place<'a>,
    patterns: Vec<&'a str>,
}

enum Place<'a> {
    Path(&'a str),
    Tag(&'a str),
    TagKey,
}

fn read_filters<'a>(parameters: &'a Value, known: &'a [(&str, &str)]) -> Result<Vec<Filter<'a>>, Error> {
    let read = list(parameters, "Filter").iter().map(|filter| {
        let name = text(filter, "Name").unwrap_or_default();
        let place = match (name.strip_prefix("tag:"), known.iter().find(|(known, _)| *known == name)) {
            (Some(tag), _) => Place::Tag(tag),
            (None, Some((_, path))) => Place::Path(path),
            (None, None) if name == "tag-key" => Place::TagKey,
            (None, None) => return Err(Error::new("InvalidParameterValue", format!("The filter '{name}' is invalid"))),
        };
        let patterns = texts(filter, "Value");
        if patterns.is_empty() {
            return Err(Error::new("InvalidParameterValue", "The filter value cannot be empty"));
        }
        Ok(Filter { place, patterns })
    });
    read.collect()
}

impl Filter<'_> {
    fn matches(&self, view: &Value) -> bool {
        let tags = view["tagSet"].as_array().into_iter().flatten();
        let values: Vec<String> = match self.place {
            Place::Path(path) => values(view, path),
            Place::Tag(key) => tags.filter(|tag| tag["key"] == key).map(|tag| plain(&tag["value"])).collect(),
            Place::TagKey => tags.map(|tag| plain(&tag["key"])).collect(),
        };
        values.iter().any(|value| self.patterns.iter().any(|pattern| is_like(value, pattern)))
    }
}

/// Returns the values at a path; lists on the way contribute all their elements.
fn values(view: &Value, path: &str) -> Vec<String> {
    if let Some(list) = view.as_array() {
        return list.iter().flat_map(|element| values(element, path)).collect();
    }
    match path.split_once('.') {
        None if path.is_empty() => vec![plain(view)],
        None => match &view[path] {
            Value::Null => Vec::new(),
            Value::Array(list) => list.iter().map(plain).collect(),
            value => vec![plain(value)],
        },
        Some((first, rest)) => values(&view[first], rest),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns true if the pattern matches: `*` stands for any text, `?` for one character.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut letters = pattern.chars();
    match letters.next() {
        None => text.is_empty(),
        Some('*') => {
            let rest = letters.as_str();
            (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| is_like(&text[at..], rest))
        }
        Some(letter) => {
            let mut own = text.chars();
            own.next().is_some_and(|own| letter == '?' || own == letter) && is_like(own.as_str(), letters.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_like_those_of_filters() {
        for (text, pattern, fit) in [
            ("abc", "abc", true),
            ("abc", "a*", true),
            ("abc", "*c", true),
            ("abc", "a?c", true),
            ("abc", "a?", false),
            ("abc", "ABC", false),
            ("", "*", true),
        ] {
            assert_eq!(is_like(text, pattern), fit, "{text} {pattern}");
        }
    }

    #[test]
    fn a_path_leads_through_lists() {
        let view = json!({"a": [{"b": 1}, {"b": "x"}, {}], "c": [1, 2], "d": true});
        assert_eq!(values(&view, "a.b"), ["1", "x"]);
        assert_eq!(values(&view, "c"), ["1", "2"]);
        assert_eq!(values(&view, "d"), ["true"]);
        assert_eq!(values(&view, "e.f"), Vec::<String>::new());
    }
}
