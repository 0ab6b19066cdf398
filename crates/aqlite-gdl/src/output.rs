//! The answer of a guide execution, in the form of the openEHR service specification.

use super::compile::CompiledGuide;
use super::fill::json_number;
use super::guide::{Direction, Guide};
use super::run::{CardOut, Output, OutputValue, Run};
use super::trace::{Note, Trace};
use super::value::{Coded, Value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value as Json};

/// The execution of a guide on one or more EHRs.
#[derive(Clone, Debug, Serialize)]
pub struct Response {
    /// Figures of the execution: times, queries, rules that fired.
    pub execution_details: ExecutionDetails,
    /// The values that the guide computed, EHR by EHR.
    pub results: Vec<ResultInstance>,
    /// The cards of CDS Hooks, where rules have them.
    #[serde(rename = "_cards", skip_serializing_if = "Vec::is_empty")]
    pub cards: Vec<EhrCard>,
    /// The statements whose values could not be computed, and so counted as unknown.
    #[serde(rename = "_notes", skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<EhrNote>,
    /// The reasons why rules fired or not, on request.
    #[serde(rename = "_trace", skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<EhrTrace>,
}

/// Figures of an execution.
#[derive(Clone, Debug, Serialize)]
pub struct ExecutionDetails {
    /// The id of the guide.
    pub guide_id: String,
    /// Total time in milliseconds.
    pub execution_time: f64,
    /// Variables that are read from the record.
    pub number_of_in_arguments: usize,
    /// Variables of OUTPUT bindings that the guide can set.
    pub number_of_out_arguments: usize,
    /// Distinct literals in the expressions of the guide.
    pub number_of_constants: usize,
    /// The rules that fired, in order. With several EHRs, the rules of one EHR follow those of
    /// another.
    pub rules_executed: Vec<String>,
    /// The queries that supplied the data.
    pub query_execution_details: QueryExecutionDetails,
}

/// Figures of the queries.
#[derive(Clone, Debug, Serialize)]
pub struct QueryExecutionDetails {
    /// The number of queries: one for each EHR and binding that is read.
    pub number_of_queries: usize,
    /// Total time of the queries in milliseconds.
    pub query_time: f64,
    /// The queries one by one.
    pub queries: Vec<QueryDetails>,
}

/// One query that was executed.
#[derive(Clone, Debug, Serialize)]
pub struct QueryDetails {
    /// The gt-code of the binding.
    pub id: String,
    /// The query as executed.
    pub aql: String,
    /// Time in milliseconds. The time of a query for several EHRs is divided among them.
    pub query_time: f64,
    /// The values of the instance that the guide used (the last one), by variable or path.
    pub value: Map<String, Json>,
    /// The id of the EHR.
    #[serde(rename = "_ehr_id")]
    pub ehr_id: String,
}

/// The values of one model that the guide computed for one EHR.
#[derive(Clone, Debug, Serialize)]
pub struct ResultInstance {
    /// The archetype to which the paths belong.
    pub archetype_id: String,
    /// The template for the data, if the guide names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// The values.
    pub rm_values: Vec<RmValue>,
    /// The id of the EHR.
    #[serde(rename = "_ehr_id")]
    pub ehr_id: String,
}

/// A value at a path.
#[derive(Clone, Debug, Serialize)]
pub struct RmValue {
    /// The path in the archetype.
    pub path: String,
    /// The value with its `_type`.
    pub value: Json,
}

/// A card with the EHR that it is about.
#[derive(Clone, Debug, Serialize)]
pub struct EhrCard {
    /// The card.
    #[serde(flatten)]
    pub card: CardOut,
    /// The id of the EHR.
    #[serde(rename = "_ehr_id")]
    pub ehr_id: String,
}

/// A note with the EHR that it is about.
#[derive(Clone, Debug, Serialize)]
pub struct EhrNote {
    /// The note.
    #[serde(flatten)]
    pub note: Note,
    /// The id of the EHR.
    #[serde(rename = "_ehr_id")]
    pub ehr_id: String,
}

