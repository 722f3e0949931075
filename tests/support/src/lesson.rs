//! The lesson's demo and its steps: what `six_tokens` and `lesson_facts` print, and tests check.

pub mod demo;
pub mod entropy;
pub mod figures;
pub mod page;
pub mod steps;
pub mod tokens;
