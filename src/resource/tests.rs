use super::*;
use crate::base::{Code, Desc, dtype};
use crate::device::{self, DeviceKind};
use crate::memory::View;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn registry() -> Arc<Registry> {
    Registry::open("engine cpu:0".to_owned(), device::open(DeviceKind::CPU, 0, &Default::default()).unwrap())
}

fn vector(n: i64) -> Desc {
    Desc::new(dtype::S32, &[n])
}

fn variable(registry: &Arc<Registry>, n: i64, is_optimistic: bool) -> Ref<Resource> {
    let variable = Variable::create(vector(n), is_optimistic, None).unwrap();
    Resource::create(registry, ResourceBody::Variable(variable)).unwrap()
}

fn entered(registry: &Arc<Registry>, name: &str) -> Ref<Resource> {
    let resource = variable(registry, 4, false);
    registry.enter("c", name, &resource).unwrap();
    resource
}

fn message<T>(result: Result<T>) -> String {
    result.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn what_is_not_there_is_missed_in_three_ways() {
    let registry = registry();
    assert_eq!(message(registry.lookup("c", "x", None)), "NOT_FOUND: engine cpu:0 has no container 'c'");
    let number = entered(&registry, "x").number();
    assert_eq!(
        message(registry.lookup("c", "y", None)),
        "NOT_FOUND: container 'c' of engine cpu:0 has no resource 'y'"
    );
    assert!(registry.by_number(number).is_ok());
    registry.delete("c", "x").unwrap();
    assert!(message(registry.by_number(number)).ends_with("of engine cpu:0 was destroyed"));
    assert_eq!(message(registry.delete("c", "x")), "NOT_FOUND: container 'c' of engine cpu:0 has no resource 'x'");
    // The slot belongs to another resource now, and the old number is still stale.
    let next = entered(&registry, "x");
    assert!(next.number() != number && next.number() as u32 == number as u32);
    assert!(registry.by_number(number).is_err() && registry.by_number(0).is_err());
}

#[test]
fn another_kind_and_a_second_one_of_a_name_are_refused() {
    let registry = registry();
    let first = entered(&registry, "x");
    let error = registry.lookup("c", "x", Some(ResourceKind::Table)).map(|_| ()).unwrap_err();
    assert_eq!(error.to_string(), "INVALID_ARGUMENT: variable 'x' of container 'c' is no table");
    let error = registry.enter("c", "x", &variable(&registry, 1, false)).unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists);
    assert!(message(registry.enter("d", "x", &first)).contains("has a name already"));
    let other = self::registry();
    assert!(message(first.check_engine(&other, "variable")).contains("of another engine"));
}

#[test]
fn clearing_counts_and_may_be_done_again() {
    let registry = registry();
    for name in ["b", "a", "c"] {
        entered(&registry, name);
    }
    let names: Vec<_> =
        registry.list(None).unwrap().iter().map(|listed| listed.resource.place().unwrap().name.clone()).collect();
    assert_eq!(names, ["a".into(), "b".into(), "c".into()]);
    assert!(registry.list(Some("c")).unwrap().iter().all(|listed| listed.references == 0));
    assert_eq!((registry.clear("c").unwrap(), registry.clear("c").unwrap()), (3, 0));
    assert_eq!(message(registry.lookup("c", "a", None)), "NOT_FOUND: engine cpu:0 has no container 'c'");
}

/// On drop, uses the registry, which must not be locked.
struct Looks(Arc<Registry>, Arc<AtomicUsize>);

impl Drop for Looks {
    fn drop(&mut self) {
        assert!(self.0.lookup("c", "x", None).is_err());
        self.1.fetch_add(1, Relaxed);
    }
}

#[test]
fn what_ends_may_come_back_to_the_registry() {
    let (registry, ended) = (registry(), Arc::new(AtomicUsize::new(0)));
    let make = || {
        let kept = Box::new(Looks(Arc::clone(&registry), Arc::clone(&ended)));
        Resource::create(&registry, ResourceBody::Host(HostObject::new("t", std::ptr::null_mut(), kept)))
    };
    let close = |r: &Registry| {
        r.close();
        Ok(())
    };
    for take in [|r: &Registry| r.delete("c", "x"), |r: &Registry| r.clear("c").map(drop), close] {
        registry.enter("c", "x", &make().unwrap()).unwrap();
        take(&registry).unwrap();
    }
    assert_eq!(ended.load(Relaxed), 3);
}

/// Returns when this many threads have arrived.
fn meet(come: &AtomicUsize, all: usize) {
    come.fetch_add(1, Relaxed);
    while come.load(Relaxed) < all {
        std::thread::yield_now();
    }
}

#[test]
fn one_makes_what_many_ask_for() {
    let (registry, made, come) = (registry(), AtomicUsize::new(0), AtomicUsize::new(0));
    let ask = || {
        meet(&come, 4);
        registry.lookup_or_make("c", "x", None, || {
            made.fetch_add(1, Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(20));
            Ok(variable(&registry, 4, false))
        })
    };
    let all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap().unwrap().number()).collect()
    });
    assert!(all.iter().all(|&number| number == all[0]));
    assert_eq!(made.load(Relaxed), 1);
}

