//! What is to be measured: as written ([`Spec`]), then as a [`Plan`] on which every check has been made that needs no
//! device. The checks that do are made when the engine is opened.

mod block;
mod file;
pub mod fio;
mod load;
mod plan;
mod spec;

pub use block::check_extent;
pub use file::{Options, PROBE_SCHEMA, ProbeFile};
pub use load::Load;
pub use plan::Plan;
pub use spec::{BlockSpec, RdmaSpec, Spec};
