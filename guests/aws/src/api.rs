//! The APIs of AWS: one file per service, with one typed function per operation. The host signs the requests.
//!
//! A function returns a [`Query`], which says what a repetition of the request would do. [`Query::send`] sends it, and a
//! [`Batch`] sends several that do not depend on each other at once.

mod batch;
pub(crate) mod ebs;
pub(crate) mod ec2;
pub(crate) mod elb;
pub(crate) mod elbv2;
mod failure;
mod query;

use failure::first;

pub(crate) use batch::Batch;
pub(crate) use failure::ApiError;
pub(crate) use query::Query;
