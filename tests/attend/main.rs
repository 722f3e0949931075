//! `examples/attend` as a program: given cases, flags, forms, bad input, whole results; its reader
//! under random bytes.

mod bad;
mod flags;
mod forms;
mod fuzz;
mod given;
mod hostile;
mod made;
mod tool;
mod twice;
mod whole;
