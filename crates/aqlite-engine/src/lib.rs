#![doc = include_str!("../README.md")]

pub mod answer;
pub mod document;
