//! The slowest test. Tests start in the order of their names, and the name of this
//! module sorts first, so that the other tests run while this one waits.

use crate::openstack::cpi::fault_matrix;

#[test]
fn lost_answers_of_real_services_end_as_the_table_says_and_leave_nothing_behind() {
    fault_matrix::check_lost_answers_of_real_services();
}
