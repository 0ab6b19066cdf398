//! Uids that clients assign to new objects.
//!
//! A uid of a client is used or rejected, never replaced: the client may already refer to the
//! object by it. The server assigns the uid of an EHR_STATUS, because its path names no object.

use super::call::Call;
use super::error::Failure;
use super::ids::{VersionUid, is_uuid};
use super::versioned::uid_of;
use crate::document::ObjectKind;
use crate::rm::class::Attr;
use crate::rm::id::object_id_of;
use crate::rm::tree::NodeRef;

/// The path of the code of a VERSION's lifecycle state.
pub(crate) const LIFECYCLE_CODE: [Attr; 3] = [
    Attr::LIFECYCLE_STATE,
    Attr::DEFINING_CODE,
    Attr::CODE_STRING,
];

/// Returns the object id in the uid of a new document: `<uuid>` or `<uuid>::<this system>::1`.
/// `None` if it has no uid.
///
/// # Errors
/// 403 for a caller with access to one EHR, because uids are unique in the whole repository and a
/// rejection would reveal objects of other EHRs; 412 for the uid of another system, version or
/// branch; 400 for an invalid uid.
pub(crate) fn given_object_id(
    call: &Call<'_>,
    document: Option<NodeRef<'_>>,
) -> Result<Option<String>, Failure> {
    let Some(uid) = document.and_then(uid_of).filter(|uid| !uid.is_empty()) else {
        return Ok(None);
    };
    if call.caller.is_confined(call.permission) {
        return Err(Failure::new(
            403,
            "a caller with access to one EHR cannot choose the uid of a new object: leave `uid` out",
        ));
    }
    first_object_id(uid, &call.config.system_id).map(Some)
}

/// Returns the object id in the uid of a first version of a system.
fn first_object_id(uid: &str, system: &str) -> Result<String, Failure> {
    let accepted = format!(
        "a new object takes `<uuid>` or `<uuid>::{system}::1`, or its uid from the server where it has none"
    );
    let mut parts = uid.split("::");
    let Some(object) = parts.next().filter(|object| is_uuid(object)) else {
        return Err(Failure::bad_request(format!(
            "the uid `{uid}` does not begin with a UUID: {accepted}"
        )));
    };
    match parts.collect::<Vec<&str>>().as_slice() {
        [] => {}
        [own, "1"] if *own == system => {}
        _ => {
            let ways = "versions of other systems are imported by IMPORTED_VERSION or `admin/load`";
            return Err(Failure::new(
                412,
                format!(
                    "the uid `{uid}` is not that of a first version of this system: {accepted}; {ways}"
                ),
            ));
        }
    }
    Ok(object.to_ascii_lowercase())
}

/// Returns the object id of a first version in a contribution, from the VERSION or its data.
///
/// # Errors
/// See [`given_object_id`]; 400 if both have one and they differ.
pub(crate) fn given_member_id(
    call: &Call<'_>,
    version: NodeRef<'_>,
) -> Result<Option<String>, Failure> {
    let of_version = given_object_id(call, Some(version))?;
    let of_data = given_object_id(call, version.get(Attr::DATA))?;
    match (of_version, of_data) {
        (Some(version), Some(data)) if version != data => Err(Failure::bad_request(format!(
            "the version has the uid of the object {version}, its data that of {data}: send one of them"
        ))),
        (version, data) => Ok(version.or(data)),
    }
}

/// Checks the uid of data that are stored as sent: they may name their version, their object, or
/// nothing. Otherwise `c/uid/value` of two objects could be equal.
///
/// # Errors
/// 400 for data with any other uid.
pub(crate) fn check_data_uid(uid: &VersionUid, data: Option<NodeRef<'_>>) -> Result<(), Failure> {
    let version = uid.to_string();
    match data.and_then(uid_of) {
        Some(given) if given != version && given != uid.object_id => {
            let shown: String = given.chars().take(300).collect();
            Err(Failure::bad_request(format!(
                "the data have the uid `{shown}`, expected that of the version, {version}, `{}`, or no uid",
                uid.object_id
            )))
        }
        _ => Ok(()),
    }
}

