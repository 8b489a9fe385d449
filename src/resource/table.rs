//! A lookup table: integers or byte strings to rows of one shape.
#![forbid(unsafe_code)]

use crate::base::{Code, Desc, Error, Result};
use crate::sync::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Int64,
    Bytes,
}

impl KeyKind {
    pub fn name(self) -> &'static str {
        match self {
            KeyKind::Int64 => "64-bit integers",
            KeyKind::Bytes => "byte strings",
        }
    }
}

/// One key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableKey {
    Int64(i64),
    Bytes(Box<[u8]>),
}

/// The keys of a call.
#[derive(Clone, Copy, Debug)]
pub enum Keys<'a> {
    Int64(&'a [i64]),
    Bytes(&'a [&'a [u8]]),
}

impl Keys<'_> {
    pub fn len(&self) -> usize {
        match self {
            Keys::Int64(keys) => keys.len(),
            Keys::Bytes(keys) => keys.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kind(&self) -> KeyKind {
        match self {
            Keys::Int64(_) => KeyKind::Int64,
            Keys::Bytes(_) => KeyKind::Bytes,
        }
    }
}

/// FNV-1a with a final mixing round: keys are short, and a caller that may insert may fill the memory anyway.
#[derive(Clone, Copy, Debug)]
struct KeyHasher(u64);

impl Default for KeyHasher {
    fn default() -> Self {
        KeyHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_i64(&mut self, key: i64) {
        self.0 = (self.0 ^ key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ mixed >> 32
    }
}

type Map<K> = HashMap<K, usize, BuildHasherDefault<KeyHasher>>;

enum TableIndex {
    Int64(Map<i64>),
    Bytes(Map<Box<[u8]>>),
}

struct TableState {
    index: TableIndex,
    /// The rows, in the order of the keys' insertion.
    rows: Vec<u8>,
    key_bytes: usize,
}

pub struct LookupTable {
    serial: u64,
    kind: KeyKind,
    row: Desc,
    row_bytes: usize,
    state: Mutex<TableState>,
}

impl LookupTable {
    pub fn new(kind: KeyKind, row: Desc) -> Result<LookupTable> {
        let row = row.check().map_err(|error| error.within("desc->row"))?;
        let index = match kind {
            KeyKind::Int64 => TableIndex::Int64(Map::default()),
            KeyKind::Bytes => TableIndex::Bytes(Map::default()),
        };
        let state = TableState { index, rows: Vec::new(), key_bytes: 0 };
        Ok(LookupTable { serial: super::next_serial(), kind, row, row_bytes: row.bytes()?, state: Mutex::new(state) })
    }

    /// A number that is unique among the objects that nodes of graphs read and write.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// The descriptor of a row.
    pub fn row(&self) -> &Desc {
        &self.row
    }

    pub fn len(&self) -> usize {
        self.state.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of rows and keys.
    pub fn bytes(&self) -> usize {
        let state = self.state.lock();
        state.rows.len() + state.key_bytes
    }

    fn check(&self, keys: &Keys<'_>, what: &str, bytes: usize) -> Result<()> {
        if keys.kind() != self.kind {
            let (want, have) = (self.kind.name(), keys.kind().name());
            return Err(Error::invalid(format!("keys: expected {want}, got {have}")));
        }
        let wanted = keys.len().checked_mul(self.row_bytes);
        if wanted != Some(bytes) {
            let (rows, row) = (keys.len(), self.row.text());
            return Err(Error::invalid(format!("{what} has {bytes} bytes, expected {rows} rows of {row}")));
        }
        Ok(())
    }

    /// Inserts rows, in the order of the keys; an existing key gets the new row. All or, if memory is short, none.
    pub fn insert(&self, keys: Keys<'_>, rows: &[u8]) -> Result<()> {
        self.check(&keys, "rows", rows.len())?;
        let mut owned = own(&keys)?.into_iter();
        let mut state = self.state.lock();
        state.reserve(&keys, rows.len())?;
        for i in 0..keys.len() {
            let row = &rows[i * self.row_bytes..(i + 1) * self.row_bytes];
            let key = owned.next();
            match (state.place_of(&keys, i), key) {
                (Some(at), _) => state.rows[at * self.row_bytes..(at + 1) * self.row_bytes].copy_from_slice(row),
                (None, Some(key)) => state.add(key, row),
                (None, None) => return Err(Error::internal("a key less")),
            }
        }
        Ok(())
    }

    /// Copies the row of each key to `out`, or `default` (zeros without it) for a missing key; `found` tells which.
    /// Returns the number found.
    pub fn find(
        &self,
        keys: Keys<'_>,
        default: Option<&[u8]>,
        out: &mut [u8],
        mut found: Option<&mut [u8]>,
    ) -> Result<usize> {
        self.check(&keys, "rows", out.len())?;
        if let Some(default) = default.filter(|default| default.len() != self.row_bytes) {
            let row = self.row.text();
            return Err(Error::invalid(format!("default_row has {} bytes, expected those of {row}", default.len())));
        }
        let state = self.state.lock();
        let mut hits = 0;
        for i in 0..keys.len() {
            let at = state.place_of(&keys, i);
            let to = &mut out[i * self.row_bytes..(i + 1) * self.row_bytes];
            match (at, default) {
                (Some(at), _) => to.copy_from_slice(&state.rows[at * self.row_bytes..(at + 1) * self.row_bytes]),
                (None, Some(default)) => to.copy_from_slice(default),
                (None, None) => to.fill(0),
            }
            if let Some(flag) = found.as_mut().and_then(|found| found.get_mut(i)) {
                *flag = u8::from(at.is_some());
            }
            hits += usize::from(at.is_some());
        }
        Ok(hits)
    }

    /// All keys in order, and the row of each, as of one moment.
    pub fn export(&self) -> Result<(Vec<TableKey>, Vec<u8>)> {
        let state = self.state.lock();
        let short = |_| Error::exhausted("a table's contents", state.rows.len());
        let (mut keys, mut rows) = (Vec::new(), Vec::new());
        keys.try_reserve_exact(state.len()).map_err(short)?;
        rows.try_reserve_exact(state.rows.len()).map_err(short)?;
        match &state.index {
            TableIndex::Int64(map) => keys.extend(map.iter().map(|(&key, &at)| (TableKey::Int64(key), at))),
            TableIndex::Bytes(map) => keys.extend(map.iter().map(|(key, &at)| (TableKey::Bytes(key.clone()), at))),
        }
        keys.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        keys.iter()
            .for_each(|&(_, at)| rows.extend_from_slice(&state.rows[at * self.row_bytes..(at + 1) * self.row_bytes]));
        Ok((keys.into_iter().map(|(key, _)| key).collect(), rows))
    }
}

impl TableState {
    fn len(&self) -> usize {
        match &self.index {
            TableIndex::Int64(map) => map.len(),
            TableIndex::Bytes(map) => map.len(),
        }
    }

    fn place_of(&self, keys: &Keys<'_>, i: usize) -> Option<usize> {
        match (&self.index, keys) {
            (TableIndex::Int64(map), Keys::Int64(keys)) => map.get(&keys[i]).copied(),
            (TableIndex::Bytes(map), Keys::Bytes(keys)) => map.get(keys[i]).copied(),
            _ => None,
        }
    }

    fn reserve(&mut self, keys: &Keys<'_>, bytes: usize) -> Result<()> {
        let short = |_| Error::new(Code::ResourceExhausted, format!("out of memory: {} rows of a table", keys.len()));
        self.rows.try_reserve(bytes).map_err(|_| Error::exhausted("the rows of a table", bytes))?;
        match &mut self.index {
            TableIndex::Int64(map) => map.try_reserve(keys.len()).map_err(short),
            TableIndex::Bytes(map) => map.try_reserve(keys.len()).map_err(short),
        }
    }

    /// Room was made before.
    fn add(&mut self, key: TableKey, row: &[u8]) {
        let at = self.len();
        match (&mut self.index, key) {
            (TableIndex::Int64(map), TableKey::Int64(key)) => {
                map.insert(key, at);
                self.key_bytes += size_of::<i64>();
            }
            (TableIndex::Bytes(map), TableKey::Bytes(key)) => {
                self.key_bytes += key.len();
                map.insert(key, at);
            }
            // `LookupTable::check` has refused this case.
            _ => return,
        }
        self.rows.extend_from_slice(row);
    }
}

/// Copies of the keys, made before anything changes.
fn own(keys: &Keys<'_>) -> Result<Vec<TableKey>> {
    let mut owned = Vec::new();
    owned.try_reserve_exact(keys.len()).map_err(|_| Error::exhausted("the keys of a table", keys.len()))?;
    match keys {
        Keys::Int64(keys) => owned.extend(keys.iter().map(|&key| TableKey::Int64(key))),
        Keys::Bytes(keys) => {
            for key in *keys {
                let mut copy = Vec::new();
                copy.try_reserve_exact(key.len()).map_err(|_| Error::exhausted("a key of a table", key.len()))?;
                copy.extend_from_slice(key);
                owned.push(TableKey::Bytes(copy.into_boxed_slice()));
            }
        }
    }
    Ok(owned)
}
