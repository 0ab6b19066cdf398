//! Uids that clients give to what they create.
//!
//! A given uid is kept or refused, never replaced: the client may refer to the object by it
//! already. An EHR_STATUS gets its uid from the server, because its path names no object.

use super::call::Call;
use super::error::Failure;
use super::ids::{VersionUid, is_uuid};
use super::versioned::uid_of;
use crate::document::ObjectKind;
use crate::rm::class::Attr;
use crate::rm::tree::NodeRef;

/// Returns the object id of a new document, which its uid gives: `<uuid>` or `<uuid>::<this
/// system>::1`. Nothing where it has no uid.
///
/// # Errors
/// 403 for a caller whose reach is one EHR, because uids are unique in the whole repository and a
/// refusal would reveal objects of other EHRs; 412 for the uid of another system, version or
/// branch; 400 for what is no uid.
pub(crate) fn given_object_id(
    call: &Call<'_>,
    document: Option<NodeRef<'_>>,
) -> Result<Option<String>, Failure> {
    let Some(uid) = document.and_then(uid_of).filter(|uid| !uid.is_empty()) else {
        return Ok(None);
    };
    if call.caller.is_confined(call.need) {
        return Err(Failure::new(
            403,
            "a caller whose reach is one EHR cannot choose the uid of a new object: leave `uid` out",
        ));
    }
    let system = call.config.system_id.as_str();
    let mut parts = uid.split("::");
    let object = parts
        .next()
        .filter(|object| is_uuid(object))
        .map(str::to_ascii_lowercase);
    let accepted = || {
        format!(
            "a new object takes `<uuid>` or `<uuid>::{system}::1`, or its uid from the server where it has none"
        )
    };
    let Some(object) = object else {
        return Err(Failure::bad(format!(
            "the uid `{uid}` does not begin with a UUID: {}",
            accepted()
        )));
    };
    let rest: Vec<&str> = parts.collect();
    match rest.as_slice() {
        [] => Ok(Some(object)),
        [own, "1"] if *own == system => Ok(Some(object)),
        _ => {
            let ways = "versions of other systems are imported by IMPORTED_VERSION or `admin/load`";
            Err(Failure::new(
                412,
                format!(
                    "the uid `{uid}` is not that of a first version of this system: {}; {ways}",
                    accepted()
                ),
            ))
        }
    }
}

/// Returns the object id of a first version in a contribution, which the VERSION or its data may
/// give.
///
/// # Errors
/// See [`given_object_id`]; 400 where both give one and they differ.
pub(crate) fn given_member_id(
    call: &Call<'_>,
    version: NodeRef<'_>,
) -> Result<Option<String>, Failure> {
    let of_version = given_object_id(call, Some(version))?;
    let of_data = given_object_id(call, version.get(Attr::DATA))?;
    match (of_version, of_data) {
        (Some(version), Some(data)) if version != data => Err(Failure::bad(format!(
            "the version has the uid of the object {version}, its data that of {data}: send one of them"
        ))),
        (version, data) => Ok(version.or(data)),
    }
}

/// Makes sure that data which are stored as they were sent name the version that they stand in, the
/// object of it, or nothing: else `c/uid/value` of two objects would be the same.
///
/// # Errors
/// 400.
pub(crate) fn check_data_uid(uid: &VersionUid, data: Option<NodeRef<'_>>) -> Result<(), Failure> {
    let version = uid.to_string();
    match data.and_then(uid_of) {
        Some(given) if given != version && given != uid.object_id => {
            let shown: String = given.chars().take(300).collect();
            Err(Failure::bad(format!(
                "the data have the uid `{shown}`, and stand in the version {version}: expected that uid, `{}`, or no uid",
                uid.object_id
            )))
        }
        _ => Ok(()),
    }
}

/// Makes sure that a version which follows another has the uid that the server gives it, if it has
/// one, and that its data belong to the object. Clients send a changed document back with the uid
/// of the version that they have read. The uids of EHR_STATUS and FOLDER are ignored, as where they
/// are updated at their own addresses.
///
/// # Errors
/// 412.
pub(crate) fn check_following_uids(
    version: NodeRef<'_>,
    kind: ObjectKind,
    uid: &VersionUid,
) -> Result<(), Failure> {
    if let Some(given) = uid_of(version)
        .filter(|given| !given.is_empty() && VersionUid::parse(given).as_ref() != Some(uid))
    {
        return Err(Failure::new(
            412,
            format!("the version gives itself the uid `{given}`, and is {uid}: leave `uid` out"),
        ));
    }
    let is_named_by_path = matches!(kind, ObjectKind::EhrStatus | ObjectKind::Folder);
    match version.get(Attr::DATA).filter(|_| !is_named_by_path) {
        Some(data) => check_object(data, &uid.object_id, "preceding_version_uid"),
        None => Ok(()),
    }
}

/// Makes sure that a document which names itself belongs to an object; `named_by` says how the
/// request names the object.
///
/// # Errors
/// 412.
pub(crate) fn check_object(
    document: NodeRef<'_>,
    object: &str,
    named_by: &str,
) -> Result<(), Failure> {
    let is_own = |uid: &str| {
        uid.split("::")
            .next()
            .is_some_and(|own| own.eq_ignore_ascii_case(object))
    };
    match uid_of(document) {
        Some(uid) if !uid.is_empty() && !is_own(uid) => {
            let class = document.class();
            Err(Failure::new(
                412,
                format!(
                    "the uid `{uid}` in the body belongs to another {class} than {named_by} names, which is {object}"
                ),
            ))
        }
        _ => Ok(()),
    }
}
