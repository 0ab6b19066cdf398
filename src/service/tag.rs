//! ITEM_TAGs: key, value and path on an object or on one version. A write replaces the complete
//! list. Lists are not versioned.
//!
//! A list is sent by `PUT …/{uid}/tags`, or with the document in the headers `openehr-item-tag`
//! (its object) and `openehr-version-item-tag` (its version). Responses have the same headers,
//! unless a tag has characters that headers cannot represent.

use super::Service;
use super::call::Call;
use super::committal::pairs;
use super::content::malformed;
use super::document_class::Controlled;
use super::error::Failure;
use super::http::Response;
use super::ids::{Target, VersionUid};
use super::negotiate::{Return, choose};
use super::owner::Owner;
use super::validators::{check_preconditions, has_preconditions, not_modified, tags_etag};
use crate::document::ObjectKind;
use crate::rm::class::{Attr, Cls};
use crate::rm::id::object_id_of;
use crate::rm::json::{self, elements, members};
use crate::rm::path::path_steps;
use crate::store::repository::{ItemTag, ListPage, Repository, TagList};
use aqlite_rm::order;
use serde_json::{Value, json};

/// The maximum number of tags of a target.
const MAX_TAGS: usize = 1_000;
/// The maximum bytes of the keys, values and paths of a target.
const MAX_TAG_BYTES: usize = 200_000;
/// The maximum bytes of the list of all tags of an EHR.
const MAX_LISTED: usize = 8_000_000;
/// The maximum bytes of a header of a response. Many clients read 16 kB of all headers.
const MAX_HEADER: usize = 4_000;
/// The header with the tags of an object.
const OF_OBJECT: &str = "openehr-item-tag";
/// The header with the tags of a version.
const OF_VERSION: &str = "openehr-version-item-tag";

impl<R: Repository> Service<R> {
    /// GET /ehr/{ehr_id}/tags, GET /demographic/tags: tags with their targets, selected by key,
    /// value or path.
    pub(super) async fn tags_list(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let owner = self.owner(call).await?;
        call.check_permission_in(owner.id(), ObjectKind::EhrStatus, None)?;
        let (mut shown, mut after) = (String::from("["), None);
        let deadline = call.now.saturating_add(self.config.limits.query_time);
        loop {
            let read = self.repository.tag_lists(owner.id(), after.as_deref());
            let ListPage { items, more } = read.await.map_err(Failure::of_store)?;
            self.add_tags(call, &owner, &items, &mut shown).await?;
            if shown.len() > MAX_LISTED {
                return Err(Failure::new(
                    422,
                    format!(
                        "the list is larger than {MAX_LISTED} bytes: narrow it by `tag_key`, `tag_value` or `tag_target_path`, or read the tags of each object"
                    ),
                ));
            }
            after = items.into_iter().next_back().map(|list| list.target);
            if !more || after.is_none() {
                break;
            }
            // A filter may select few of many tags, so the size of the list does not bound the
            // time.
            if call.clock() > deadline {
                let message = "the tags took too long to read: read those of each object";
                return Err(Failure::new(408, message));
            }
            call.pause().await;
        }
        shown.push(']');
        Ok(Response::new(200).with_body("application/json", shown))
    }

    /// Appends the selected tags to a JSON array that is not closed. Their objects are read for the
    /// classes of the targets.
    async fn add_tags(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        lists: &[TagList],
        shown: &mut String,
    ) -> Result<(), Failure> {
        let is_any_selected = |list: &&TagList| list.tags.iter().any(|tag| is_selected(call, tag));
        let lists: Vec<&TagList> = lists.iter().filter(is_any_selected).collect();
        let objects = order::distinct(lists.iter().map(|list| object_id_of(&list.target)));
        let mut read = self.read_all_followed(call, owner, &objects).await?;
        for list in lists {
            let object = object_id_of(&list.target);
            let class = self.class_of_object(call, owner, object, &mut read).await?;
            for tag in list.tags.iter().filter(|tag| is_selected(call, tag)) {
                shown.push_str(if shown.len() > 1 { "," } else { "" });
                let tag = self.item_tag(owner, &list.target, class, tag);
                shown.push_str(&tag.to_string());
            }
        }
        Ok(())
    }

