//! Random specs.
//!
//! A value is *certain* if nothing can make it dead. Sub-graphs give only certain values, and mostly certain ones are
//! used, so that most of a graph does something; the others are there for what deadness does on its way.

mod diamonds;
mod regions;

use super::interpret::{Useless, interpret};
use super::ops;
use super::random::Random;
use super::spec::{Data, Effort, Graph, Kind, Manner, Node, Op, Spec, Type, Value};

/// What may be in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Cond, case and while.
    pub structured: bool,
    /// Switch and merge, in diamonds, and values that may be dead.
    pub unstructured: bool,
    /// Merges that may have two live inputs.
    pub conflicts: bool,
    /// Leaves that are done later than their calls.
    pub later: bool,
    /// Values whose shape only a run knows.
    pub lists: bool,
}

pub const PLAIN: Profile =
    Profile { structured: false, unstructured: false, conflicts: false, later: false, lists: false };
pub const STRUCTURED: Profile = Profile { structured: true, ..PLAIN };
pub const DIAMONDS: Profile = Profile { unstructured: true, ..PLAIN };
pub const EVERYTHING: Profile = Profile { structured: true, unstructured: true, ..PLAIN };
pub const CONFLICTS: Profile = Profile { conflicts: true, ..EVERYTHING };
pub const PLAIN_LATER: Profile = Profile { later: true, ..PLAIN };
pub const STRUCTURED_LATER: Profile = Profile { later: true, ..STRUCTURED };
pub const LATER: Profile = Profile { later: true, ..EVERYTHING };

pub const LISTS: Profile = Profile { lists: true, ..EVERYTHING };
pub const LISTS_STRUCTURED: Profile = Profile { lists: true, ..STRUCTURED };
pub const LISTS_CONFLICTS: Profile = Profile { lists: true, ..CONFLICTS };
pub const LISTS_LATER: Profile = Profile { lists: true, ..LATER };

/// Sets of inputs per graph.
const SETS: usize = 3;
const DEEPEST: usize = 3;
/// In one run, so that a few graphs do not take as long as all others.
const MOST_CALLS: u64 = 1_000;

/// The spec of this seed.
pub fn generate(seed: u64, profile: Profile) -> Spec {
    let attempt = |attempt: u64| {
        let mut generator = Generator { random: Random::new(seed ^ attempt << 48), next_id: 0, profile };
        let spec = generator.spec(seed);
        let ends = (0..SETS).all(|set| match interpret(&spec, set) {
            Ok(outcome) => outcome.tallies.iter().map(|tally| tally.calls).sum::<u64>() <= MOST_CALLS,
            Err(Useless::TooLong) => false,
            Err(Useless::DeadLoop) => panic!("a value that was taken to be certain is dead: {spec}"),
        });
        ends.then_some(spec)
    };
    (0..).find_map(attempt).expect("some attempt gives a graph that is not too long")
}

struct Generator {
    random: Random,
    next_id: usize,
    profile: Profile,
}

/// A graph in the making.
#[derive(Default)]
struct Scope {
    graph: Graph,
    known: Vec<Known>,
    /// Of each node: whether it is certain to be live.
    certain: Vec<bool>,
    depth: usize,
}

#[derive(Clone, Copy)]
struct Known {
    value: Value,
    kind: Type,
    certain: bool,
}

impl Scope {
    fn of(inputs: &[Type], depth: usize) -> Scope {
        let known = |(i, &kind): (usize, &Type)| Known { value: Value::Input(i), kind, certain: true };
        Scope {
            graph: Graph { inputs: inputs.to_vec(), ..Graph::default() },
            known: inputs.iter().enumerate().map(known).collect(),
            depth,
            ..Scope::default()
        }
    }

    fn is_certain(&self, value: Value) -> bool {
        self.known.iter().any(|known| known.value == value && known.certain)
    }

    fn type_of(&self, value: Value) -> Type {
        self.graph.type_of(value)
    }
}

