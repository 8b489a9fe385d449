//! The kernels of tables: find, insert, size. Keys are tensors of s64.
#![forbid(unsafe_code)]

use super::{Registry, Resource};
use crate::base::desc::MAX_RANK;
use crate::base::{Code, Desc, Error, Ref, Result, dtype};
use crate::kernel::{Effect, Kernel, KernelContext, Outputs};
use crate::ops::signature;
use crate::resource::{KeyKind, Keys};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableOperation {
    /// Keys and a default row to rows, and whether each key was found.
    Find,
    /// Keys and rows.
    Insert,
    /// To the number of rows.
    Size,
}

/// A kernel of one operation on one table, which it refers to by number, or, as part of a program, by a pointer.
struct TableKernel {
    operation: TableOperation,
    row: Desc,
    effects: [Effect; 1],
    registry: Arc<Registry>,
    number: u64,
    /// Set in programs.
    resolved: Option<Ref<Resource>>,
}

/// The kernel of an operation on a table with integer keys.
pub fn table_kernel(
    operation: TableOperation,
    registry: &Arc<Registry>,
    resource: &Resource,
) -> Result<Arc<dyn Kernel>> {
    let table = resource.table()?;
    if table.kind() != KeyKind::Int64 {
        return Err(Error::invalid(format!(
            "{} has {} as keys, which no tensor has",
            resource.text(),
            table.kind().name()
        )));
    }
    let effect = Effect {
        thing: table.serial(),
        name: resource.text().into(),
        writes: operation == TableOperation::Insert,
        is_ordered: true,
        remedy: "add a control edge",
    };
    Ok(Arc::new(TableKernel {
        operation,
        row: *table.row(),
        effects: [effect],
        registry: Arc::clone(registry),
        number: resource.number(),
        resolved: None,
    }))
}

impl TableKernel {
    fn find(&self) -> Result<Ref<Resource>> {
        self.registry.by_number(self.number).map_err(|error| match error.code() {
            Code::NotFound => Error::new(Code::NotFound, format!("{} was destroyed", self.effects[0].name)),
            _ => error,
        })
    }

    /// The rows of keys of this shape.
    fn rows(&self, keys: &Desc) -> Result<Desc> {
        if keys.dtype != dtype::S64 {
            return Err(signature::mismatch("input", 0, "s64 elements, the table's keys", keys));
        }
        let rank = keys.shape().len() + self.row.shape().len();
        if rank > MAX_RANK {
            let expected =
                format!("at most {} dimensions, as rows are {}", MAX_RANK - self.row.shape().len(), self.row.text());
            return Err(signature::mismatch("input", 0, &expected, keys));
        }
        let dims: Vec<i64> = keys.shape().iter().chain(self.row.shape()).copied().collect();
        Desc::new(self.row.dtype, &dims).check()
    }

    fn perform(&self, resource: &Resource, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        let table = resource.table()?;
        let keys = || Keys::Int64(context.input(0).read::<i64>());
        match self.operation {
            TableOperation::Find => {
                let [mut rows, mut found] = outputs.split();
                let missing = context.input(1).read_bytes();
                table.find(keys(), Some(missing), rows.write_bytes(), Some(found.write_bytes())).map(drop)
            }
            TableOperation::Insert => table.insert(keys(), context.input(1).read_bytes()),
            TableOperation::Size => {
                let len = table.len() as i64;
                outputs.only().write_bytes().copy_from_slice(&len.to_ne_bytes());
                Ok(())
            }
        }
    }
}

impl Kernel for TableKernel {
    fn name(&self) -> &str {
        match self.operation {
            TableOperation::Find => "table_find",
            TableOperation::Insert => "table_insert",
            TableOperation::Size => "table_size",
        }
    }

    fn num_inputs(&self) -> usize {
        if self.operation == TableOperation::Size { 0 } else { 2 }
    }

    fn num_outputs(&self) -> usize {
        match self.operation {
            TableOperation::Find => 2,
            TableOperation::Insert => 0,
            TableOperation::Size => 1,
        }
    }

    fn infer(&self, inputs: &[Desc]) -> Result<Vec<Desc>> {
        match self.operation {
            TableOperation::Find => {
                let rows = self.rows(&inputs[0])?;
                signature::check("input", &[inputs[0], self.row], inputs)?;
                Ok(vec![rows, Desc { dtype: dtype::BOOL, ..inputs[0] }])
            }
            TableOperation::Insert => {
                signature::check("input", &[inputs[0], self.rows(&inputs[0])?], inputs)?;
                Ok(Vec::new())
            }
            TableOperation::Size => Ok(vec![Desc::new(dtype::S64, &[])]),
        }
    }

    fn cost_ns(&self, inputs: &[Desc], _outputs: &[Desc]) -> u64 {
        const KEY_NS: u64 = 50;
        let keys = inputs.first().and_then(|keys| keys.elements().ok()).unwrap_or(0) as u64;
        let row = self.row.bytes().unwrap_or(0) as u64;
        KEY_NS + keys * (KEY_NS + row / 10)
    }

    fn effects(&self) -> &[Effect] {
        &self.effects
    }

    fn resolve(&self) -> Result<Option<Arc<dyn Kernel>>> {
        let resolved = TableKernel {
            effects: self.effects.clone(),
            registry: Arc::clone(&self.registry),
            resolved: Some(self.find()?),
            ..*self
        };
        Ok(Some(Arc::new(resolved)))
    }

    fn compute(&self, context: &KernelContext<'_>, outputs: Outputs<'_>) -> Result<()> {
        match &self.resolved {
            Some(resource) => self.perform(resource, context, outputs),
            None => self.perform(&*self.find()?, context, outputs),
        }
    }
}
