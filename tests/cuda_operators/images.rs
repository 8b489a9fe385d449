//! The modules as they are checked in: made from the sources beside them, and with the kernels that the library looks
//! for.

use crate::kit::module;
use std::path::Path;
use std::process::Command;
use weir_core::device::cuda::plan::{ENTRIES, IMAGES};
use weir_ptx::Module;

#[test]
fn each_module_was_made_from_its_sources() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/ptx.py");
    let checked = Command::new("python3").arg(script).arg("--check").output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

#[test]
fn entries_are_those_of_the_modules() {
    for (i, entry) in ENTRIES.iter().enumerate() {
        assert_eq!(entry.index, i);
        let name = entry.name.to_str().unwrap();
        assert!(module(entry.image.name).entry(name).is_some(), "module {} has no {name}", entry.image.name);
        let alone = entry.ptx().unwrap();
        assert_eq!(alone.matches(".entry").count(), 1, "{name}");
        assert!(Module::parse(&alone).unwrap().entry(name).is_some(), "{name}");
    }
    for image in IMAGES {
        let text = image.ptx().unwrap();
        assert!(text.contains(".version 8.0") && text.contains(".target sm_75"), "{}", image.name);
        let of_image = ENTRIES.iter().filter(|entry| std::ptr::eq(entry.image, *image)).count();
        assert_eq!(text.matches(".visible .entry").count(), of_image, "kernels of {}", image.name);
    }
}