/// A trace with the EHR that it is about.
#[derive(Clone, Debug, Serialize)]
pub struct EhrTrace {
    /// The trace.
    #[serde(flatten)]
    pub trace: Trace,
    /// The id of the EHR.
    #[serde(rename = "_ehr_id")]
    pub ehr_id: String,
}

/// The part of an execution that concerns one EHR.
#[derive(Clone, Debug)]
pub struct EhrRun {
    /// The id of the EHR.
    pub ehr_id: String,
    /// The result of the guide.
    pub run: Run,
    /// The queries that supplied the data.
    pub queries: Vec<QueryRun>,
}

/// A query that was executed for one EHR.
#[derive(Clone, Debug)]
pub struct QueryRun {
    /// The gt-code of the binding.
    pub id: String,
    /// The query as executed.
    pub aql: String,
    /// Time in milliseconds.
    pub time: f64,
    /// Pairs of a variable (or path) and its value in the instance that was used.
    pub value: Vec<(String, Value)>,
}

/// Builds the answer. `execution_time` is in milliseconds.
pub fn response(guide: &CompiledGuide, runs: Vec<EhrRun>, execution_time: f64) -> Response {
    let (number_of_in_arguments, number_of_out_arguments) = arguments(guide);
    let mut response = Response {
        execution_details: ExecutionDetails {
            guide_id: guide.guide().id.clone(),
            execution_time,
            number_of_in_arguments,
            number_of_out_arguments,
            number_of_constants: Guide::number_of_constants(guide.guide()),
            rules_executed: Vec::new(),
            query_execution_details: QueryExecutionDetails {
                number_of_queries: 0,
                query_time: 0.0,
                queries: Vec::new(),
            },
        },
        results: Vec::new(),
        cards: Vec::new(),
        notes: Vec::new(),
        trace: Vec::new(),
    };
    runs.into_iter().for_each(|run| response.add(run));
    let details = &mut response.execution_details.query_execution_details;
    details.number_of_queries = details.queries.len();
    details.query_time = details.queries.iter().map(|q| q.query_time).sum();
    response
}

impl Response {
    /// Adds the run of one EHR.
    fn add(&mut self, run: EhrRun) {
        let EhrRun {
            ehr_id,
            run,
            queries,
        } = run;
        let own = || ehr_id.clone();
        let results = run.outputs.iter().map(|o| result(o, &ehr_id));
        self.results.extend(results);
        let cards = run.cards.into_iter();
        self.cards.extend(cards.map(|card| EhrCard {
            card,
            ehr_id: own(),
        }));
        let notes = run.notes.into_iter();
        self.notes.extend(notes.map(|note| EhrNote {
            note,
            ehr_id: own(),
        }));
        self.trace.extend(run.trace.map(|trace| EhrTrace {
            trace,
            ehr_id: own(),
        }));
        let details = &mut self.execution_details;
        let fired = run.fired.iter().map(ToString::to_string);
        details.rules_executed.extend(fired);
        let queries = queries.into_iter().map(|q| query_details(q, &ehr_id));
        details.query_execution_details.queries.extend(queries);
    }
}

fn query_details(query: QueryRun, ehr_id: &str) -> QueryDetails {
    let values = query.value.iter().filter(|(_, v)| !v.is_null());
    QueryDetails {
        id: query.id,
        aql: query.aql,
        query_time: query.time,
        value: values.map(|(name, v)| (name.clone(), rm_json(v))).collect(),
        ehr_id: ehr_id.to_owned(),
    }
}

/// The part of one EHR as an object of its own.
#[derive(Serialize)]
struct Line<'r> {
    rules_executed: Vec<&'r str>,
    results: Vec<LineResult<'r>>,
    _ehr_id: &'r str,
    #[serde(skip_serializing_if = "is_empty")]
    _cards: &'r [CardOut],
    #[serde(skip_serializing_if = "is_empty")]
    _notes: &'r [Note],
    #[serde(skip_serializing_if = "Option::is_none")]
    _trace: Option<&'r Trace>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guide_id: Option<&'r str>,
}

/// A [`ResultInstance`] that is written without a copy.
#[derive(Serialize)]
struct LineResult<'r> {
    archetype_id: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    template_id: Option<&'r str>,
    rm_values: Vec<LineValue<'r>>,
    _ehr_id: &'r str,
}

