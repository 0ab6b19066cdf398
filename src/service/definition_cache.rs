//! A cache of compiled definitions. Definitions never change once they are stored.

use super::Service;
use super::admission::LARGE;
use super::call::Call;
use super::error::Failure;
use super::ids::select_version;
use super::template::read_stored_in_turns;
use super::templates::{Compiled, FactSource, KnownTemplate};
use super::validators::{check_preconditions, definition_etag, has_preconditions};
use crate::gdl::{self, CompiledGuide};
use crate::store::cache::Cache;
use crate::store::repository::{Definition, DefinitionKind, Repository, StoreError, TemplateState};
use crate::template::WebTemplate;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Bytes of memory for two bytes of the text of a template: its constraint tree and its texts.
const TEMPLATE_BYTES: usize = 5;

/// Compiled definitions by name, version, time and storing id: a definition that was deleted and
/// stored again is another one. They are weighed by the memory that they take.
pub(crate) struct DefinitionCache {
    templates: RefCell<Cache<Key, Compiled>>,
    guides: RefCell<Cache<Key, CompiledGuide>>,
    /// By name of a template: the key of its latest version when it was last read, and all stored
    /// versions at that time.
    latest: RefCell<BTreeMap<String, (Rc<TemplateState>, Key)>>,
}

/// The identity of a stored definition.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    version: String,
    created: String,
    storing_id: String,
}

impl Key {
    fn of(definition: &Definition) -> Key {
        Key {
            name: definition.name.clone(),
            version: definition.version.clone(),
            created: definition.created.clone(),
            storing_id: definition.storing_id.clone(),
        }
    }
}

impl DefinitionCache {
    /// Creates an empty cache. A quarter of its `bytes` is for guides.
    pub fn new(bytes: usize) -> DefinitionCache {
        DefinitionCache {
            templates: RefCell::new(Cache::new(bytes / 4 * 3)),
            guides: RefCell::new(Cache::new(bytes / 4)),
            latest: RefCell::default(),
        }
    }

    /// Removes everything.
    pub fn clear(&self) {
        self.templates.borrow_mut().clear();
        self.latest.take();
        self.guides.borrow_mut().clear();
    }

    /// Returns the latest known version of a template.
    fn latest(&self, template: &str) -> Option<KnownTemplate> {
        let (state, key) = self.latest.borrow().get(template).cloned()?;
        // The compiled template may have been evicted since.
        let compiled = self.templates.borrow_mut().get(&key)?;
        Some(KnownTemplate { state, compiled })
    }

    /// Derives the web template of a template, and weighs it.
    fn derived<'c>(&self, compiled: &'c Rc<Compiled>) -> &'c WebTemplate {
        compiled.web.get_or_init(|| {
            let web = WebTemplate::of(&compiled.template);
            self.templates.borrow_mut().grow(compiled, web.bytes);
            web
        })
    }

    /// Returns the compiled guide of a definition, with or without its body, if the cache has it.
    pub fn cached_guide(&self, listed: &Definition) -> Option<Rc<CompiledGuide>> {
        self.guides.borrow_mut().get(&Key::of(listed))
    }

    /// Returns a guide, compiled.
    pub fn guide(&self, stored: &Definition) -> Result<Rc<CompiledGuide>, Failure> {
        if let Some(cached) = self.cached_guide(stored) {
            return Ok(cached);
        }
        let guide = gdl::parse(&stored.body)
            .map_err(|problems| Failure::stored("guide", &stored.name, &stored.body, &problems))?;
        let guide = Rc::new(guide.compile());
        let bytes = guide.bytes(stored.body.len());
        self.guides
            .borrow_mut()
            .insert(Key::of(stored), Rc::clone(&guide), bytes);
        Ok(guide)
    }
}

