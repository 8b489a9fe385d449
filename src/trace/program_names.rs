//! The names of a program and of its nodes as C has them, for hooks: they stay where they are as long as the program.
#![forbid(unsafe_code)]

use super::table::Table;
use std::ffi::c_char;
use std::ptr;
use std::sync::atomic::AtomicUsize;

/// Nothing is here.
const NOWHERE: u32 = u32::MAX;

/// A node's places in the text.
struct NodePlaces {
    name: u32,
    /// Of its engine's name, or NOWHERE.
    engine: u32,
}

/// All names, each behind a NUL.
pub struct ProgramNames {
    text: Box<[u8]>,
    nodes: Box<[NodePlaces]>,
    /// What a tool has made of each name, the program's first; 0 = nothing yet. Of one tool alone.
    handles: Box<[AtomicUsize]>,
}

/// A text under construction.
#[derive(Default)]
struct NameText(Vec<u8>);

impl NameText {
    /// Where the name begins. `None` for want of memory.
    fn push(&mut self, name: &str) -> Option<u32> {
        let at = u32::try_from(self.0.len()).ok().filter(|at| *at != NOWHERE)?;
        self.0.try_reserve(name.len() + 1).ok()?;
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        Some(at)
    }
}

impl ProgramNames {
    /// `None` for want of memory.
    pub(super) fn of(table: &Table) -> Option<ProgramNames> {
        let (mut text, mut nodes, mut handles) = (NameText::default(), Vec::new(), Vec::new());
        nodes.try_reserve_exact(table.nodes.len()).ok()?;
        handles.try_reserve_exact(table.nodes.len() + 1).ok()?;
        handles.resize_with(table.nodes.len() + 1, || AtomicUsize::new(0));
        text.push(&table.name)?;
        let mut last: Option<(&str, u32)> = None;
        for node in (0..table.nodes.len() as u32).filter_map(|node| table.nodes.get(node)) {
            let engine = match (node.engine, last) {
                (None, _) => NOWHERE,
                (Some(engine), Some((known, at))) if engine == known => at,
                (Some(engine), _) => {
                    let at = text.push(engine)?;
                    last = Some((engine, at));
                    at
                }
            };
            nodes.push(NodePlaces { name: text.push(node.name)?, engine });
        }
        let (text, nodes) = (text.0.into_boxed_slice(), nodes.into_boxed_slice());
        Some(ProgramNames { text, nodes, handles: handles.into_boxed_slice() })
    }

    fn at(&self, place: u32) -> *const c_char {
        self.text.get(place as usize..).map_or(ptr::null(), |text| text.as_ptr().cast())
    }

    /// NUL-terminated, as those below.
    pub fn program(&self) -> *const c_char {
        self.at(0)
    }

    pub fn node(&self, node: u32) -> *const c_char {
        self.nodes.get(node as usize).map_or(ptr::null(), |node| self.at(node.name))
    }

    /// NULL for the program's own.
    pub fn engine(&self, node: u32) -> *const c_char {
        self.nodes.get(node as usize).map_or(ptr::null(), |node| self.at(node.engine))
    }

    /// For what a tool has made of a node's name, or of the program's.
    pub fn handle(&self, node: Option<u32>) -> Option<&AtomicUsize> {
        self.handles.get(node.map_or(0, |node| node as usize + 1))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::table::{NodeOfTable, Nodes};
    use super::*;

    #[test]
    fn each_name_ends_where_c_expects_it() {
        let mut nodes = Nodes::default();
        for (name, engine) in [("a", None), ("", Some("cuda:0")), ("copy", Some("cuda:0"))] {
            assert!(nodes.push(&NodeOfTable { name, counted_at: None, engine, is_told: true }));
        }
        let names = ProgramNames::of(&Table { number: 1, name: "net".to_owned(), nodes }).unwrap();
        assert_eq!(&*names.text, b"net\0a\0cuda:0\0\0copy\0");
        assert_eq!(names.program(), names.text.as_ptr().cast());
        assert_eq!(names.node(2), names.text[14..].as_ptr().cast());
        assert!(names.engine(0).is_null() && names.node(3).is_null() && names.engine(3).is_null());
        assert_eq!((names.engine(1), names.engine(2)), (names.engine(2), names.text[6..].as_ptr().cast()));
        assert!(names.handle(None).is_some() && names.handle(Some(2)).is_some() && names.handle(Some(3)).is_none());
    }
}
