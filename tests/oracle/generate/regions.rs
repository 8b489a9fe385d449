//! Cond, case and while.

use super::super::spec::{Graph, Kind, Op, Type, Value};
use super::{Generator, Scope};

impl Generator {
    /// Adds one of them; `among` are values of which it takes at least one, if there are any.
    pub(super) fn region(&mut self, scope: &mut Scope, among: &[Value]) -> Vec<Value> {
        match self.random.below(5) {
            0 | 1 => self.cond(scope, among),
            2 => self.case(scope, among),
            _ => self.looping(scope, among),
        }
    }

    fn region_inputs(&mut self, scope: &Scope, among: &[Value]) -> Vec<Value> {
        let mut inputs = self.picks(scope, 3);
        if !among.is_empty() {
            let at = self.random.below(inputs.len() + 1);
            inputs.insert(at, self.random.of(among));
        }
        inputs
    }

    /// A certain predicate; any other one rarely.
    pub(super) fn predicate(&mut self, scope: &mut Scope) -> Value {
        match self.pick(scope, Type::is_predicate) {
            Some(value) if !self.random.once_in(3) => value,
            _ => {
                let kind = self.random.of(&Type::PREDICATES);
                self.certain(scope, kind)
            }
        }
    }

    /// Types that a sub-graph with these inputs may give, the inputs' own rather than others.
    fn outputs_of(&mut self, inputs: &[Type]) -> Vec<Type> {
        let draw = |this: &mut Self| {
            let own = !inputs.is_empty() && this.random.once_in(2);
            if own { this.random.of(inputs) } else { this.any_type() }
        };
        (0..self.random.below(4)).map(|_| draw(self)).collect()
    }

    fn subgraph(&mut self, inputs: &[Type], outputs: &[Type], depth: usize) -> Graph {
        let mut scope = Scope::of(inputs, depth);
        let steps = self.random.below(6 - depth);
        self.fill(&mut scope, steps);
        scope.graph.outputs = outputs.iter().map(|&kind| self.certain(&mut scope, kind)).collect();
        scope.graph
    }

    fn cond(&mut self, scope: &mut Scope, among: &[Value]) -> Vec<Value> {
        let (mut inputs, predicate) = (self.region_inputs(scope, among), self.predicate(scope));
        let kinds: Vec<Type> = inputs.iter().map(|&value| scope.type_of(value)).collect();
        let outputs = self.outputs_of(&kinds);
        let then = self.subgraph(&kinds, &outputs, scope.depth + 1);
        let otherwise = self.subgraph(&kinds, &outputs, scope.depth + 1);
        inputs.insert(0, predicate);
        self.add_anywhere(scope, Kind::Cond { then, otherwise }, inputs, outputs)
    }

    fn case(&mut self, scope: &mut Scope, among: &[Value]) -> Vec<Value> {
        let (mut inputs, index) = (self.region_inputs(scope, among), self.predicate(scope));
        let kinds: Vec<Type> = inputs.iter().map(|&value| scope.type_of(value)).collect();
        let outputs = self.outputs_of(&kinds);
        let branches =
            (0..self.random.below(4) + 1).map(|_| self.subgraph(&kinds, &outputs, scope.depth + 1)).collect();
        inputs.insert(0, index);
        self.add_anywhere(scope, Kind::Case { branches }, inputs, outputs)
    }

    /// A while whose variable at some place counts down.
    fn looping(&mut self, scope: &mut Scope, among: &[Value]) -> Vec<Value> {
        let mut variables = self.region_inputs(scope, among);
        let invariants = self.picks(scope, 2);
        let counter = self.random.below(variables.len() + 1);
        let trips = self.trips(scope);
        variables.insert(counter, trips);
        let kinds: Vec<Type> = variables.iter().chain(&invariants).map(|&value| scope.type_of(value)).collect();
        let outputs = kinds[..variables.len()].to_vec();
        let condition = self.condition(&kinds, counter, scope.depth + 1);
        let body = self.body(&kinds, &outputs, counter, scope.depth + 1);
        let inputs = variables.into_iter().chain(invariants).collect();
        let parallel_iterations = self.random.below(4) as u32 + 1;
        self.add_anywhere(scope, Kind::While { condition, body, parallel_iterations }, inputs, outputs)
    }

    /// How often a loop goes round: by data, mostly.
    fn trips(&mut self, scope: &mut Scope) -> Value {
        let most = match scope.depth {
            0 if self.random.once_in(5) => 11,
            0 => 4,
            _ => 2,
        };
        if self.random.once_in(5) {
            let data = super::Data::new(Type::Int, &[self.random.below(most as usize + 1) as i32]);
            return self.add(scope, Kind::Constant(vec![data]), vec![], vec![Type::Int], vec![])[0];
        }
        let inputs = self.picks(scope, 2);
        let salt = self.random.next() as i32;
        let kind = self.leaf_kind(Op::Trips { salt, most });
        self.add_anywhere(scope, kind, inputs, vec![Type::Int])[0]
    }

    fn condition(&mut self, kinds: &[Type], counter: usize, depth: usize) -> Graph {
        let mut scope = Scope::of(kinds, depth);
        if self.random.once_in(4) {
            // The counter itself decides.
            scope.graph.outputs = vec![Value::Input(counter)];
            return scope.graph;
        }
        if self.random.once_in(3) {
            let steps = self.random.below(3);
            self.fill(&mut scope, steps);
        }
        let mut inputs = vec![Value::Input(counter)];
        inputs.extend(self.picks(&scope, 2).into_iter().filter(|&value| scope.is_certain(value)));
        let op = Op::Again { salt: self.random.next() as i32, early: self.random.once_in(2) };
        let (kind, output) = (self.leaf_kind(op), self.random.of(&Type::PREDICATES));
        let after = self.after(&scope, false);
        scope.graph.outputs = self.add(&mut scope, kind, inputs, vec![output], after);
        scope.graph
    }

    fn body(&mut self, kinds: &[Type], outputs: &[Type], counter: usize, depth: usize) -> Graph {
        let mut scope = Scope::of(kinds, depth);
        let (less, after) = (self.leaf_kind(Op::Less), self.after(&scope, false));
        let next = self.add(&mut scope, less, vec![Value::Input(counter)], vec![Type::Int], after)[0];
        let steps = self.random.below(6 - depth);
        self.fill(&mut scope, steps);
        for (v, &kind) in outputs.iter().enumerate() {
            let value = match self.random.below(6) {
                _ if v == counter => next,
                // Stays as it is.
                0 => Value::Input(v),
                // Takes another one's place, as in a swap.
                1 => {
                    let same: Vec<usize> = (0..kinds.len()).filter(|&i| kinds[i] == kind).collect();
                    Value::Input(self.random.of(&same))
                }
                _ => self.certain(&mut scope, kind),
            };
            scope.graph.outputs.push(value);
        }
        scope.graph
    }
}