impl Generator {
    fn spec(&mut self, seed: u64) -> Spec {
        let kinds: Vec<Type> = (0..self.random.below(5)).map(|_| self.any_type()).collect();
        let mut scope = Scope::of(&kinds, 0);
        let steps = if self.profile == PLAIN || self.profile == PLAIN_LATER {
            self.random.below(50) + 3
        } else {
            self.random.below(18) + 2
        };
        self.fill(&mut scope, steps);
        let allow_absent = self.profile.unstructured && self.random.once_in(2);
        for known in scope.known.clone() {
            let usable = known.certain || allow_absent;
            let times = if usable { self.random.of(&[0, 0, 0, 1, 1, 2]) } else { 0 };
            scope.graph.outputs.extend(vec![known.value; times]);
        }
        let inputs = (0..SETS).map(|_| kinds.iter().map(|&kind| self.input(kind)).collect()).collect();
        let hop_ns = self.random.of(&[Some(0), Some(0), Some(500), None]);
        Spec { seed, graph: scope.graph, inputs, hop_ns, allow_absent, num_ids: self.next_id }
    }

    fn any_type(&mut self) -> Type {
        if self.profile.lists { self.random.of(&Type::WITH_LISTS) } else { self.random.of(&Type::ALL) }
    }

    fn data(&mut self, kind: Type) -> Data {
        self.data_of(kind, kind.len())
    }

    /// As `data`, for a list of any length.
    fn input(&mut self, kind: Type) -> Data {
        let len = if kind == Type::List { self.random.of(&[0, 0, 1, 2, 3, 7, 20]) } else { kind.len() };
        self.data_of(kind, len)
    }

    fn data_of(&mut self, kind: Type, len: usize) -> Data {
        let items: Vec<i32> = (0..len).map(|_| ops::narrow(kind, self.random.next() as i32)).collect();
        Data::new(kind, &items)
    }

    /// Adds things to a graph.
    fn fill(&mut self, scope: &mut Scope, steps: usize) {
        for _ in 0..steps {
            let Profile { structured, unstructured, conflicts, .. } = self.profile;
            let shallow = scope.depth < DEEPEST;
            match self.random.below(16) {
                0 => drop(self.constant(scope)),
                1 => drop(self.add_anywhere(scope, Kind::Task, vec![], vec![])),
                2 => {
                    let inputs = self.picks(scope, 2);
                    self.leaf(scope, inputs, vec![]);
                }
                3..=5 if structured && shallow => drop(self.region(scope, &[])),
                6..=7 if unstructured => self.diamond(scope),
                8 if conflicts => self.stray_merge(scope),
                _ => {
                    let inputs = self.picks(scope, 3);
                    let outputs = self.types(2);
                    let outputs = if outputs.is_empty() { vec![Type::Five] } else { outputs };
                    self.leaf(scope, inputs, outputs);
                }
            }
        }
    }

    /// Up to `most` types.
    fn types(&mut self, most: usize) -> Vec<Type> {
        (0..self.random.below(most + 1)).map(|_| self.any_type()).collect()
    }

    /// Adds a node; gives its outputs. A merge that is added by this is not certain.
    fn add(
        &mut self,
        scope: &mut Scope,
        mut kind: Kind,
        inputs: Vec<Value>,
        outputs: Vec<Type>,
        after: Vec<usize>,
    ) -> Vec<Value> {
        let place = scope.graph.nodes.len();
        let live = inputs.iter().all(|&value| scope.is_certain(value)) && after.iter().all(|&n| scope.certain[n]);
        let merge = matches!(kind, Kind::Merge);
        let certain = live && !merge && !matches!(kind, Kind::Switch);
        let values: Vec<Value> = (0..outputs.len()).map(|o| Value::Node(place, o)).collect();
        let known = |(&value, &kind): (&Value, &Type)| Known { value, kind, certain };
        scope.known.extend(values.iter().zip(&outputs).map(known));
        scope.certain.push(live && !merge);
        let id = self.next_id;
        self.next_id += 1;
        if let Kind::Leaf { manner, .. } = &mut kind {
            let takes = inputs.iter().map(|&value| scope.type_of(value));
            if takes.chain(outputs.iter().copied()).any(|kind| kind == Type::List) {
                // Open arguments are not for kernels that complete later.
                *manner = Manner::Now;
            }
        }
        scope.graph.nodes.push(Node { id, kind, inputs, after, outputs });
        values
    }

