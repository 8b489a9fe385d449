//! Control messages: 64 bytes each, and what a rank has heard of the others.
#![forbid(unsafe_code)]

use super::algorithm::Wanted;
use super::transport::{MESSAGE_BYTES, Message};
use crate::base::text::head;
use crate::base::{Code, Error};
use std::collections::BTreeMap;

const GIVE_UP: u8 = 1;
const ASK: u8 = 2;
const STATE: u8 = 3;
const CHECK: u8 = 4;

/// The offset of the text, and the bytes of it in one message.
const TEXT_AT: usize = 24;
const TEXT: usize = MESSAGE_BYTES - TEXT_AT;
/// A text of a failure takes so many messages.
const MOST_PIECES: usize = 8;

/// A message.
#[derive(Clone, Debug)]
pub enum ControlMessage {
    /// This rank's run has ended, and why.
    GiveUp { code: Code, text: String },
    /// How far have you come?
    Ask,
    /// Collectives that this rank has begun.
    State { sequence: u64 },
}

fn plain(kind: u8, sequence: u64, digest: u64, text: &str) -> Message {
    let mut bytes = [0; MESSAGE_BYTES];
    bytes[0] = kind;
    bytes[8..16].copy_from_slice(&sequence.to_le_bytes());
    bytes[16..24].copy_from_slice(&digest.to_le_bytes());
    let text = head(text, TEXT).as_bytes();
    bytes[TEXT_AT..TEXT_AT + text.len()].copy_from_slice(text);
    bytes
}

fn number(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(word)
}

fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The messages that say why a rank gave up.
pub fn give_up(error: &Error) -> Vec<Message> {
    let mut rest = head(error.message(), TEXT * MOST_PIECES);
    let mut all = Vec::new();
    loop {
        let piece = head(rest, TEXT);
        rest = &rest[piece.len()..];
        let mut bytes = plain(GIVE_UP, error.code().status() as u32 as u64, 0, piece);
        // Whether more of the text comes.
        bytes[1] = u8::from(!rest.is_empty());
        all.push(bytes);
        if rest.is_empty() || piece.is_empty() {
            return all;
        }
    }
}

/// The messages that say what collective `sequence` of this rank is.
pub fn check(sequence: u64, digest: u64, text: &str) -> impl Iterator<Item = Message> {
    let mut rest = Some(head(text, TEXT * MOST_PIECES));
    std::iter::from_fn(move || {
        let piece = head(rest?, TEXT);
        rest = rest.map(|rest| &rest[piece.len()..]).filter(|rest| !rest.is_empty() && !piece.is_empty());
        let mut bytes = plain(CHECK, sequence, digest, piece);
        bytes[1] = u8::from(rest.is_some());
        Some(bytes)
    })
}

impl ControlMessage {
    /// The message; the first one of a `GiveUp`.
    pub fn bytes(&self) -> Message {
        match self {
            ControlMessage::GiveUp { code, text } => plain(GIVE_UP, code.status() as u32 as u64, 0, text),
            ControlMessage::Ask => plain(ASK, 0, 0, ""),
            ControlMessage::State { sequence } => plain(STATE, *sequence, 0, ""),
        }
    }
}

/// The same for operations that belong together.
pub fn digest(wanted: &Wanted) -> u64 {
    let reduction = wanted.reduction.map_or(0, |reduction| reduction as u64);
    let words = [
        wanted.op as u64,
        reduction,
        u64::from(wanted.dtype),
        wanted.peer as u64,
        wanted.count as u64,
        u64::from(wanted.is_deterministic) | u64::from(wanted.is_on_device) << 1,
        wanted.nest,
        wanted.descs,
    ];
    words.iter().fold(FNV, |hash, word| (hash ^ word).wrapping_mul(FNV_PRIME))
}

/// FNV-1a: the same on every rank, whatever its machine.
const FNV: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

pub fn hash(bytes: &[u8]) -> u64 {
    hash_on(FNV, bytes)
}

/// The hash of these bytes behind others.
pub fn hash_on(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME))
}

/// Reports of the other ranks.
#[derive(Debug)]
pub struct PeerReports {
    /// Pieces of a text that goes on, by rank.
    pieces: Vec<String>,
    /// The same of what the rank before this one does.
    shown: String,
    /// Of the rank before this one, and of this rank, by number: what is not compared yet.
    theirs: BTreeMap<u64, (u64, String)>,
    own: BTreeMap<u64, (u64, String)>,
    /// Compared so far.
    agreed: u64,
    contradiction: Option<(u64, String, String)>,
}

impl PeerReports {
    pub fn new(size: usize) -> PeerReports {
        let (theirs, own) = (BTreeMap::new(), BTreeMap::new());
        PeerReports {
            pieces: vec![String::new(); size],
            shown: String::new(),
            theirs,
            own,
            agreed: 0,
            contradiction: None,
        }
    }

    /// The whole message that has come with these bytes, if there is one.
    pub fn note(&mut self, peer: usize, bytes: &Message) -> Option<ControlMessage> {
        let (sequence, digest) = (number(&bytes[8..]), number(&bytes[16..]));
        let text = text_of(&bytes[TEXT_AT..]);
        match bytes[0] {
            GIVE_UP => {
                self.pieces[peer].push_str(&text);
                if bytes[1] != 0 {
                    return None;
                }
                let code = Code::from_status(sequence as u32 as i32).unwrap_or(Code::Unknown);
                Some(ControlMessage::GiveUp { code, text: std::mem::take(&mut self.pieces[peer]) })
            }
            ASK => Some(ControlMessage::Ask),
            STATE => Some(ControlMessage::State { sequence }),
            CHECK => {
                self.shown.push_str(&text);
                if bytes[1] == 0 {
                    self.theirs.insert(sequence, (digest, std::mem::take(&mut self.shown)));
                    self.compare();
                }
                None
            }
            _ => None,
        }
    }

    /// This rank has begun a collective.
    pub fn begun(&mut self, sequence: u64, digest: u64, text: String) {
        self.own.insert(sequence, (digest, text));
        self.compare();
    }

    fn compare(&mut self) {
        while let (Some(own), Some(theirs)) = (self.own.get(&(self.agreed + 1)), self.theirs.get(&(self.agreed + 1))) {
            self.agreed += 1;
            if own.0 != theirs.0 && self.contradiction.is_none() {
                self.contradiction = Some((self.agreed, own.1.clone(), theirs.1.clone()));
            }
            self.own.remove(&self.agreed);
            self.theirs.remove(&self.agreed);
        }
    }

    /// Whether the rank before this one has done the same collectives up to this one.
    pub fn agrees(&self, sequence: u64) -> bool {
        self.agreed >= sequence && self.contradiction.is_none()
    }

    /// The first difference: its number, what this rank does, and what the other one does.
    pub fn contradiction(&self) -> Option<(u64, String, String)> {
        self.contradiction.clone()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_comes_whole() {
        let error = Error::new(Code::DataLoss, "ä".repeat(150));
        let mut heard = PeerReports::new(2);
        let notes: Vec<ControlMessage> = give_up(&error).iter().filter_map(|bytes| heard.note(1, bytes)).collect();
        let [ControlMessage::GiveUp { code: Code::DataLoss, text }] = &notes[..] else { panic!("{notes:?}") };
        assert_eq!(text.as_str(), error.message());
    }
}
