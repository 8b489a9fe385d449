//! What kernels prepare of constants.

use crate::base::Result;
use crate::memory::Bytes;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The forms that constants were brought into while one program is compiled. Kernels that want the same form of the same
/// constant share it: the steps of an unrolled loop multiply by one copy of their weights.
#[derive(Default)]
pub struct PreparedForms {
    forms: HashMap<FormKey, Arc<dyn Any + Send + Sync>>,
}

/// The type of a form, the constant's address, and what else decides about the form.
type FormKey = (TypeId, usize, [usize; 3]);

impl PreparedForms {
    /// The form T of a constant, which `settings` describe; `make` makes the first one.
    pub fn get<T: Any + Send + Sync>(
        &mut self,
        constant: Bytes<'_>,
        settings: [usize; 3],
        make: impl FnOnce() -> Result<T>,
    ) -> Result<Arc<T>> {
        let form = match self.forms.entry((TypeId::of::<T>(), constant.data().addr(), settings)) {
            Entry::Occupied(made) => made.get().clone(),
            Entry::Vacant(place) => place.insert(Arc::new(make()?)).clone(),
        };
        Ok(form.downcast().unwrap_or_else(|_| unreachable!("the type is a part of the key")))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::{Desc, Error, dtype};
    use crate::memory::View;

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
}
