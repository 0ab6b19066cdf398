//! Integration tests: one binary, so that the core is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says what went wrong by panicking"
)]

mod access_log;
mod altered;
mod aql_errors;
mod bulk;
mod checkpoints;
mod contributions;
mod dependencies;
mod divided_queries;
mod error_codes;
mod faults;
mod features;
mod gdl;
mod gdl_chain;
mod gdl_damaged;
mod gdl_records;
mod gdl_templates;
mod generated;
mod guide_lines;
mod guide_population;
mod guides;
mod imports;
mod integrity;
mod latest_rows;
mod limits;
mod limits_table;
mod loading;
mod notation;
mod openapi;
mod over_http;
mod pages;
mod paging;
mod parts;
mod privacy;
mod problems;
mod property;
mod push;
mod random_document;
mod reference;
mod repeated;
mod rest;
mod rewound;
mod rm;
mod rows;
mod rules;
mod rulings;
mod same_cells;
mod samples;
mod segments;
mod simplified;
mod snapshot;
mod sql;
mod sqlite;
mod statements;
mod steps;
mod storage;
mod store;
mod tables;
mod template;
mod terminology;
mod tidy;
mod upgrade;
mod vocabulary;
mod work;
mod write_policy;
