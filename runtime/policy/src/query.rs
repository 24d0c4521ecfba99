//! The query parameters that requests may have.
//!
//! Where a grant has slots, captures or `drop`, servers know values that the guest must not learn,
//! and many servers filter by the parameters of a query. So such an origin accepts only the
//! parameters that the grant lists.

use super::object_reader::ObjectReader;
use crate::invisible::is_invisible;

/// Returns the query parameter of a request that is not in the list, if there is one. Old servers
/// take `;` for a separator as well, so a query must not hold it.
pub(super) fn unlisted_parameter(query: Option<&str>, listed: &[String]) -> Option<String> {
    let query = query.unwrap_or_default();
    let mut names = url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name.into_owned());
    let unlisted = names.find(|name| !listed.contains(name));
    unlisted.or_else(|| query.contains(';').then(|| ";".to_owned()))
}

/// Reads the names of query parameters; `None` if the grant does not list any.
pub(super) fn read_query(reader: &mut ObjectReader<'_>) -> Option<Vec<String>> {
    reader.value("query")?;
    let mut names: Vec<String> = Vec::new();
    for (at, name) in reader.texts("query") {
        let hidden = |c: char| c.is_control() || c.is_whitespace() || is_invisible(c);
        if name.is_empty() || name.contains(hidden) {
            reader.problems().add(at, "is not the name of a parameter", "write its name alone, like \"name\"");
        } else if names.iter().any(|known| known == name) {
            reader.problems().add(at, format!("names `{name}` again"), "remove it");
        } else {
            names.push(name.to_owned());
        }
    }
    Some(names)
}
