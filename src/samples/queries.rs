//! Example queries for the sample data: `www/samples/examples.aql`, which the playground shows.

const TEXT: &str = include_str!("../../www/samples/examples.aql");

/// An example query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuerySample {
    /// A short title.
    pub title: &'static str,
    /// The subject of the lesson.
    pub teaches: &'static str,
    /// Parameters by name, without `$`, with the JSON text (or bare text) of a value.
    pub parameters: Vec<(&'static str, &'static str)>,
    /// The text.
    pub aql: &'static str,
}

/// Returns example queries for the sample data, from plain to demanding.
///
/// In the file each starts with comments: `-- # title`, its lesson, and a line `-- $name = value`
/// for each parameter.
pub fn queries() -> Vec<QuerySample> {
    TEXT.split("-- # ").skip(1).filter_map(read).collect()
}

fn read(part: &'static str) -> Option<QuerySample> {
    let (head, _) = part.split_once("\nSELECT")?;
    let aql = part.get(head.len()..)?.trim();
    let mut lines = head.lines();
    let title = lines.next()?;
    let about = lines.filter_map(|line| line.strip_prefix("-- "));
    let (parameters, teaches): (Vec<&str>, Vec<&str>) =
        about.partition(|line| line.starts_with('$') && line.contains(" = "));
    let parameters = parameters
        .iter()
        .filter_map(|line| line.trim_start_matches('$').split_once(" = "))
        .collect();
    Some(QuerySample {
        title,
        teaches: teaches.first().copied().unwrap_or_default(),
        parameters,
        aql,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_a_title_a_lesson_and_a_text() {
        let all = queries();
        assert!(all.len() >= 9);
        assert!(
            all.iter().all(|q| !q.title.is_empty()
                && !q.teaches.is_empty()
                && q.aql.starts_with("SELECT"))
        );
        assert_eq!(
            all.iter()
                .flat_map(|q| q.parameters.clone())
                .collect::<Vec<_>>(),
            [("warmer", "37.5")]
        );
    }
}
