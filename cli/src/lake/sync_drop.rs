//! The folders of a lake: which belong to a view, and which files a sync removes.

use super::iceberg;
use super::names::{self, OwnFolder};
use super::state::{LakeState, ViewState};
use super::storage::Storage;
use super::sync::SyncOptions;
use super::sync_views::SyncView;
use crate::outcome::Failure;
use std::collections::HashSet;
use std::io::Write;

/// Checks the names of views against those of the lake.
///
/// # Errors
/// If two names differ in the case of letters only, or a view is both synchronized and dropped.
pub fn check_names(
    options: &SyncOptions,
    views: &[SyncView],
    state: &LakeState,
) -> Result<(), Failure> {
    for view in views {
        if options.dropped.contains(&view.name) {
            return Err(Failure::Usage(format!(
                "`{}` is both a view and dropped: --rebuild writes its dataset anew",
                view.name
            )));
        }
        let known = state
            .views
            .keys()
            .filter(|name| !options.dropped.contains(name));
        let is_similar =
            |name: &&String| **name != view.name && name.eq_ignore_ascii_case(&view.name);
        if let Some(other) = known.into_iter().find(is_similar) {
            return Err(Failure::Usage(format!(
                "the view `{}` and the dataset `{other}` of the lake differ in the case of letters only, and many systems have one folder for both: choose another name by --view NAME=FILE.aql, or remove the dataset by --drop {other}",
                view.name
            )));
        }
    }
    Ok(())
}

/// Removes the datasets that the options name.
///
/// # Errors
/// If the lake has none of a name, or a file cannot be removed.
pub fn drop_views(
    options: &SyncOptions,
    storage: &Storage,
    state: &mut LakeState,
) -> Result<(), Failure> {
    for name in &options.dropped {
        if !state.views.contains_key(name) {
            let known: Vec<&str> = state.views.keys().map(String::as_str).collect();
            return Err(Failure::Usage(format!(
                "the lake has no dataset `{name}`: it has {}",
                known.join(", ")
            )));
        }
    }
    for name in &options.dropped {
        let note = match options.dry_run {
            true => "dropped (dry run: nothing was written)",
            false => {
                // The empty entry reserves the folders, so that a killed run can be repeated.
                state.views.insert(name.clone(), ViewState::new(""));
                state.write(storage)?;
                clean(storage, state)?;
                "dropped"
            }
        };
        state.views.remove(name);
        let _ = writeln!(std::io::stdout(), "{name}: {note}");
    }
    match options.dropped.is_empty() || options.dry_run {
        true => Ok(()),
        false => state.write(storage),
    }
}

/// Reserves the folders of views that the lake does not have. From then on, files there with the names
/// that a sync gives are those of a sync.
///
/// # Errors
/// If a folder has files already, or the state cannot be written.
pub fn reserve(
    options: &SyncOptions,
    views: &[SyncView],
    (storage, state): (&Storage, &mut LakeState),
) -> Result<(), Failure> {
    let is_new = |view: &&SyncView| !state.views.contains_key(&view.name);
    let new: Vec<String> = views
        .iter()
        .filter(is_new)
        .map(|view| view.name.clone())
        .collect();
    for view in &new {
        for folder in OwnFolder::of_view(view) {
            let files = storage.list(&folder.name)?;
            if let Some(file) = files.first() {
                return Err(Failure::Data(format!(
                    "{} exists, and belongs to no dataset of the lake: choose another name for the view `{view}`, or move the files of this folder away",
                    storage.url(&file.name)
                )));
            }
        }
    }
    if new.is_empty() || options.dry_run {
        return Ok(());
    }
    for view in new {
        // The text of its query is not written before the query has been checked.
        state.views.insert(view, ViewState::new(""));
    }
    state.write(storage)
}

/// Removes the files that no state names: those of a sync that was killed, or those that a sync has
/// replaced. Files with other names than those of a sync stay.
///
/// # Errors
/// If a file cannot be removed.
pub fn clean(storage: &Storage, state: &LakeState) -> Result<(), Failure> {
    storage.confirm_lock()?;
    let mut named: HashSet<String> = HashSet::new();
    named.extend(state.issued.iter().map(|issued| issued.file.name.clone()));
    let mut folders = OwnFolder::of_lake();
    for (view, of_view) in &state.views {
        named.extend(of_view.names(view));
        // The last sync may have been killed between its state and the hint of a table.
        iceberg::publish(storage, view, of_view)?;
        folders.extend(OwnFolder::of_view(view));
    }
    storage.remove_incomplete(names::OWN, &names::is_state)?;
    for folder in folders {
        storage.remove_incomplete(&folder.name, &|name| folder.has(name))?;
        for file in storage.list(&folder.name)? {
            let name = file.name.strip_prefix(&folder.name);
            let name = name.and_then(|name| name.strip_prefix('/'));
            if name.is_some_and(|name| folder.has(name)) && !named.contains(&file.name) {
                storage.remove(&file.name)?;
            }
        }
    }
    Ok(())
}
