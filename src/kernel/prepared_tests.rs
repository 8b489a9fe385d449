//! Forms of constants that kernels share.

use super::PreparedForms;
use crate::base::{Desc, Error, dtype};
use crate::memory::View;
use std::sync::Arc;

#[test]
fn a_form_is_made_once_for_each_constant_and_setting() {
    let mut numbers = [[1.0f32; 4]; 2];
    let [first, second] = numbers.each_mut().map(|numbers| {
        // SAFETY: nothing else uses the numbers.
        unsafe { View::new(numbers.as_mut_ptr().cast(), 16, Desc::new(dtype::F32, &[4])) }
    });
    // SAFETY: nobody writes the numbers.
    let [first, second] = unsafe { [first.as_bytes(), second.as_bytes()] };
    let mut forms = PreparedForms::default();
    let failed = forms.get::<u32>(first, [0; 3], || Err(Error::internal("no form"))).unwrap_err();
    assert_eq!(failed.message(), "no form");
    let made = forms.get(first, [0; 3], || Ok(1)).unwrap();
    assert!(Arc::ptr_eq(&made, &forms.get::<i32>(first, [0; 3], || unreachable!("made before")).unwrap()));
    assert_eq!(*forms.get(first, [0, 0, 1], || Ok(2)).unwrap(), 2);
    assert_eq!(*forms.get(second, [0; 3], || Ok(3)).unwrap(), 3);
    assert_eq!(*forms.get(first, [0; 3], || Ok("another type")).unwrap(), "another type");
}