#[test]
fn a_failed_making_is_tried_by_the_next() {
    let (registry, tries, come) = (registry(), AtomicUsize::new(0), AtomicUsize::new(0));
    let ask = || {
        meet(&come, 3);
        registry.lookup_or_make("c", "x", None, || {
            std::thread::sleep(std::time::Duration::from_millis(5));
            match tries.fetch_add(1, Relaxed) {
                0 => Err(Error::new(Code::Unavailable, "not now")),
                _ => Ok(variable(&registry, 4, false)),
            }
        })
    };
    let failed = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(ask)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(Result::is_err).count()
    });
    assert_eq!((failed, tries.load(Relaxed)), (1, 2));
    // Neither a failure nor a panic leaves the name taken.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        registry.lookup_or_make("c", "y", None, || panic!("on purpose"))
    }));
    assert!(panicked.is_err());
    entered(&registry, "y");
}

#[test]
fn nobody_waits_for_what_waits_for_them() {
    let registry = registry();
    let inner = |name: &str| registry.lookup_or_make("c", name, None, || Ok(variable(&registry, 4, false)));
    // Looks up the resource that is being made.
    let error = registry.lookup_or_make("c", "x", None, || inner("x")).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    // Another resource may be made meanwhile; but one with a name already cannot get this one.
    assert!(message(registry.lookup_or_make("c", "x", None, || inner("y"))).contains("has a name already"));
    let made = registry.lookup_or_make("c", "x", None, || inner("z").and(Ok(variable(&registry, 4, false))));
    assert_eq!(made.unwrap().text(), "variable 'x' of container 'c'");
}

#[test]
fn what_outlives_its_engine_is_listed_until_it_goes() {
    let registry =
        Registry::open("engine leaky".to_owned(), device::open(DeviceKind::CPU, 0, &Default::default()).unwrap());
    let held = entered(&registry, "held");
    drop(entered(&registry, "gone"));
    registry.close();
    let ours = || leak_report().lines().filter(|line| line.contains("leaky")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(ours(), ["engine leaky: variable 'held' of container 'c' (1 references)"]);
    drop(registry);
    drop(held);
    assert!(ours().is_empty());
}

fn tensor(values: &mut [i32]) -> View {
    // SAFETY: the callers keep the values as long as the view.
    unsafe { View::new(values.as_mut_ptr().cast(), size_of_val(values), vector(values.len() as i64)) }
}

/// Writers give all elements one value; readers must never see two.
fn no_value_is_torn(is_optimistic: bool) {
    const N: usize = 1024;
    let registry = registry();
    let resource = variable(&registry, N as i64, is_optimistic);
    let (variable, name) = (resource.variable().unwrap(), || resource.text());
    let over = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let over = &over;
            scope.spawn(move || {
                for i in 0..400 {
                    // SAFETY: nobody else has the values.
                    unsafe { variable.set(&tensor(&mut [i * 2 + writer; N]), Side::Host, &name) }.unwrap();
                }
                over.fetch_add(1, Relaxed);
            });
        }
        scope.spawn(|| {
            while over.load(Relaxed) < 2 {
                let mut values = vec![-1; N];
                // SAFETY: nobody else has the values.
                unsafe { variable.get(&tensor(&mut values), Side::Host, &name) }.unwrap();
                assert!(values.iter().all(|&value| value == values[0]));
            }
        });
    });
    assert!(resource.bytes() <= 5 * 4 * N);
}

#[test]
fn no_value_of_an_optimistic_variable_is_torn() {
    no_value_is_torn(true);
}

#[test]
fn no_value_of_an_exclusive_variable_is_torn() {
    no_value_is_torn(false);
}

#[test]
fn a_table_finds_what_was_put_in_last() {
    let table = LookupTable::new(KeyKind::Bytes, Desc::new(dtype::U8, &[2])).unwrap();
    let keys: [&[u8]; 3] = [b"b", b"", b"b"];
    table.insert(Keys::Bytes(&keys), &[1, 2, 3, 4, 5, 6]).unwrap();
    let (mut rows, mut found) = ([9; 6], [9; 3]);
    let asked: [&[u8]; 3] = [b"", b"none", b"b"];
    assert_eq!(table.find(Keys::Bytes(&asked), Some(&[7, 8]), &mut rows, Some(&mut found)).unwrap(), 2);
    assert_eq!((rows, found), ([3, 4, 7, 8, 5, 6], [1, 0, 1]));
    let (keys, rows) = table.export().unwrap();
    assert_eq!(keys, [TableKey::Bytes(Box::from(*b"")), TableKey::Bytes(Box::from(*b"b"))]);
    assert_eq!(rows, [3, 4, 5, 6]);
    assert!(message(table.insert(Keys::Int64(&[1]), &[1, 2])).contains("expected byte strings, got 64-bit integers"));
    assert!(message(table.insert(Keys::Bytes(&[b"x"]), &[1])).contains("has 1 bytes, expected 1 rows of u8[2]"));
    let whole = LookupTable::new(KeyKind::Int64, Desc::new(dtype::F32, &[])).unwrap();
    let keys: Vec<i64> = (0..5000).map(|i| (i * 7919) % 5000 - 2500).collect();
    let rows: Vec<u8> = keys.iter().flat_map(|&key| (key as f32).to_ne_bytes()).collect();
    whole.insert(Keys::Int64(&keys), &rows).unwrap();
    let (sorted, rows) = whole.export().unwrap();
    assert!(sorted.len() == 5000 && sorted.is_sorted());
    assert_eq!(rows[..4], (-2500f32).to_ne_bytes());
}
