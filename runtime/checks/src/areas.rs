//! The checks by area. An entry has the name of its variant of `Check`.

#![allow(non_upper_case_globals, reason = "an entry has the name of its variant")]

pub(crate) mod address;
pub(crate) mod body_fields;
pub(crate) mod cache;
pub(crate) mod captures;
pub(crate) mod component;
pub(crate) mod connections;
pub(crate) mod director;
pub(crate) mod http_request;
pub(crate) mod http_response;
pub(crate) mod image;
pub(crate) mod lock_down;
pub(crate) mod log;
pub(crate) mod places;
pub(crate) mod policy;
pub(crate) mod policy_file;
pub(crate) mod registry;
pub(crate) mod sandbox;
pub(crate) mod seals;
pub(crate) mod secrets;
pub(crate) mod tls;
pub(crate) mod url;
