//! Turns the `names` of a row into the replies of the name server.

use crate::dns::Reply;
use serde_json::{Value, json};
use std::collections::HashMap;
use tests::rows::texts;

/// Returns the replies for each name. `api.iaas.test` and `evil.test` have defaults.
pub(crate) fn names(names: &Value) -> HashMap<String, Vec<Reply>> {
    let mut all = HashMap::from([
        ("api.iaas.test".to_owned(), vec![addresses(&json!(["5.6.7.10"]))]),
        ("evil.test".to_owned(), vec![addresses(&json!(["5.6.7.66"]))]),
    ]);
    for (name, value) in names.as_object().into_iter().flatten() {
        let replies = match value {
            Value::Array(lookups) if lookups.first().is_some_and(Value::is_array) => {
                lookups.iter().map(addresses).collect()
            }
            Value::String(keyword) => vec![reply(keyword)],
            one => vec![addresses(one)],
        };
        all.insert(name.clone(), replies);
    }
    all
}

fn reply(keyword: &str) -> Reply {
    let evil = vec![[5, 6, 7, 66].into()];
    match keyword {
        "nxdomain" => Reply::NoSuchName,
        "servfail" => Reply::ServerFailure,
        "silence" => Reply::Silence,
        "garbage" => Reply::Garbage,
        "alias-loop" => Reply::AliasLoop,
        "pointer-loop" => Reply::PointerLoop,
        "short-address" => Reply::ShortAddress,
        "missing-records" => Reply::MissingRecords,
        "endless" => Reply::Endless,
        "other-name" => Reply::OtherName(evil),
        "other-owner" => Reply::OtherOwner(evil),
        "wrong-id" => Reply::WrongId(evil),
        "other-server" => Reply::OtherServer(evil),
        "many" => {
            Reply::Addresses((0..1000_u16).map(|n| [5, 6, n.to_be_bytes()[0] + 8, n.to_be_bytes()[1]].into()).collect())
        }
        other => {
            let alias = other
                .strip_prefix("alias:")
                .unwrap_or_else(|| panic!("`{other}` is not a known reply of a name server"));
            let (name, address) = alias.split_once('=').unwrap_or((alias, ""));
            Reply::Alias(name.to_owned(), address.parse().into_iter().collect())
        }
    }
}

fn addresses(list: &Value) -> Reply {
    let address = |text: String| text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    Reply::Addresses(texts(list).into_iter().map(address).collect())
}
