//! Random structured programs of one integer each, and what they compute.

use crate::kit::random::Random;

/// A list of statements, each of which adds values to those that came in. Results are indices of values.
#[derive(Debug)]
pub struct Block {
    pub statements: Vec<Statement>,
    pub results: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Add,
    Sub,
    Mul,
    Xor,
    Less,
    Negate,
    /// The first argument; it waits for the second.
    First,
    /// Whether the last three bits of the first one are below the number and the second one not divisible by 4.
    Goes(i32),
    Increment,
}

#[derive(Debug)]
pub enum Statement {
    Op(Op, Vec<usize>),
    Constant(i32),
    /// The blocks see the inputs and nothing else; as many results as one of them has.
    Cond {
        predicate: usize,
        inputs: Vec<usize>,
        sides: [Block; 2],
    },
    /// Variable 0 counts. Results are the variables of which there is an exit.
    While(Box<While>),
}

#[derive(Debug)]
pub struct While {
    pub variables: Vec<usize>,
    pub invariants: Vec<usize>,
    pub parallel_iterations: u32,
    /// Of variables and invariants; its first result says whether the loop goes on.
    pub condition: Block,
    /// Of variables, invariants, and these values of the condition.
    pub shared: Vec<usize>,
    pub body: Block,
    pub exits: Vec<usize>,
}

impl Op {
    pub fn compute(self, x: &[i32]) -> i32 {
        match self {
            Op::Add => x[0].wrapping_add(x[1]),
            Op::Sub => x[0].wrapping_sub(x[1]),
            Op::Mul => x[0].wrapping_mul(x[1]).wrapping_add(1),
            Op::Xor => x[0] ^ x[1].wrapping_mul(5),
            Op::Less => i32::from(x[0] < x[1]),
            Op::Negate => x[0].wrapping_neg(),
            Op::First => x[0],
            Op::Goes(limit) => i32::from(x[0] & 7 < limit && x[1] % 4 != 0),
            Op::Increment => x[0].wrapping_add(1),
        }
    }
}

pub fn run(block: &Block, inputs: &[i32]) -> Vec<i32> {
    let values = values(block, inputs);
    block.results.iter().map(|&result| values[result]).collect()
}

fn values(block: &Block, inputs: &[i32]) -> Vec<i32> {
    let mut values = inputs.to_vec();
    for statement in &block.statements {
        let of = |list: &[usize]| list.iter().map(|&i| values[i]).collect::<Vec<i32>>();
        let made = match statement {
            Statement::Op(op, args) => vec![op.compute(&of(args))],
            Statement::Constant(value) => vec![*value],
            Statement::Cond { predicate, inputs, sides } => {
                run(&sides[usize::from(values[*predicate] != 0)], &of(inputs))
            }
            Statement::While(looped) => run_while(looped, of(&looped.variables), &of(&looped.invariants)),
        };
        values.extend(made);
    }
    values
}

fn run_while(looped: &While, mut variables: Vec<i32>, invariants: &[i32]) -> Vec<i32> {
    loop {
        let inputs = [&variables[..], invariants].concat();
        let tested = values(&looped.condition, &inputs);
        if tested[looped.condition.results[0]] == 0 {
            return looped.exits.iter().map(|&exit| variables[exit]).collect();
        }
        let shared: Vec<i32> = looped.shared.iter().map(|&value| tested[value]).collect();
        variables = run(&looped.body, &[inputs, shared].concat());
    }
}

/// Draws a program with so many inputs. `is_pure`: its bodies may use what conditions compute.
pub fn draw(random: &mut Random, inputs: usize, is_pure: bool) -> Block {
    let mut draw = Draw { random, left: 14, is_pure };
    let mut block = draw.block(inputs, 0, 6);
    let values = count(&block, inputs);
    block.results = (0..3).map(|i| values - 1 - (i * 2) % values).collect();
    block
}