impl<R: Repository> Service<R> {
    /// Returns the web template of a template, if that is within the limits. The first request
    /// derives it, in a turn.
    pub(crate) async fn web<'c>(
        &self,
        call: &Call<'_>,
        compiled: &'c Rc<Compiled>,
    ) -> Result<&'c WebTemplate, Failure> {
        let web = match compiled.web.get() {
            Some(known) => known,
            None => {
                let _turn = call.turn(LARGE).await?;
                self.definition_cache.derived(compiled)
            }
        };
        if web.is_complete {
            Ok(web)
        } else {
            Err(super::template::web_too_large())
        }
    }

    /// Returns the latest version of a template, if there is one, as it was when the call first
    /// read it.
    pub(crate) async fn template_of(
        &self,
        call: &Call<'_>,
        id: &str,
    ) -> Result<Option<Rc<Compiled>>, Failure> {
        let known = call.templates.borrow().get(id);
        if let Some(known) = known {
            return Ok(known);
        }
        let facts = call.templates.borrow().fact_source;
        let cached = match facts {
            FactSource::Cached => self.definition_cache.latest(id),
            FactSource::Stored => None,
        };
        let found = match cached {
            Some(cached) => Some(cached),
            None => self.template(Some(call), id).await?,
        };
        let compiled = found.as_ref().map(|found| Rc::clone(&found.compiled));
        call.templates.borrow_mut().insert(id, found)?;
        Ok(compiled)
    }

    /// Reads the latest version of a template, if there is one.
    pub(crate) async fn template(
        &self,
        call: Option<&Call<'_>>,
        id: &str,
    ) -> Result<Option<KnownTemplate>, Failure> {
        let stored = self.versions_of(DefinitionKind::Template, id).await?;
        self.latest_of(call, id, &stored).await
    }

    /// Returns the latest of these versions of a template, compiled.
    pub(crate) async fn latest_of(
        &self,
        call: Option<&Call<'_>>,
        id: &str,
        stored: &[Definition],
    ) -> Result<Option<KnownTemplate>, Failure> {
        let latest = self.compiled(call, id, stored).await?;
        let mut known = self.definition_cache.latest.borrow_mut();
        // Its last version may have been deleted.
        let Some((key, compiled)) = latest else {
            known.remove(id);
            return Ok(None);
        };
        let state = Rc::new(TemplateState::of(id, stored));
        known.insert(id.to_owned(), (Rc::clone(&state), key));
        Ok(Some(KnownTemplate { state, compiled }))
    }

    /// Returns the latest of these versions of a template with its key, compiled. It is read and
    /// compiled if the cache lacks it.
    async fn compiled(
        &self,
        call: Option<&Call<'_>>,
        id: &str,
        stored: &[Definition],
    ) -> Result<Option<(Key, Rc<Compiled>)>, Failure> {
        let version = select_version(stored.iter().map(|d| d.version.as_str()), None);
        let Some(latest) = stored.iter().find(|d| Some(d.version.as_str()) == version) else {
            return Ok(None);
        };
        let key = Key::of(latest);
        if let Some(cached) = self.cached_template(&key) {
            return Ok(Some((key, cached)));
        }
        if let Some(call) = call {
            // The request keeps the templates that it has read.
            let kept = call.templates.borrow().bytes;
            call.room(kept.saturating_add(latest.bytes)).await?;
        }
        // Another request may have compiled the template while this one waited for memory.
        if let Some(cached) = self.cached_template(&key) {
            return Ok(Some((key, cached)));
        }
        let stored = self.definition(DefinitionKind::Template, id, &latest.version);
        let Some(stored) = stored.await? else {
            return Ok(None);
        };
        let compiled = self.compiled_template(call, &stored).await?;
        Ok(Some((key, compiled)))
    }

    /// Returns a compiled template of the cache. The borrow ends before the caller awaits.
    fn cached_template(&self, key: &Key) -> Option<Rc<Compiled>> {
        self.definition_cache.templates.borrow_mut().get(key)
    }

    /// Returns a stored template, compiled once for all requests that use it.
    pub(crate) async fn compiled_template(
        &self,
        call: Option<&Call<'_>>,
        stored: &Definition,
    ) -> Result<Rc<Compiled>, Failure> {
        let key = Key::of(stored);
        // Another request may have compiled the template while this one waited for its turn.
        if let Some(call) = call {
            drop(call.turn(stored.body.len()).await?);
        }
        if let Some(cached) = self.cached_template(&key) {
            return Ok(cached);
        }
        let template = read_stored_in_turns(call, stored).await?;
        let compiled = Rc::new(Compiled::new(template, stored.body.len()));
        self.definition_cache.templates.borrow_mut().insert(
            key,
            Rc::clone(&compiled),
            stored.body.len() / 2 * TEMPLATE_BYTES,
        );
        Ok(compiled)
    }

    /// Returns every version of the definition with exactly this name, without bodies.
    pub(crate) async fn versions_of(
        &self,
        kind: DefinitionKind,
        name: &str,
    ) -> Result<Vec<Definition>, Failure> {
        self.repository
            .definition_versions(kind, name)
            .await
            .map_err(Failure::of_store)
    }

    /// Returns one version of a definition, with its body.
    pub(crate) async fn definition(
        &self,
        kind: DefinitionKind,
        name: &str,
        version: &str,
    ) -> Result<Option<Definition>, Failure> {
        self.repository
            .definition(kind, name, version)
            .await
            .map_err(Failure::of_store)
    }

    /// Returns all definitions of a kind without their bodies.
    pub(crate) async fn all_definitions(
        &self,
        kind: DefinitionKind,
    ) -> Result<Vec<Definition>, Failure> {
        let found = self.repository.definitions(kind, "").await;
        found.map_err(Failure::of_store)
    }

    /// Stores an uploaded definition, if the preconditions of the request hold. `version` is the
    /// one that the request names.
    ///
    /// # Errors
    /// 412 for a precondition that does not hold, 409 if the definition exists.
    pub(crate) async fn define(
        &self,
        call: &Call<'_>,
        kind: DefinitionKind,
        definition: &Definition,
        version: Option<&str>,
    ) -> Result<(), Failure> {
        self.check_stored(call, kind, definition, version).await?;
        let outcome = self.repository.define(kind, definition.clone()).await;
        if let Err(StoreError::DefinitionExists) = outcome {
            // Another request may have stored it after the check.
            self.check_stored(call, kind, definition, version).await?;
        }
        outcome.map_err(Failure::of_store)
    }

    /// Checks the preconditions of a request that stores a definition. They are those of a version,
    /// or without one those of the latest. Templates of another format have other addresses.
    pub(crate) async fn check_stored(
        &self,
        call: &Call<'_>,
        kind: DefinitionKind,
        sent: &Definition,
        version: Option<&str>,
    ) -> Result<(), Failure> {
        if !has_preconditions(call.request) {
            return Ok(());
        }
        let mut listed = self.versions_of(kind, &sent.name).await?;
        listed.retain(|one| kind != DefinitionKind::Template || one.format == sent.format);
        let stored = self.select_among(kind, Some(call), &listed, version);
        let etag = stored.await?.as_ref().map(definition_etag);
        check_preconditions(call.request, etag.as_deref())
    }

    /// Returns the definition that a name and a complete, partial or absent version select, with
    /// its body. With a call, a long body is read as soon as there is memory for it.
    pub(crate) async fn select_definition(
        &self,
        kind: DefinitionKind,
        call: Option<&Call<'_>>,
        name: &str,
        pattern: Option<&str>,
    ) -> Result<Option<Definition>, Failure> {
        let stored = self.versions_of(kind, name).await?;
        self.select_among(kind, call, &stored, pattern).await
    }

    /// Returns the one of these listed definitions of one name that a version selects, with its
    /// body, like [`Service::select_definition`].
    pub(crate) async fn select_among(
        &self,
        kind: DefinitionKind,
        call: Option<&Call<'_>>,
        listed: &[Definition],
        pattern: Option<&str>,
    ) -> Result<Option<Definition>, Failure> {
        let versions = listed.iter().map(|d| d.version.as_str());
        let version = select_version(versions, pattern);
        let Some(found) = version.and_then(|v| listed.iter().find(|d| d.version == v)) else {
            return Ok(None);
        };
        if let Some(call) = call {
            call.room(found.bytes).await?;
        }
        self.definition(kind, &found.name, &found.version).await
    }
}
