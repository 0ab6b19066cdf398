//! The data of a member of a contribution, and their check.

use super::Service;
use super::auth::Action;
use super::call::Call;
use super::commit::{check_write, class_name};
use super::content::{CheckedDocument, ValidationLevel, named_template};
use super::error::Failure;
use super::followed::FollowedObjects;
use super::ids::VersionUid;
use super::owner::Owner;
use crate::document::ObjectKind;
use crate::rm::tree::NodeRef;
use crate::store::repository::Repository;

/// The data of a member of a contribution, with what their check depends on.
pub(super) struct MemberData<'m> {
    pub kind: ObjectKind,
    /// Absent if the member deletes its object.
    pub data: Option<NodeRef<'m>>,
    /// The version that the member follows; absent for a new object.
    pub preceding: Option<&'m VersionUid>,
    pub level: ValidationLevel,
}

impl<R: Repository> Service<R> {
    /// Checks the data of a member: 403 if the caller may not write them, 400 if they are invalid,
    /// their template is unknown, or a party has another class than the version that it follows.
    pub(super) async fn check_member_data(
        &self,
        call: &Call<'_>,
        owner: &Owner,
        member: MemberData<'_>,
        followed: &mut FollowedObjects,
    ) -> Result<Option<CheckedDocument>, Failure> {
        let (kind, preceding) = (member.kind, member.preceding);
        owner.check_member(kind, preceding.is_some() && member.data.is_some())?;
        let Some(data) = member.data else {
            return Ok(None);
        };
        let tree = data.to_tree();
        let act = match preceding {
            Some(_) => Action::Update,
            None => Action::Create,
        };
        check_write(call, owner.id(), (kind, act), named_template(&tree))?;
        let checked = match kind {
            ObjectKind::Composition => self.check_composition(call, tree, member.level).await,
            other => {
                self.check_plain(call, tree, class_name(other), member.level)
                    .await
            }
        };
        let checked = checked.map_err(|failure| failure.into_bad_request().below("/data"))?;
        if let (Some(preceding), ObjectKind::Party) = (preceding, kind) {
            self.check_followed_class(call, owner, (preceding, data.class()), followed)
                .await?;
        }
        Ok(Some(checked))
    }
}