fn count(block: &Block, inputs: usize) -> usize {
    inputs + block.statements.iter().map(made).sum::<usize>()
}

fn made(statement: &Statement) -> usize {
    match statement {
        Statement::Op(..) | Statement::Constant(_) => 1,
        Statement::Cond { sides, .. } => sides[0].results.len(),
        Statement::While(looped) => looped.exits.len(),
    }
}

struct Draw<'a> {
    random: &'a mut Random,
    left: usize,
    is_pure: bool,
}

impl Draw<'_> {
    /// Without results.
    fn block(&mut self, inputs: usize, depth: usize, most: usize) -> Block {
        let mut block = Block { statements: Vec::new(), results: Vec::new() };
        let mut values = inputs;
        let length = 1 + self.random.below(most);
        for _ in 0..length {
            let statement = self.statement(values, depth);
            values += made(&statement);
            block.statements.push(statement);
        }
        block
    }

    fn several(&mut self, values: usize, most: usize) -> Vec<usize> {
        (0..self.random.below(most + 1)).map(|_| self.random.below(values)).collect()
    }

    fn statement(&mut self, values: usize, depth: usize) -> Statement {
        let kind = self.random.below(10);
        self.left = self.left.saturating_sub(1);
        if kind < 5 || depth >= 3 || self.left == 0 || values == 0 {
            return self.simple(values);
        }
        if kind < 7 {
            let inputs = self.several(values, 3);
            let results = 1 + self.random.below(2);
            let sides = [(); 2].map(|()| self.block_with_results(inputs.len(), depth + 1, results));
            return Statement::Cond { predicate: self.random.below(values), inputs, sides };
        }
        let mut variables = vec![self.random.below(values)];
        variables.extend(self.several(values, 2));
        let invariants = self.several(values, 2);
        let given = variables.len() + invariants.len();
        let inner = if self.random.once_in(4) { depth + 1 } else { 9 };
        let mut condition = self.block(given, inner, 2);
        let decides = self.random.below(count(&condition, given));
        let limit = 1 + self.random.below(4) as i32;
        condition.statements.push(Statement::Op(Op::Goes(limit), vec![0, decides]));
        let of_condition = count(&condition, given);
        condition.results = vec![of_condition - 1];
        let shared = if self.is_pure && self.random.once_in(3) {
            (0..1 + self.random.below(2)).map(|_| given + self.random.below(of_condition - given)).collect()
        } else {
            Vec::new()
        };
        let inside = given + shared.len();
        let mut body = self.block_with_results(inside, depth + 1, variables.len() - 1);
        let counted = count(&body, inside);
        body.statements.push(Statement::Op(Op::Increment, vec![0]));
        body.results.insert(0, counted);
        let mut exits: Vec<usize> = (0..variables.len()).filter(|_| !self.random.once_in(4)).collect();
        if exits.is_empty() && self.random.once_in(2) {
            exits = vec![0, 0];
        }
        Statement::While(Box::new(While {
            variables,
            invariants,
            parallel_iterations: 1 + self.random.below(4) as u32,
            condition,
            shared,
            body,
            exits,
        }))
    }

    fn block_with_results(&mut self, inputs: usize, depth: usize, results: usize) -> Block {
        let mut block = self.block(inputs, depth, 3);
        let values = count(&block, inputs);
        block.results = (0..results).map(|_| self.random.below(values)).collect();
        block
    }

    fn simple(&mut self, values: usize) -> Statement {
        if values == 0 || self.random.once_in(6) {
            return Statement::Constant(self.random.below(9) as i32 - 3);
        }
        let op = self.random.of(&[Op::Add, Op::Sub, Op::Mul, Op::Xor, Op::Less, Op::Negate]);
        let args = if matches!(op, Op::Negate) { 1 } else { 2 };
        Statement::Op(op, (0..args).map(|_| self.random.below(values)).collect())
    }
}