    /// As `add`, behind some other node now and then.
    fn add_anywhere(&mut self, scope: &mut Scope, kind: Kind, inputs: Vec<Value>, outputs: Vec<Type>) -> Vec<Value> {
        let any = self.profile.unstructured && self.random.once_in(8);
        let after = self.after(scope, any);
        self.add(scope, kind, inputs, outputs, after)
    }

    /// No node, mostly, else one or two that are certain; or any.
    fn after(&mut self, scope: &Scope, any: bool) -> Vec<usize> {
        let is_node = |n: &usize| !matches!(scope.graph.nodes[*n].kind, Kind::Constant(_));
        let nodes: Vec<usize> = (0..scope.certain.len()).filter(is_node).filter(|&n| any || scope.certain[n]).collect();
        if nodes.is_empty() {
            return vec![];
        }
        (0..self.random.of(&[0, 0, 0, 1, 1, 2])).map(|_| self.random.of(&nodes)).collect()
    }

    fn constant(&mut self, scope: &mut Scope) -> Value {
        let kind = self.any_type();
        let data = self.data(kind);
        self.add(scope, Kind::Constant(vec![data]), vec![], vec![kind], vec![])[0]
    }

    fn leaf_kind(&mut self, op: Op) -> Kind {
        let effort = match self.random.below(12) {
            0 | 1 => Effort::Region,
            2 | 3 => Effort::Spin(self.random.below(4) as u32 + 1),
            _ => Effort::Plain,
        };
        let manner = match self.profile.later {
            // Each of them makes its run wait, and most of the time nothing but that.
            true if !self.random.once_in(4) => Manner::Now,
            true => self.random.of(&[Manner::AtOnce, Manner::Later, Manner::ByAnother, Manner::Blocking]),
            false => Manner::Now,
        };
        Kind::Leaf {
            op,
            effort,
            manner,
            in_place: self.random.once_in(2),
            cost_ns: self.random.of(&[0, 0, 20, 10_000]),
        }
    }

    fn mix(&mut self) -> Kind {
        let salt = self.random.next() as i32;
        self.leaf_kind(Op::Mix { salt })
    }

    fn leaf(&mut self, scope: &mut Scope, inputs: Vec<Value>, outputs: Vec<Type>) -> Vec<Value> {
        let kind = self.mix();
        self.add_anywhere(scope, kind, inputs, outputs)
    }

    /// Up to `most` values, mostly certain ones.
    fn picks(&mut self, scope: &Scope, most: usize) -> Vec<Value> {
        (0..self.random.below(most + 1)).filter_map(|_| self.pick(scope, |_| true)).collect()
    }

    /// A value with a type that fits, if there is one; mostly a certain one, and rather one of the last.
    fn pick(&mut self, scope: &Scope, fits: impl Fn(Type) -> bool) -> Option<Value> {
        let any = self.profile.unstructured && self.random.once_in(12);
        let all: Vec<Value> = scope
            .known
            .iter()
            .filter(|known| (any || known.certain) && fits(known.kind))
            .map(|known| known.value)
            .collect();
        let last = &all[all.len().saturating_sub(6)..];
        let from = if self.random.once_in(2) { last } else { &all };
        (!from.is_empty()).then(|| self.random.of(from))
    }

    /// A certain value of this type; made if there is none, and now and then anyway.
    fn certain(&mut self, scope: &mut Scope, kind: Type) -> Value {
        let all: Vec<Value> =
            scope.known.iter().filter(|known| known.certain && known.kind == kind).map(|known| known.value).collect();
        if !all.is_empty() && !self.random.once_in(4) {
            return self.random.of(&all);
        }
        if self.random.once_in(5) {
            let data = self.data(kind);
            return self.add(scope, Kind::Constant(vec![data]), vec![], vec![kind], vec![])[0];
        }
        let inputs = self.picks(scope, 3).into_iter().filter(|&value| scope.is_certain(value)).collect();
        let (mix, after) = (self.mix(), self.after(scope, false));
        self.add(scope, mix, inputs, vec![kind], after)[0]
    }
}
