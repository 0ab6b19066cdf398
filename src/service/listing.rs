//! Pages of resources in the order of their creation: the EHRs of the repository, and the
//! CONTRIBUTIONs of an EHR.
//!
//! `fetch` (items, [`PAGE`] by default) and `after` (the identifier of the last item of the page
//! before) select a page. If more items may follow, a `Link` header with `rel="next"` (RFC 8288)
//! names the next page. A page of large items may have fewer than requested. Items that are created
//! while a client reads page after page appear on its last pages. No item is repeated or missed.

use super::Service;
use super::auth::{Action, Permission, Reach, Resource, Subject};
use super::call::Call;
use super::ehr::{References, ehr_tree};
use super::error::{Failure, root_of};
use super::http::{Response, encode_value};
use super::ids::is_uuid;
use super::negotiate::choose;
use crate::rm::json;
use crate::store::repository::{ContributionDetail, ListPage, Repository};

/// The number of items of a page if the request does not choose one.
const PAGE: u64 = 100;
/// The bytes of CONTRIBUTIONs after which a page ends.
const PAGE_BYTES: usize = 5_000_000;

/// The page that a request selects.
struct Page<'c> {
    after: Option<&'c str>,
    fetch: u64,
}

impl<'c> Page<'c> {
    fn of(call: &Call<'c>) -> Result<Page<'c>, Failure> {
        let fetch = call.request.page_size("fetch", PAGE)?;
        let after = call.request.query_value("after");
        match after.filter(|value| !value.is_empty()) {
            Some(after) if !is_uuid(after) => Err(Failure::bad_request(
                "`after` is not the identifier of an item: take it from the `Link` of the page before",
            )),
            after => Ok(Page { after, fetch }),
        }
    }

    /// Returns the page as a JSON array, with a link to the page after the item `next`.
    fn response(
        &self,
        call: &Call<'_>,
        path: &[&str],
        items: &[String],
        next: Option<&str>,
    ) -> Response {
        let response =
            Response::new(200).with_body("application/json", format!("[{}]", items.join(",")));
        match next {
            Some(last) => {
                let next = format!(
                    "{}?after={}&fetch={}",
                    call.address(path),
                    encode_value(last),
                    self.fetch
                );
                response.with_header("Link", format!("<{next}>; rel=\"next\""))
            }
            None => response,
        }
    }
}

impl<R: Repository> Service<R> {
    /// GET /ehr without a subject: all EHRs, for callers who may query the population.
    pub(super) async fn ehr_list(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        check_population(call)?;
        let page = Page::of(call)?;
        let after = page.after.map(str::to_ascii_lowercase);
        let found = self
            .repository
            .ehrs(after.as_deref(), page.fetch)
            .await
            .map_err(Failure::of_store)?;
        let show = |ehr| {
            let tree = ehr_tree(ehr, &References::default())?;
            Ok(json::write(root_of(&tree)?))
        };
        let items = found
            .iter()
            .map(show)
            .collect::<Result<Vec<_>, Failure>>()?;
        let next = found.last().map(|ehr| ehr.ehr_id.as_str());
        // A page that is not full is the last one.
        let next = next.filter(|_| items.len() as u64 == page.fetch);
        Ok(page.response(call, &["ehr"], &items, next))
    }

    /// GET /ehr/{ehr_id}/contribution: the CONTRIBUTIONs of an EHR, oldest first.
    pub(super) async fn contribution_list(&self, call: &Call<'_>) -> Result<Response, Failure> {
        choose(call.request, &["application/json"])?;
        let ehr = self.ehr_with_id(call.param(0)?).await?;
        let page = Page::of(call)?;
        let after = page.after.map(str::to_ascii_lowercase);
        let (mut items, mut bytes, mut next) = (Vec::new(), 0, after);
        // The repository limits a page by bytes too, so several reads may be needed for one page.
        loop {
            let left = page.fetch - items.len() as u64;
            let (after, detail) = (next.as_deref(), ContributionDetail::WithoutVersions);
            let read = self
                .repository
                .contributions(Some(&ehr.ehr_id), after, left, detail);
            let ListPage { items: found, more } = read.await.map_err(Failure::of_store)?;
            next = found.last().map(|c| c.uid.clone()).filter(|_| more);
            for contribution in found {
                bytes += contribution.document.len();
                items.push(contribution.document);
            }
            if next.is_none() || items.len() as u64 >= page.fetch || bytes >= PAGE_BYTES {
                break;
            }
            // Other requests are answered between two reads.
            call.pause().await;
        }
        let path = ["ehr", &ehr.ehr_id, "contribution"];
        Ok(page.response(call, &path, &items, next.as_deref()))
    }
}

/// Checks that the caller may read all EHRs. A list of them reveals as much as a query on the
/// population.
fn check_population(call: &Call<'_>) -> Result<(), Failure> {
    let population = Permission {
        resource: Resource::Query,
        act: Action::Search,
    };
    let remedy = match call.caller.reach(population, Subject::Nameless) {
        Ok(Reach::All) => return Ok(()),
        // A token for one EHR names it, so that the answer reveals nothing.
        Ok(Reach::One(own)) => format!("read the EHR of this token by `GET ehr/{own}`"),
        Ok(Reach::Named) | Err(_) => String::from(
            "name a subject by `subject_id` and `subject_namespace`, or read one EHR by `GET ehr/{ehr_id}`",
        ),
    };
    let message = format!(
        "`GET ehr` without a subject lists all EHRs, which needs the role population or a scope such as `system/aql-*.s`: {remedy}"
    );
    Err(call.caller.insufficient(message))
}