    /// GET …/{composition|ehr_status|person|…}/{object or version uid}/tags
    pub(super) async fn tags_get(
        &self,
        call: &Call<'_>,
        what: &Controlled,
    ) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let (owner, target) = self.tagged(call, what).await?;
        let tags = self.tags_on(&owner, &target).await?;
        let etag = tags_etag(&tags);
        if let Some(response) = not_modified(call.request, &etag) {
            return Ok(response);
        }
        let response = Response::json(
            200,
            self.item_tags(&owner, what, vec![TagList { target, tags }]),
        );
        Ok(response.with_header("ETag", format!("\"{etag}\"")))
    }

    /// PUT …/{uid}/tags
    pub(super) async fn tags_put(
        &self,
        call: &Call<'_>,
        what: &Controlled,
    ) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let (owner, target) = self.tagged(call, what).await?;
        owner.check_tags_modifiable(what.kind)?;
        let list = checked(target, of_body(call.text()?)?)?;
        self.replace_tags(call, &owner, list.clone()).await?;
        let etag = tags_etag(&list.tags);
        let mut path = Owner::segments(owner.id());
        path.extend([what.segment, &list.target, "tags"]);
        let path = call.address(&path);
        let response = match call.prefer.returns {
            Return::Minimal => Response::new(204),
            Return::Representation => Response::json(200, self.item_tags(&owner, what, vec![list])),
            Return::Identifier => Response::json(200, json!({ "uid": list.target })),
        };
        let response = response.with_header("ETag", format!("\"{etag}\""));
        Ok(call.preference_applied(response.with_header("Location", path)))
    }

    /// Returns the tags of one target.
    async fn tags_on(&self, owner: &Owner, target: &str) -> Result<Vec<ItemTag>, Failure> {
        self.repository
            .tags(owner.id(), target)
            .await
            .map_err(Failure::of_store)
    }

    /// Replaces the tags of a target. With If-Match, only if the header has their present entity
    /// tag; the comparison and the change are atomic.
    async fn replace_tags(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        list: TagList,
    ) -> Result<(), Failure> {
        // The tags are read here and compared again by the repository, in the transaction of the
        // change.
        let expected = match has_preconditions(call.request) {
            true => Some(self.tags_on(owner, &list.target).await?),
            false => None,
        };
        if let Some(tags) = &expected {
            check_preconditions(call.request, Some(&tags_etag(tags)))?;
        }
        self.repository
            .set_tags(owner.id(), list, expected.as_deref())
            .await
            .map_err(Failure::of_store)
    }

    /// DELETE …/{uid}/tags/{key}
    pub(super) async fn tags_delete(
        &self,
        call: &Call<'_>,
        what: &Controlled,
    ) -> Result<Response, Failure> {
        let (owner, target) = self.tagged(call, what).await?;
        owner.check_tags_modifiable(what.kind)?;
        let before = self.tags_on(&owner, &target).await?;
        check_preconditions(call.request, Some(&tags_etag(&before)))?;
        let key = call.sub_param(1)?;
        let rest: Vec<ItemTag> = before.iter().filter(|t| t.key != key).cloned().collect();
        if rest.len() == before.len() {
            return Err(Failure::not_found("there is no tag with this key"));
        }
        self.repository
            // The repository compares the tags again, so that a tag of another request is not lost.
            .set_tags(owner.id(), TagList::new(target, rest), Some(&before))
            .await
            .map_err(Failure::of_store)?;
        Ok(Response::new(204))
    }

    /// Returns the owner and the uid of the tagged object or version, which must exist.
    async fn tagged(&self, call: &Call<'_>, what: &Controlled) -> Result<(Owner, String), Failure> {
        let owner = self.owner(call).await?;
        let target =
            Target::parse(call.sub_param(0)?).ok_or_else(|| super::versioned::missing(what))?;
        let version = self.find_bounded(call, owner.id(), what, &target).await?;
        let uid = match target {
            // An object has tags of its own, which do not belong to any version.
            Target::Object(object) => object,
            Target::Version(_) => version.head().version_uid,
        };
        Ok((owner, uid))
    }

    fn item_tags(&self, owner: &Owner, what: &Controlled, lists: Vec<TagList>) -> Value {
        let shown = |list: &TagList| {
            list.tags
                .iter()
                .map(|tag| self.item_tag(owner, &list.target, what.class, tag))
                .collect::<Vec<Value>>()
        };
        Value::Array(lists.iter().flat_map(shown).collect())
    }

    /// Returns an ITEM_TAG as JSON. `class` is the class of its target.
    fn item_tag(&self, owner: &Owner, target: &str, class: Cls, tag: &ItemTag) -> Value {
        let id_class = if target.contains("::") {
            "OBJECT_VERSION_ID"
        } else {
            "HIER_OBJECT_ID"
        };
        let (owner_id, owner_class) = match owner {
            Owner::Ehr(_) | Owner::Unread(_) => (owner.id(), "EHR"),
            Owner::Demographic => (self.config.system_id.as_str(), "SYSTEM"),
        };
        let mut item = json!({ "key": tag.key, "target": reference(id_class, target, class.name()), "owner_id": reference("HIER_OBJECT_ID", owner_id, owner_class) });
        for (name, text) in [("value", &tag.value), ("target_path", &tag.path)] {
            if let (Some(text), Some(members)) = (text, item.as_object_mut()) {
                members.insert(name.to_owned(), text.as_str().into());
            }
        }
        item
    }
}

