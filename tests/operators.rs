//! The list of operators is complete, and each is described in one place.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use weir_core::ops::Op;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn sources(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

/// Each struct, name and export of an operator is in its own file; where others use the operator, they use what that
/// file says of it.
#[test]
fn each_operator_is_described_in_one_place() {
    let mut files = BTreeMap::new();
    sources(&root().join("src"), &mut files);
    println!("{} operators", Op::NAMES.len());
    for name in Op::NAMES {
        let own = format!("src/ops/{name}.rs");
        let texts = [
            format!("pub struct weir_{name}_desc "),
            format!("const NAME: &'static str = \"{name}\""),
            format!("pub unsafe extern \"C\" fn weir_kernel_create_{name}("),
            format!("weir_{name}_desc: "),
            format!("\"{name}\" =>"),
        ];
        let places: Vec<&String> = files
            .iter()
            .filter(|(_, text)| texts.iter().any(|described| text.contains(described.as_str())))
            .map(|(file, _)| file)
            .collect();
        println!("{name}: described in {} place", places.len());
        assert_eq!(places, [&own], "{name}");
    }
    let described = files
        .keys()
        .filter_map(|file| file.strip_prefix("src/ops/"))
        .filter(|file| files[&format!("src/ops/{file}")].contains("impl Operator for "));
    assert_eq!(described.count(), Op::NAMES.len(), "a description that is not in `operators!`");
}

/// The generated files hold each operator of the list, and no list by hand forgets one.
#[test]
fn every_operator_is_wherever_operators_are_listed() {
    let (header, list, api, table) = (
        read("include/weir/ops.h"),
        read("include/weir/operators.h"),
        read("include/weir/weir_api.json"),
        read("docs/operators.md"),
    );
    for name in Op::NAMES {
        assert!(header.contains(&format!("weir_status weir_kernel_create_{name}(")), "{name} in ops.h");
        assert!(list.contains(&format!("X({name}, ")), "{name} in operators.h");
        assert!(api.contains(&format!("\"weir_kernel_create_{name}\"")), "{name} in weir_api.json");
        assert!(table.contains(&format!("| `{name}` |")), "{name} in operators.md");
    }
    assert_eq!(list.matches("    X(").count(), Op::NAMES.len());
    let rows = table.lines().filter(|line| line.starts_with("| `") && !line.contains("`weir_kernel_create_`"));
    assert_eq!(rows.count(), Op::NAMES.len());
    let created = header.matches("weir_status weir_kernel_create_").count();
    assert_eq!(created, Op::NAMES.len(), "functions in ops.h that create kernels");
}

/// The bytes of a descriptor are all initialised: its members leave no gaps.
#[test]
fn descriptors_have_no_gaps() {
    fn bytes(declared: &str) -> usize {
        let (of, count) = match declared.trim_start_matches('[').trim_end_matches(']').split_once("; ") {
            Some((of, count)) => (of, count.parse().unwrap()),
            None => (declared, 1),
        };
        count
            * match of {
                "u32" | "i32" | "f32" => 4,
                "u64" | "i64" | "f64" => 8,
                "usize" => size_of::<usize>(),
                pointer if pointer.starts_with('*') => size_of::<usize>(),
                name if name.starts_with("weir_") => 4,
                other => panic!("{other}: how large is it?"),
            }
    }
    for name in Op::NAMES {
        let source = read(&format!("src/ops/{name}.rs"));
        let (_, body) = source.split_once(&format!("pub struct weir_{name}_desc {{")).unwrap();
        let members = body[..body.find("\n}").unwrap()].lines().filter_map(|line| line.trim().strip_prefix("pub "));
        let mut end = 0;
        for member in members {
            let (member, declared) = member.trim_end_matches(',').split_once(": ").unwrap();
            let element = declared.trim_start_matches('[').split(';').next().unwrap();
            assert_eq!(end % bytes(element), 0, "a gap before {member} of weir_{name}_desc");
            end += bytes(declared);
        }
        assert_eq!(end % size_of::<usize>(), 0, "a gap at the end of weir_{name}_desc");
    }
}
