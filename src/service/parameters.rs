//! The parameters of a query request: text, placeholder values, page and EHR, from a query string
//! or a JSON body.
//!
//! `query_parameters`, `query-parameters` and `query_parameter` are equivalent. In a query string
//! every key but `q`, `offset`, `fetch`, `snapshot` and `ehr_id` is a placeholder. Its value is
//! text and takes the type of the values that it is compared with. In a JSON body values keep their
//! types.

use super::Request;
use super::auth::{Action, Permission, Reach, Subject};
use super::call::Call;
use super::content::malformed;
use super::error::Failure;
use super::ids::is_uuid;
use super::page_state::PageState;
use super::time::with_plus;
use crate::aql::{Parameter, Parameters};
use crate::rm::json::{self, members};
use aqlite_rm::order;
use serde_json::{Value, json};
use std::borrow::Cow;

/// A request to run a query.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct QueryRequest {
    /// The query text, if the request has it.
    pub q: Option<String>,
    /// Placeholder values.
    pub parameters: Parameters,
    /// The placeholders that the request sets to null.
    pub nulls: Vec<String>,
    /// The names of the values that are not read, because the text has no such placeholder.
    pub unused: Vec<String>,
    /// The EHR to which the query is restricted.
    pub ehr: Option<String>,
    /// Rows to skip.
    pub offset: Option<u64>,
    /// Rows to return.
    pub fetch: Option<u64>,
    /// The state to read; `None` for the newest one.
    pub snapshot: Option<PageState>,
    /// The sorted placeholders of the text; values of others are not read. `None`: all values are
    /// read.
    wanted: Option<Vec<String>>,
    /// The number of values so far, with those that are not read.
    sent: usize,
    /// The number of values of lists so far.
    listed: usize,
}

/// The maximum number of values that a request may bind, without those of lists.
const MAX_VALUES: usize = 1_000;

/// The maximum number of values of all lists that a request may bind.
const MAX_LISTED: usize = 200_000;

impl QueryRequest {
    /// Reads the query string, and the body of a POST. Reads only values of placeholders of the
    /// text, which is `stored` or part of the request.
    pub fn read(call: &Call<'_>, stored: Option<&str>) -> Result<QueryRequest, Failure> {
        let body = posted_members(call)?;
        // Before any value is parsed, which would multiply its memory.
        within_bytes(&call.request.query, &body, call.config.limits.parameters)?;
        let in_url = || call.request.query_value("q");
        let in_body = || body.iter().find(|(key, _)| key == "q");
        let q = stored
            .or_else(in_url)
            .map(str::to_owned)
            .or_else(|| json::text(in_body()?.1));
        let mut request = QueryRequest {
            // Unknown names are not parsed: a client could otherwise make the service hold any
            // amount of values.
            wanted: Some(q.as_deref().map(placeholders).unwrap_or_default()),
            ..QueryRequest::default()
        };
        for (key, value) in &call.request.query {
            request.take_text(key, value)?;
        }
        request.take_members(body)?;
        request.take_header(call.request)?;
        request.confined(call)
    }

    /// Returns whether a GET of a stored query executes it: it has any parameter, `openEHR-EHR-id`
    /// or `If-None-Match`.
    pub fn requests_execution(request: &Request) -> bool {
        !request.query.is_empty()
            || request.header("openEHR-EHR-id").is_some()
            || request.header("If-None-Match").is_some()
    }

    /// Restricts the query to the data that the caller may query: their EHR, a named EHR, or
    /// everything.
    pub fn confined(mut self, call: &Call<'_>) -> Result<QueryRequest, Failure> {
        match call.caller.reach(
            Permission {
                act: Action::Search,
                ..call.permission
            },
            Subject::from_name(call.optional_param(0)),
        )? {
            Reach::All => {}
            Reach::Named if self.ehr.is_some() => {}
            Reach::Named => {
                return Err(Failure::new(
                    403,
                    "a query of the whole population needs the role population: name one EHR by `ehr_id`",
                ));
            }
            // The same error as for an EHR that does not exist.
            Reach::One(own) if self.ehr.as_ref().is_some_and(|ehr| *ehr != own) => {
                return Err(Failure::no_ehr());
            }
            Reach::One(own) => self.ehr = Some(own),
        }
        self.finished()
    }

    fn take_text(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        match key {
            "q" => once(&mut self.q, key, value.to_owned())?,
            "offset" => once(&mut self.offset, key, count(key, value)?)?,
            "fetch" => once(&mut self.fetch, key, count(key, value)?)?,
            "snapshot" => once(&mut self.snapshot, key, PageState::parse(value)?)?,
            "ehr_id" => self.narrow(value)?,
            _ if is_parameters(key) => self.unpack(value)?,
            _ => self.add_text(key, value)?,
        }
        Ok(())
    }

