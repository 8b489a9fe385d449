//! Switches whose sides meet again at merges, with whatever may lie between; and merges of anything.

use super::super::spec::{Kind, Type, Value};
use super::{Generator, Scope};

impl Generator {
    /// Switches some values, does things on both sides, and merges.
    pub(super) fn diamond(&mut self, scope: &mut Scope) {
        let predicate = self.predicate(scope);
        let mut values: Vec<Value> = (0..self.random.below(3) + 1).filter_map(|_| self.pick(scope, |_| true)).collect();
        if values.is_empty() {
            values.push(self.constant(scope));
        }
        let certain = scope.is_certain(predicate) && values.iter().all(|&value| scope.is_certain(value));
        let sides = self.split(scope, predicate, &values, 2);
        for _ in 0..self.random.below(3) + 1 {
            self.join(scope, &sides, certain);
        }
    }

    /// Switches the values by the predicate, and some of them again. What is in one of the lists that come out is live
    /// only if nothing in the others is; and if all that went in is live, so is all of one list.
    fn split(&mut self, scope: &mut Scope, predicate: Value, values: &[Value], levels: usize) -> Vec<Vec<Value>> {
        let mut switched = Vec::new();
        for &value in values {
            let (kind, after) = (scope.type_of(value), self.after(scope, false));
            switched.push(self.add(scope, Kind::Switch, vec![value, predicate], vec![kind; 2], after));
        }
        let mut sides = Vec::new();
        for side in 0..2 {
            let mut own: Vec<Value> = switched.iter().map(|outputs| outputs[side]).collect();
            for _ in 0..self.random.below(4) {
                let more = self.on_side(scope, &own);
                own.extend(more);
            }
            if levels == 0 || !self.random.once_in(3) {
                sides.push(own);
                continue;
            }
            let kind = self.random.of(&Type::PREDICATES);
            let decided = self.convert(scope, &own, kind);
            let again: Vec<Value> = (0..self.random.below(2) + 1).map(|_| self.random.of(&own)).collect();
            let inner = self.split(scope, decided, &again, levels - 1);
            if self.random.once_in(2) {
                sides.extend(inner);
            } else {
                own.push(self.join(scope, &inner, false));
                sides.push(own);
            }
        }
        sides
    }

    /// A node that is live if the values of this side are.
    fn on_side(&mut self, scope: &mut Scope, own: &[Value]) -> Vec<Value> {
        let shallow = scope.depth < super::DEEPEST;
        if self.profile.structured && shallow && self.random.once_in(5) {
            let values = self.region(scope, own);
            let node = scope.graph.nodes.last().expect("the region");
            let exact = node.inputs.iter().all(|&value| own.contains(&value) || scope.is_certain(value))
                && node.after.iter().all(|&n| scope.certain[n]);
            // Else it may be dead although the side is live.
            return if exact { values } else { vec![] };
        }
        let mut certain: Vec<Value> =
            self.picks(scope, 2).into_iter().filter(|&value| scope.is_certain(value)).collect();
        let kinds = [0, 1].map(|_| self.any_type());
        let kinds = kinds[..self.random.below(2) + 1].to_vec();
        let mut after = self.after(scope, false);
        // What it waits for may make it dead as well as what it takes: but a switch is never dead.
        let is_switch = |n: usize| matches!(scope.graph.nodes[n].kind, Kind::Switch);
        match self.random.of(own) {
            Value::Node(n, _) if self.random.once_in(3) && !is_switch(n) => after.push(n),
            value => certain.push(value),
        }
        self.random.shuffle(&mut certain);
        let mix = self.mix();
        self.add(scope, mix, certain, kinds, after)
    }

    /// A value of this type that is live if the values of this side are.
    fn convert(&mut self, scope: &mut Scope, own: &[Value], kind: Type) -> Value {
        let same: Vec<Value> = own.iter().copied().filter(|&value| scope.type_of(value) == kind).collect();
        if !same.is_empty() && !self.random.once_in(4) {
            return self.random.of(&same);
        }
        let (mix, input) = (self.mix(), self.random.of(own));
        self.add(scope, mix, vec![input], vec![kind], vec![])[0]
    }

    /// Merges one value of each list; gives the value.
    fn join(&mut self, scope: &mut Scope, sides: &[Vec<Value>], certain: bool) -> Value {
        let first = self.random.of(&sides[0]);
        let kind = scope.type_of(first);
        let mut inputs: Vec<Value> = sides.iter().map(|own| self.convert(scope, own, kind)).collect();
        self.random.shuffle(&mut inputs);
        // Whatever it waits for may be dead.
        let any = self.random.once_in(2);
        let after = self.after(scope, any);
        let values = self.add(scope, Kind::Merge, inputs, vec![kind, Type::Int], after);
        if certain {
            scope.known.iter_mut().filter(|known| values.contains(&known.value)).for_each(|known| known.certain = true);
            *scope.certain.last_mut().expect("the merge") = true;
        }
        values[0]
    }

    /// A merge of anything: dead, or live, or one too many.
    pub(super) fn stray_merge(&mut self, scope: &mut Scope) {
        let Some(known) = (!scope.known.is_empty()).then(|| self.random.of(&scope.known)) else { return };
        let same: Vec<Value> =
            scope.known.iter().filter(|other| other.kind == known.kind).map(|other| other.value).collect();
        let inputs = (0..self.random.below(3) + 1).map(|_| self.random.of(&same)).collect();
        let after = self.after(scope, true);
        self.add(scope, Kind::Merge, inputs, vec![known.kind, Type::Int], after);
    }
}