/// Returns an OBJECT_REF as JSON. `class` is the class of the id, `referred` that of the object.
fn reference(class: &str, id: &str, referred: &str) -> Value {
    json!({ "id": { "_type": class, "value": id }, "namespace": "local", "type": referred })
}

/// Returns whether the filters of a request select a tag. Several filters of one name are
/// alternatives.
fn is_selected(call: &Call<'_>, tag: &ItemTag) -> bool {
    let wanted = |name: &str, found: Option<&str>| {
        let parameters = call.request.query.iter();
        let mut filters = parameters.filter(|(key, _)| key == name).peekable();
        filters.peek().is_none() || filters.any(|(_, value)| Some(value.as_str()) == found)
    };
    wanted("tag_key", Some(&tag.key))
        && wanted("tag_value", tag.value.as_deref())
        && wanted("tag_target_path", tag.path.as_deref())
}

/// Returns the lists for a version and its object in the headers of a request.
pub(crate) fn of_headers(call: &Call<'_>, uid: &VersionUid) -> Result<Vec<TagList>, Failure> {
    let targets = [
        (OF_OBJECT, uid.object_id.clone()),
        (OF_VERSION, uid.to_string()),
    ];
    let sent = targets
        .into_iter()
        .filter_map(|(name, target)| Some((name, target, call.request.header(name)?)));
    sent.map(|(name, target, value)| checked(target, of_header(name, value)?))
        .collect()
}

/// Adds the tags of a version and its object to a response as headers, unless a header cannot carry
/// them.
pub(crate) fn with_headers(response: Response, tags: &[TagList]) -> Response {
    tags.iter()
        .filter(|list| !list.tags.is_empty())
        .fold(response, |response, list| {
            let name = if list.target.contains("::") {
                OF_VERSION
            } else {
                OF_OBJECT
            };
            let value = header_of(list);
            // Only printable ASCII can be sent in a header. A client reads other tags at the URL of
            // the tags.
            let is_short = value.len() <= MAX_HEADER;
            if is_short && value.bytes().all(|b| (b' '..0x7f).contains(&b)) {
                response.with_header(name, value)
            } else {
                response
            }
        })
}

fn header_of(list: &TagList) -> String {
    let tags = list.tags.iter().map(|tag| {
        let mut text = format!("key={}", quoted(&tag.key));
        for (name, value) in [(",value=", &tag.value), (",target_path=", &tag.path)] {
            if let Some(value) = value {
                text.push_str(name);
                text.push_str(&quoted(value));
            }
        }
        text
    });
    tags.collect::<Vec<String>>().join("; ")
}

/// Returns a text as a quoted string of a header (RFC 9110, section 5.6.4). A backslash there makes
/// the next character literal, so no control character can be escaped.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Reads a header. Each `key` begins a tag.
fn of_header(name: &str, value: &str) -> Result<Vec<ItemTag>, Failure> {
    let mut tags: Vec<ItemTag> = Vec::new();
    if value.trim().is_empty() {
        return Ok(tags);
    }
    let unknown = |part: &str| {
        Failure::bad_request(format!(
            "the header {name} has the unknown part `{part}`: expected `key=\"…\",value=\"…\",target_path=\"…\"; key=…`"
        ))
    };
    for (part, text) in pairs(value, name)? {
        match (part.as_str(), tags.last_mut()) {
            ("key", _) => tags.push(ItemTag {
                key: text,
                path: None,
                value: None,
            }),
            ("value", Some(tag)) => tag.value = Some(text),
            ("target_path", Some(tag)) => tag.path = Some(text),
            _ => return Err(unknown(&part)),
        }
    }
    Ok(tags)
}

/// Reads a JSON array of `{key, value?, target_path?}`.
fn of_body(text: &str) -> Result<Vec<ItemTag>, Failure> {
    let items = elements(text).map_err(|problem| malformed("list of tags", text, problem))?;
    items
        .into_iter()
        .enumerate()
        .map(|(index, item)| of_json(item).map_err(|f| f.within(&format!("tags[{index}]"))))
        .collect()
}

fn no_attribute(name: &str) -> Failure {
    Failure::bad_request(format!(
        "`{name}` is not an attribute of a tag: expected key, value, target_path"
    ))
}

