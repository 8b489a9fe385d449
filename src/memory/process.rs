//! Aligned, zeroed memory of the process, of any size.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// From this size on the system provides zeroed pages, committed when they are first touched.
const LAZY: usize = 1 << 20;
/// From this size on the pages are huge ones, if the system has any: a matrix that is read once, from memory, costs a
/// miss of the TLB for each small page.
const HUGE: usize = 4 << 20;
const HUGE_PAGE: usize = 2 << 20;

/// Room for the alignment, and for the offset back to the beginning. The C library's own functions for aligned
/// memory do not report whether it is zero, so Rust's would touch all of it.
fn layout(bytes: usize, alignment: usize) -> Option<(Layout, bool)> {
    if bytes < LAZY {
        return Layout::from_size_align(bytes, alignment).ok().map(|layout| (layout, false));
    }
    Layout::from_size_align(bytes.checked_add(alignment)?, size_of::<usize>()).ok().map(|layout| (layout, true))
}

/// Zero bytes, at least one, aligned to `alignment`; `None` if there is no more memory.
pub fn allocate_zeroed(bytes: usize, alignment: usize) -> Option<NonNull<u8>> {
    assert!(bytes > 0);
    let (layout, is_lazy) = layout(bytes, alignment)?;
    // SAFETY: the layout's size is not 0.
    let data = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    if !is_lazy {
        return Some(data);
    }
    // At least one word, as the beginning is aligned to a word, and at most `alignment`.
    let ahead = alignment - data.addr().get() % alignment;
    // SAFETY: the allocation has room for the alignment in front; the word there is aligned as a word.
    unsafe {
        let data = data.add(ahead);
        data.cast::<usize>().sub(1).write(ahead);
        if bytes >= HUGE {
            prefer_huge_pages(data, bytes);
        }
        Some(data)
    }
}

/// Gives memory back.
///
/// # Safety
/// It came from `allocate_zeroed` with these arguments, and nothing uses it any more.
pub unsafe fn deallocate(data: NonNull<u8>, bytes: usize, alignment: usize) {
    let Some((layout, is_lazy)) = layout(bytes, alignment) else { return };
    // SAFETY: allocated with this layout, with the offset in front of the address.
    unsafe {
        let ahead = if is_lazy { data.cast::<usize>().sub(1).read() } else { 0 };
        dealloc(data.sub(ahead).as_ptr(), layout);
    }
}

/// Tells the system, before the memory is touched, that its pages should be huge. A system that has none says no, and
/// a host that wants none has turned them off for its process (`PR_SET_THP_DISABLE`).
///
/// # Safety
/// Memory of the process.
unsafe fn prefer_huge_pages(data: NonNull<u8>, bytes: usize) {
    #[cfg(target_os = "linux")]
    {
        let skipped = data.addr().get().next_multiple_of(HUGE_PAGE) - data.addr().get();
        let whole = bytes.saturating_sub(skipped) / HUGE_PAGE * HUGE_PAGE;
        if whole > 0 {
            // SAFETY: whole pages within the memory, whose contents the advice does not change.
            unsafe { libc::madvise(data.add(skipped).as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (data, bytes);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_zero_and_goes_back() {
        for bytes in [1, 64, 4096, LAZY - 1, LAZY, 5 * LAZY + 7] {
            for alignment in [64, 4096] {
                let data = allocate_zeroed(bytes, alignment).unwrap();
                assert!(data.addr().get().is_multiple_of(alignment));
                // SAFETY: as many bytes were asked for.
                let all = unsafe { std::slice::from_raw_parts_mut(data.as_ptr(), bytes) };
                assert!(all.iter().all(|&byte| byte == 0));
                all.fill(1);
                // SAFETY: as many bytes were asked for, which nobody else has.
                unsafe { deallocate(data, bytes, alignment) };
            }
        }
        assert!(allocate_zeroed(isize::MAX as usize - 100, 64).is_none());
        assert!(allocate_zeroed(usize::MAX - 10, 64).is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn large_memory_asks_for_huge_pages() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            eprintln!("SKIPPED: this system has no huge pages on request");
            return;
        }
        let flags = |bytes: usize| {
            let data = allocate_zeroed(bytes, 64).unwrap();
            let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
            // SAFETY: as many bytes were asked for, which nobody else has.
            unsafe { deallocate(data, bytes, 64) };
            let middle = data.addr().get() + bytes / 2;
            let mut inside = false;
            for line in maps.lines() {
                let range = line.split(' ').next().and_then(|range| range.split_once('-'));
                let ends = range.map(|(begin, end)| [begin, end].map(|end| usize::from_str_radix(end, 16)));
                if let Some([Ok(begin), Ok(end)]) = ends {
                    inside = (begin..end).contains(&middle);
                } else if inside && let Some(flags) = line.strip_prefix("VmFlags:") {
                    return flags.to_owned();
                }
            }
            panic!("no mapping holds {middle:#x}");
        };
        assert!(flags(5 * HUGE).split(' ').any(|flag| flag == "hg"));
    }
}
