//! Forms of constants, which kernels prepare for a program.
#![forbid(unsafe_code)]

use crate::base::Result;
use crate::memory::Bytes;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// The forms that constants were brought into while one program is compiled, which keeps the constants alive. Kernels
/// that want the same form of the same constant share it: the steps of an unrolled loop multiply by one copy of their
/// weights.
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
