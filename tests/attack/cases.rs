//! The corpus: rows of data, and cases in code where there are files to make.

use crate::case::Case;
use crate::row;

/// In the order of the table.
pub(crate) fn all() -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for (class, rows) in ROWS {
        cases.extend(row::cases(class, rows)?);
    }
    Ok(cases)
}

const ROWS: [(&str, &str); 1] = [("URL and host forms", include_str!("rows/urls.json"))];
