//! The test that takes longest, under a name that is run first: the others take
//! their turns beside it.

use crate::openstack::cpi::matrix;

#[test]
fn what_is_lost_before_real_services_ends_as_the_table_says_and_leaves_nothing() {
    matrix::what_is_lost_before_real_services();
}