fn of_json(text: &str) -> Result<ItemTag, Failure> {
    let mut tag = ItemTag {
        key: String::new(),
        path: None,
        value: None,
    };
    for (name, value) in members(text).map_err(|problem| malformed("tag", text, problem))? {
        let string = || {
            json::text(value).ok_or_else(|| Failure::bad_request(format!("`{name}` is not a text")))
        };
        match &*name {
            // Members are raw JSON, so this is the literal and not a text.
            _ if value == "null" => {}
            "key" => tag.key = string()?,
            "value" => tag.value = Some(string()?),
            "target_path" => tag.path = Some(string()?),
            // Other members of responses are ignored, so that a client may send them back.
            "_type" | "target" | "owner_id" => {}
            other => return Err(no_attribute(other)),
        }
    }
    Ok(tag)
}

/// Checks a list and returns it.
pub(super) fn checked(target: String, tags: Vec<ItemTag>) -> Result<TagList, Failure> {
    let bytes: usize = tags.iter().map(bytes_of).sum();
    if tags.len() > MAX_TAGS || bytes > MAX_TAG_BYTES {
        return Err(Failure::bad_request(format!(
            "a target has at most {MAX_TAGS} tags of {MAX_TAG_BYTES} bytes together"
        )));
    }
    for (place, tag) in tags.iter().enumerate() {
        check_tag(tag, tags.iter().take(place))?;
    }
    Ok(TagList::new(target, tags))
}

fn bytes_of(tag: &ItemTag) -> usize {
    let optional = [&tag.value, &tag.path].into_iter().flatten();
    tag.key.len() + optional.map(String::len).sum::<usize>()
}

/// Checks a tag beside those before it in its list.
fn check_tag<'t>(
    tag: &ItemTag,
    mut before: impl Iterator<Item = &'t ItemTag>,
) -> Result<(), Failure> {
    if tag.key.trim().is_empty() {
        return Err(Failure::bad_request("a tag needs a key"));
    }
    let path = tag.path.as_deref().unwrap_or("/");
    let problem = if tag.key.trim() != tag.key {
        "has white space around its key: send the key without"
    } else if tag.value.as_deref() == Some("") {
        "has an empty value: send a value, or none"
    } else if !path.starts_with('/') {
        "has a target_path that does not start at root: expected `/…`"
    } else if !is_path(path) {
        "has a target_path that is no path: expected attributes and predicates such as `/content[at0001]/name`"
    } else if before.any(|other| (&other.key, &other.path) == (&tag.key, &tag.path)) {
        "is given twice for one target_path"
    } else {
        return Ok(());
    };
    let message = format!("the tag `{}` {problem}", tag.key);
    Err(Failure::bad_request(message))
}

/// Returns whether a text has the form of a path of the Reference Model or of AQL: attributes, each
/// with an optional predicate. Predicates are not read.
fn is_path(path: &str) -> bool {
    let steps = path_steps(path);
    let is_attribute = |(name, _): &(&str, &str)| Attr::parse(name).is_some();
    path == "/" || steps.is_some_and(|steps| steps.iter().all(is_attribute))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_tags_that_clients_can_read() {
        let header = |value: &str| {
            let tag = ItemTag {
                key: "a".into(),
                path: None,
                value: Some(value.into()),
            };
            let tags = TagList::new("o".into(), vec![tag]);
            let response = with_headers(Response::new(200), &[tags]);
            response.header(OF_OBJECT).map(str::len)
        };
        assert_eq!(header("b"), Some(r#"key="a",value="b""#.len()));
        assert_eq!(header("é"), None);
        assert_eq!(header("two\nlines"), None);
        assert_eq!(header(&"b".repeat(MAX_HEADER)), None);
    }

    /// Returns all texts of up to `length` of these characters.
    fn texts(alphabet: &[char], length: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut start = 0;
        for _ in 0..length {
            let end = all.len();
            let longest = all.get(start..).unwrap_or_default();
            let longer = longest
                .iter()
                .flat_map(|text| alphabet.iter().map(move |c| format!("{text}{c}")));
            let longer: Vec<String> = longer.collect();
            all.extend(longer);
            start = end;
        }
        all
    }

    #[test]
    fn header_of_tags_is_read_as_the_same_tags() {
        let alphabet = [
            'n', '"', '\\', '\n', '\t', '\u{7f}', ';', ',', '=', ' ', 'é',
        ];
        let mut sent = 0;
        for text in texts(&alphabet, 3) {
            let tag = |key: String| ItemTag {
                key,
                value: Some(text.clone()),
                path: Some(format!("/{text}")),
            };
            let tags = vec![tag(format!("k{text}")), tag(String::from("other"))];
            let list = TagList::new("o".into(), tags);
            let response = with_headers(Response::new(200), std::slice::from_ref(&list));
            if let Some(header) = response.header(OF_OBJECT) {
                let read = of_header(OF_OBJECT, header);
                assert!(read.is_ok_and(|read| read == list.tags), "{header}");
                sent += 1;
            }
        }
        // Seven of the characters can be sent.
        assert_eq!(sent, 1 + 7 + 49 + 343);
    }
}