/// An [`RmValue`] that is written without a copy.
#[derive(Serialize)]
struct LineValue<'r> {
    path: &'r str,
    value: ResultJson<'r>,
}

/// The value of a result, written as [`OutputValue::to_json`] returns it.
struct ResultJson<'r>(&'r OutputValue);

impl Serialize for ResultJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0.original {
            Some(original) => original.serialize(serializer),
            None => RmJson(&self.0.value).serialize(serializer),
        }
    }
}

impl OutputValue {
    /// Returns the value as canonical JSON. A copy of a stored value is that value.
    pub fn to_json(&self) -> Json {
        match &self.original {
            Some(original) => original.as_ref().clone(),
            None => rm_json(&self.value),
        }
    }
}

impl<'r> LineResult<'r> {
    fn of(output: &'r Output, ehr_id: &'r str) -> LineResult<'r> {
        let value = |v: &'r OutputValue| LineValue {
            path: &v.path,
            value: ResultJson(v),
        };
        LineResult {
            archetype_id: &output.model_id,
            template_id: output.template_id.as_deref(),
            rm_values: output.values.iter().map(value).collect(),
            _ehr_id: ehr_id,
        }
    }
}

fn is_empty<T>(list: &[T]) -> bool {
    list.is_empty()
}

/// Writes the part of one EHR as a JSON object of its own, for answers with one line per EHR. It
/// names the guide if that is given.
///
/// # Errors
/// If the result cannot be written as JSON.
pub fn line(run: &EhrRun, guide_id: Option<&str>) -> Result<String, serde_json::Error> {
    let EhrRun { ehr_id, run, .. } = run;
    let outputs = run.outputs.iter();
    serde_json::to_string(&Line {
        rules_executed: run.fired.iter().map(|r| &**r).collect(),
        results: outputs.map(|o| LineResult::of(o, ehr_id)).collect(),
        _ehr_id: ehr_id,
        _cards: &run.cards,
        _notes: &run.notes,
        _trace: run.trace.as_ref(),
        guide_id,
    })
}

/// Counts the variables that are read and those that the guide can set.
fn arguments(guide: &CompiledGuide) -> (usize, usize) {
    let bindings = guide.guide().bindings.iter().zip(&guide.bindings);
    let read = |d: Direction| d != Direction::Output;
    let inputs = bindings
        .clone()
        .filter(|(b, _)| read(b.direction))
        .map(|(b, _)| b.elements.len())
        .sum();
    (inputs, bindings.map(|(_, plan)| plan.outputs.len()).sum())
}

fn result(output: &Output, ehr_id: &str) -> ResultInstance {
    let rm_values = output
        .values
        .iter()
        .map(|v| RmValue {
            path: v.path.to_string(),
            value: v.to_json(),
        })
        .collect();
    let (archetype_id, template_id) = (
        output.model_id.to_string(),
        output.template_id.as_deref().map(str::to_owned),
    );
    ResultInstance {
        archetype_id,
        template_id,
        rm_values,
        ehr_id: ehr_id.to_owned(),
    }
}

/// Converts a value to canonical JSON. A plain number becomes a DV_COUNT if it is whole, otherwise
/// a DV_QUANTITY of unit `1`.
pub fn rm_json(value: &Value) -> Json {
    // Neither a key nor a value of these objects can fail to be written.
    serde_json::to_value(RmJson(value)).unwrap_or_default()
}

/// A value that is written as [`rm_json`] converts it, without a tree in between.
struct RmJson<'v>(&'v Value);

/// A coded text that is written as canonical JSON.
struct RmCoded<'v>(&'v Coded);

/// An object under construction. Members that are null are left out.
struct Members<M>(M);

impl<M: SerializeMap> Members<M> {
    fn of<S: Serializer<SerializeMap = M>>(serializer: S, class: &str) -> Result<Self, S::Error>
    where
        M: SerializeMap<Error = S::Error>,
    {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("_type", class)?;
        Ok(Members(map))
    }