    /// Reads `query_parameter=name=value`, or a JSON object.
    fn unpack(&mut self, value: &str) -> Result<(), Failure> {
        if value.trim_start().starts_with('{') {
            return self.bind_all(value);
        }
        for pair in value.split('&').filter(|p| !p.trim().is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                Failure::bad_request("`query_parameter` is neither `name=value` nor a JSON object")
            })?;
            self.add_text(name.trim(), value)?;
        }
        Ok(())
    }

    /// Adds a value from a query string. Several values of one name become a list.
    fn add_text(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        let name = name.strip_prefix('$').unwrap_or(name);
        self.count()?;
        if !self.wants(name) {
            return self.narrow_unwanted(name, value);
        }
        let value = Parameter::Untyped(as_stored(name, with_plus(value).into_owned()));
        match self.parameters.get_mut(name) {
            None => {
                self.parameters.insert(name.to_owned(), value);
            }
            Some(Parameter::List(values)) => values.push(value),
            // A repetition of the same value is not a list.
            Some(bound) if *bound == value => {}
            Some(bound) => *bound = Parameter::List(vec![bound.clone(), value]),
        }
        Ok(())
    }

    /// Restricts a query without `$ehr_id` to the value of that name, as the parameter `ehr_id`
    /// does, because a scope is never ignored. Values of other names are left out.
    fn narrow_unwanted(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        if name == "ehr_id" {
            return self.narrow(value);
        }
        self.unused.push(name.to_owned());
        Ok(())
    }

    /// Counts a value, even if it is not read.
    fn count(&mut self) -> Result<(), Failure> {
        self.sent += 1;
        if self.sent > MAX_VALUES {
            return Err(Failure::bad_request(format!(
                "the request binds more than {MAX_VALUES} parameters: bind a list to one placeholder instead"
            )));
        }
        Ok(())
    }

    /// Counts the values of a list, with those of nested lists.
    fn count_listed(&mut self, parameter: &Parameter) -> Result<(), Failure> {
        let Parameter::List(values) = parameter else {
            return Ok(());
        };
        self.listed += values.len();
        if self.listed > MAX_LISTED {
            return Err(Failure::bad_request(format!(
                "the request binds lists of more than {MAX_LISTED} values in all: store them as value sets, or ask in several queries"
            )));
        }
        values.iter().try_for_each(|value| self.count_listed(value))
    }

    fn wants(&self, name: &str) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| {
            wanted
                .binary_search_by(|other| other.as_str().cmp(name))
                .is_ok()
        })
    }

    fn take_members(&mut self, body: Vec<(Cow<'_, str>, &str)>) -> Result<(), Failure> {
        for (key, value) in body {
            match &*key {
                _ if value == "null" => {}
                "q" => once(&mut self.q, &key, string(&key, value)?)?,
                "offset" => once(
                    &mut self.offset,
                    &key,
                    count(&key, value.trim_matches('"'))?,
                )?,
                "fetch" => once(&mut self.fetch, &key, count(&key, value.trim_matches('"'))?)?,
                "snapshot" => once(
                    &mut self.snapshot,
                    &key,
                    PageState::parse(&string(&key, value)?)?,
                )?,
                "ehr_id" => self.narrow(&string(&key, value)?)?,
                key if is_parameters(key) => self.bind_all(value)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Binds the members of a JSON object of names and values.
    fn bind_all(&mut self, object: &str) -> Result<(), Failure> {
        let all = members(object).map_err(|problem| {
            let place = problem.describe(object);
            Failure::bad_request(format!(
                "`query_parameters` is not a JSON object of names and values: {place}"
            ))
        })?;
        for (name, value) in all {
            self.count()?;
            let name = name.strip_prefix('$').unwrap_or(&name);
            let is_wanted = self.wants(name);
            if name == "ehr_id" && !is_wanted && value != "null" {
                self.narrow_unwanted(name, &string(name, value)?)?;
                continue;
            }
            if !is_wanted && !value.trim_start().starts_with('{') {
                self.unused.push(name.to_owned());
                continue;
            }
            let parameter = Parameter::from_json(name, value).map_err(Failure::bad_request)?;
            self.count_listed(&parameter)?;
            match parameter {
                // Null is no value (rulings R2): the placeholder stays unbound, and the checker
                // rejects the query.
                Parameter::Null => self.nulls.push(name.to_owned()),
                parameter => self.bind(name, parameter)?,
            }
        }
        Ok(())
    }

    fn bind(&mut self, name: &str, value: Parameter) -> Result<(), Failure> {
        let value = match value {
            Parameter::Text(text) => Parameter::Text(as_stored(name, text)),
            value => value,
        };
        match self.parameters.get(name) {
            Some(bound) if *bound != value => Err(Failure::repeated(name)),
            _ => {
                self.parameters.insert(name.to_owned(), value);
                Ok(())
            }
        }
    }

    fn take_header(&mut self, request: &Request) -> Result<(), Failure> {
        match request.header("openEHR-EHR-id").filter(|v| !v.is_empty()) {
            Some(id) => self.narrow(id),
            None => Ok(()),
        }
    }

    fn narrow(&mut self, ehr_id: &str) -> Result<(), Failure> {
        if !is_uuid(ehr_id.trim()) {
            return Err(Failure::bad_request("`ehr_id` is not a UUID"));
        }
        let ehr_id = ehr_id.trim().to_ascii_lowercase();
        if self.ehr.as_ref().is_some_and(|other| *other != ehr_id) {
            return Err(Failure::bad_request(
                "the request names two different EHRs by `ehr_id` and the header openEHR-EHR-id",
            ));
        }
        self.ehr = Some(ehr_id);
        Ok(())
    }

    /// Returns all parameters that determine the result, as JSON of a fixed form: EHR, page,
    /// snapshot, and each parameter with its type and its text as sent.
    pub fn to_json(&self) -> Value {
        let parameters: Vec<Value> = self
            .parameters
            .iter()
            .map(|(name, value)| json!([name, typed(value)]))
            .collect();
        let snapshot = self.snapshot.as_ref().map(ToString::to_string);
        json!({ "ehr": self.ehr, "offset": self.offset, "fetch": self.fetch, "snapshot": snapshot, "parameters": parameters })
    }

    /// Binds `$ehr_id` to the EHR of the request.
    fn finished(mut self) -> Result<QueryRequest, Failure> {
        if let Some(ehr) = &self.ehr
            && !self.parameters.contains_key("ehr_id")
        {
            let value = Parameter::Text(ehr.clone());
            self.parameters.insert(String::from("ehr_id"), value);
        }
        Ok(self)
    }
}

/// Returns the text of a parameter. The ids of EHRs are stored in lower case, and accepted in both.
fn as_stored(name: &str, text: String) -> String {
    match name == "ehr_id" && is_uuid(&text) {
        true => text.to_ascii_lowercase(),
        false => text,
    }
}

/// Returns a value with its type, because `1`, `"1"` and `1` from a URL may give different rows.
fn typed(value: &Parameter) -> Value {
    match value {
        Parameter::Null => json!(["null"]),
        Parameter::Boolean(flag) => json!(["boolean", flag]),
        Parameter::Number(text) => json!(["number", text]),
        Parameter::Text(text) => json!(["text", text]),
        Parameter::Untyped(text) => json!(["untyped", text]),
        Parameter::List(values) => json!(["list", values.iter().map(typed).collect::<Vec<_>>()]),
    }
}

fn is_parameters(key: &str) -> bool {
    matches!(
        key,
        "query_parameters" | "query-parameters" | "query_parameter"
    )
}

fn once<T: PartialEq>(place: &mut Option<T>, key: &str, value: T) -> Result<(), Failure> {
    match place.replace(value) {
        Some(before) if Some(&before) != place.as_ref() => Err(Failure::repeated(key)),
        _ => Ok(()),
    }
}

fn count(key: &str, text: &str) -> Result<u64, Failure> {
    text.trim()
        .parse()
        .map_err(|_| Failure::bad_request(format!("`{key}` is not a whole number from 0")))
}

/// Returns the members of the body of a POST.
fn posted_members<'c>(call: &Call<'c>) -> Result<Vec<(Cow<'c, str>, &'c str)>, Failure> {
    if call.request.method != "POST" {
        return Ok(Vec::new());
    }
    match call.text()? {
        text if text.trim().is_empty() => Ok(Vec::new()),
        text => members(text).map_err(|m| malformed("body", text, m)),
    }
}

fn string(key: &str, value: &str) -> Result<String, Failure> {
    json::text(value).ok_or_else(|| Failure::bad_request(format!("`{key}` is not a text")))
}

/// Rejects values of more bytes than a request may bind, before any of them is read.
fn within_bytes(
    query: &[(String, String)],
    body: &[(Cow<'_, str>, &str)],
    limit: usize,
) -> Result<(), Failure> {
    let in_query = query
        .iter()
        .filter(|(key, _)| key != "q")
        .map(|(key, value)| key.len() + value.len());
    let in_body = body
        .iter()
        .filter(|(key, _)| is_parameters(key))
        .map(|(_, value)| value.len());
    if in_query.chain(in_body).sum::<usize>() > limit {
        Err(Failure::too_large("set of query parameters", limit))
    } else {
        Ok(())
    }
}

/// Returns the names after `$` in a query text, sorted, including those in its strings and
/// comments. Additional names do no harm.
fn placeholders(q: &str) -> Vec<String> {
    let name = |rest: &str| {
        rest.chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect::<String>()
    };
    order::distinct(q.split('$').skip(1).map(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str) -> QueryRequest {
        let mut request = QueryRequest::default();
        for (key, value) in &Request::new("GET", target).query {
            request.take_text(key, value).unwrap();
        }
        request
    }

    #[test]
    fn query_strings_bind_every_other_key() {
        let request = request(
            "/query/aql?q=SELECT&fetch=3&t=36&$u=x&query_parameter=v=7&query_parameters={\"n\":37.50}&t=36&c=1&c=2",
        );
        let untyped = |text: &str| Parameter::Untyped(text.to_owned());
        assert_eq!(request.fetch, Some(3));
        assert_eq!(request.parameters.get("t"), Some(&untyped("36")));
        assert_eq!(request.parameters.get("u"), Some(&untyped("x")));
        assert_eq!(request.parameters.get("v"), Some(&untyped("7")));
        assert_eq!(
            request.parameters.get("n"),
            Some(&Parameter::Number(String::from("37.50")))
        );
        assert_eq!(
            request.parameters.get("c"),
            Some(&Parameter::List(vec![untyped("1"), untyped("2")]))
        );
    }

    #[test]
    fn bodies_keep_types_and_refuse_contradictions() {
        let mut request = QueryRequest::default();
        let mut take = |text| request.take_members(members(text).unwrap());
        take(r#"{"q":"SELECT","offset":"2","query_parameters":{"a":1.0,"b":["x",true]},"query-parameters":{"a":1.0}}"#).unwrap();
        assert!(take(r#"{"query_parameters":{"a":2}}"#).is_err());
        assert!(take(r#"{"fetch":-1}"#).is_err());
        assert!(take(r#"{"query_parameters":{"o":{}}}"#).is_err());
        assert_eq!(request.offset, Some(2));
        assert_eq!(
            request.parameters.get("a"),
            Some(&Parameter::Number(String::from("1.0")))
        );
        assert_eq!(
            request.parameters.get("b"),
            Some(&Parameter::List(vec![
                Parameter::Text(String::from("x")),
                Parameter::Boolean(true)
            ]))
        );
    }

    #[test]
    fn json_for_the_entity_tag_is_fixed_and_has_types() {
        let request = |body: &str| {
            let mut request = QueryRequest::default();
            request.take_members(members(body).unwrap()).unwrap();
            request.to_json().to_string()
        };
        let body = r#"{"offset":1,"fetch":2,"query_parameters":{"b":[1.0,"x"],"a":true}}"#;
        let parameters =
            r#"[["a",["boolean",true]],["b",["list",[["number","1.0"],["text","x"]]]]]"#;
        let fixed = format!(
            r#"{{"ehr":null,"fetch":2,"offset":1,"snapshot":null,"parameters":{parameters}}}"#
        );
        let in_order = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(in_order(&request(body)), in_order(&fixed));
        let of = |value: &str| request(&format!(r#"{{"query_parameters":{{"a":{value}}}}}"#));
        let all: std::collections::BTreeSet<String> = [
            "1", "1.0", "\"1\"", "true", "\"true\"", "[1]", "[\"1\"]", "[]",
        ]
        .map(of)
        .into();
        assert_eq!(all.len(), 8);
    }

    #[test]
    fn values_without_placeholder_are_counted_and_not_read() {
        let mut request = QueryRequest {
            wanted: Some(placeholders("WHERE a = $b AND c matches {$list_1}")),
            ..QueryRequest::default()
        };
        assert_eq!(
            request.wanted.as_deref(),
            Some(["b", "list_1"].map(String::from).as_slice())
        );
        request
            .take_members(
                members(r#"{"query_parameters":{"a":[[[[1]]]],"b":2,"list_1":[1]}}"#).unwrap(),
            )
            .unwrap();
        assert_eq!(
            (request.parameters.get("a"), request.parameters.get("b")),
            (None, Some(&Parameter::Number(String::from("2"))))
        );
        let many = (0..=MAX_VALUES)
            .map(|i| format!("\"p{i}\":1"))
            .collect::<Vec<_>>()
            .join(",");
        assert!(
            request
                .take_members(members(&format!("{{\"query_parameters\":{{{many}}}}}")).unwrap())
                .is_err()
        );
        let list = format!("[{}0]", "1,".repeat(crate::aql::MAX_MEMBERS));
        assert!(
            Parameter::from_json("p", &list).is_err()
                && Parameter::from_json("p", &list.replacen("1,", "", 1)).is_ok()
        );
    }
}