/// Returns the preceding version of a version that is stored with its own uid. `name` is the name
/// of the attribute in errors.
///
/// # Errors
/// 400 if it is no uid, or if the version cannot follow it.
pub(crate) fn preceding_uid(
    version: NodeRef<'_>,
    uid: &VersionUid,
    name: &str,
) -> Result<Option<VersionUid>, Failure> {
    let Some(preceding) = version.text_along(&[Attr::PRECEDING_VERSION_UID, Attr::VALUE]) else {
        return Ok(None);
    };
    let preceding = VersionUid::read_stored(preceding, name)?;
    uid.check_follows(&preceding)?;
    Ok(Some(preceding))
}

/// Checks that a version without data may exist: it deletes an object, so it follows another
/// version, and an EHR always has an EHR_STATUS.
///
/// # Errors
/// 400 for a first version, and for an EHR_STATUS.
pub(crate) fn check_deletable(kind: ObjectKind, follows: bool) -> Result<(), Failure> {
    if follows && kind != ObjectKind::EhrStatus {
        return Ok(());
    }
    Err(Failure::bad_request(
        "the version has no data, which a first version and an EHR_STATUS must have",
    ))
}

/// Checks the uids of a version that follows another: the version may have the uid that the server
/// assigns, and its data must belong to the object. Clients send a changed document back with the
/// uid of the version that they have read. The uids of EHR_STATUS and FOLDER are ignored, as in
/// updates at their own URLs.
///
/// # Errors
/// 412 for another uid of the version, and for data of another object.
pub(crate) fn check_following_uids(
    version: NodeRef<'_>,
    kind: ObjectKind,
    preceding: &VersionUid,
    uid: &VersionUid,
) -> Result<(), Failure> {
    if let Some(given) = uid_of(version)
        .filter(|given| !given.is_empty() && VersionUid::parse(given).as_ref() != Some(uid))
    {
        return Err(Failure::new(
            412,
            format!("the version has the uid `{given}`, expected {uid}: leave `uid` out"),
        ));
    }
    let is_named_by_path = matches!(kind, ObjectKind::EhrStatus | ObjectKind::Folder);
    match version.get(Attr::DATA).filter(|_| !is_named_by_path) {
        Some(data) => check_object(data, preceding, &uid.system_id, "preceding_version_uid"),
        None => Ok(()),
    }
}

/// Checks the uid of a document that follows the version `preceding`: it may be that of the object,
/// of a version that the client has read, or of the next version, which `system` creates. The uid
/// of the next version replaces it. `named_by` describes the part of the request that names the
/// object.
///
/// # Errors
/// 412 for the uid of another object, and for that of another system, a later version or a branch.
pub(crate) fn check_object(
    document: NodeRef<'_>,
    preceding: &VersionUid,
    system: &str,
    named_by: &str,
) -> Result<(), Failure> {
    let Some(uid) = uid_of(document).filter(|uid| !uid.is_empty()) else {
        return Ok(());
    };
    let object = &preceding.object_id;
    if !object_id_of(uid).eq_ignore_ascii_case(object) {
        let class = document.class();
        return Err(Failure::new(
            412,
            format!(
                "the uid `{uid}` in the body belongs to another {class} than {named_by} names, which is {object}"
            ),
        ));
    }
    let is_known = |named: VersionUid| {
        (named.system_id == system || named.system_id == preceding.system_id)
            && named.number <= preceding.number.saturating_add(1)
    };
    match uid.eq_ignore_ascii_case(object) || VersionUid::parse(uid).is_some_and(is_known) {
        true => Ok(()),
        false => Err(Failure::new(
            412,
            format!(
                "the uid `{uid}` in the body is that of no version up to the one that follows {preceding}: send that of the version that you have read, or leave `uid` out"
            ),
        )),
    }
}