    fn with(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<Self, M::Error> {
        self.0.serialize_entry(name, value)?;
        Ok(self)
    }

    /// Adds a number. JSON has none that is infinite or undefined.
    fn with_number(self, name: &str, number: f64) -> Result<Self, M::Error> {
        match number.is_finite() {
            true => self.with(name, &number),
            false => Ok(self),
        }
    }

    /// Adds a number, without fraction if it is whole.
    fn with_whole(self, name: &str, number: f64) -> Result<Self, M::Error> {
        match number.is_finite() {
            true => self.with(name, &json_number(number)),
            false => Ok(self),
        }
    }

    fn with_some(self, name: &str, value: Option<impl Serialize>) -> Result<Self, M::Error> {
        match value {
            Some(value) => self.with(name, &value),
            None => Ok(self),
        }
    }

    fn end(self) -> Result<M::Ok, M::Error> {
        self.0.end()
    }
}

impl Serialize for RmJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = match self.0 {
            Value::Null => return serializer.serialize_unit(),
            Value::Object(object) => return object.serialize(serializer),
            Value::Coded(code) => return RmCoded(code).serialize(serializer),
            value => Members::of(serializer, value.rm_type())?,
        };
        let members = match self.0 {
            Value::Null | Value::Object(_) | Value::Coded(_) => members,
            Value::Number(n) if n.fract() != 0.0 => {
                members.with_number("magnitude", *n)?.with("units", "1")?
            }
            Value::Number(n) => members.with_whole("magnitude", *n)?,
            Value::Span(n) => members.with_number("magnitude", *n)?.with("units", "ms")?,
            Value::Millis(n) => {
                let millis = super::value::integer(*n);
                let moment = millis.map(|ms| super::time::Moment::from_millis(ms, 0));
                members.with_some("value", moment.map(super::time::Moment::text))?
            }
            Value::Boolean(b) => members.with("value", b)?,
            Value::Text(text) | Value::Duration(text) => members.with("value", &**text)?,
            Value::Count(n) => members.with("magnitude", n)?,
            Value::Quantity(q) => members
                .with_number("magnitude", q.magnitude)?
                .with("units", if q.unit.is_empty() { "1" } else { &*q.unit })?
                .with_some("precision", q.precision)?,
            Value::Ordinal(o) => members
                .with("value", &o.value)?
                .with("symbol", &RmCoded(&o.symbol))?,
            moment @ Value::Moment(..) => members.with("value", &super::calc::shown(moment))?,
            Value::Proportion(p) => members
                .with_whole("numerator", p.numerator)?
                .with_whole("denominator", p.denominator)?
                .with("type", &p.kind)?
                .with_some("precision", p.precision)?,
        };
        members.end()
    }
}

impl Serialize for RmCoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Id<'v> {
            _type: &'static str,
            value: &'v str,
        }
        #[derive(Serialize)]
        struct Phrase<'v> {
            _type: &'static str,
            terminology_id: Id<'v>,
            code_string: &'v str,
        }
        let terminology_id = Id {
            _type: "TERMINOLOGY_ID",
            value: &self.0.terminology,
        };
        let phrase = Phrase {
            _type: "CODE_PHRASE",
            terminology_id,
            code_string: &self.0.code,
        };
        Members::of(serializer, "DV_CODED_TEXT")?
            .with("value", &*self.0.text)?
            .with("defining_code", &phrase)?
            .end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_carry_their_class() {
        assert_eq!(
            rm_json(&Value::Number(3.0)),
            json!({"_type": "DV_COUNT", "magnitude": 3})
        );
        assert_eq!(
            rm_json(&Value::quantity(1.5, "kg")),
            json!({"_type": "DV_QUANTITY", "magnitude": 1.5, "units": "kg"})
        );
        let ordinal = rm_json(&Value::ordinal(1, "local", "at0005", "Low"));
        assert_eq!(
            ordinal.pointer("/symbol/defining_code/code_string"),
            Some(&json!("at0005"))
        );
        assert_eq!(
            serde_json::to_string(&rm_json(&Value::text("x"))).unwrap(),
            r#"{"_type":"DV_TEXT","value":"x"}"#
        );
    }
}
