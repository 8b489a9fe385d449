//! Messages in the encoding of protocol buffers, as far as traces need it.
#![forbid(unsafe_code)]

/// A message that is being written.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;

impl Message {
    pub fn new() -> Message {
        Message::default()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn put(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.put(u64::from(field << 3 | kind));
    }

    pub fn varint(&mut self, field: u32, value: u64) -> &mut Message {
        self.key(field, VARINT);
        self.put(value);
        self
    }

    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Message {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub fn text(&mut self, field: u32, text: &str) -> &mut Message {
        self.key(field, BYTES);
        self.put(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    pub fn message(&mut self, field: u32, message: &Message) -> &mut Message {
        self.key(field, BYTES);
        self.put(message.0.len() as u64);
        self.0.extend_from_slice(&message.0);
        self
    }

    /// A message that `fill` writes.
    pub fn nested(&mut self, field: u32, fill: impl FnOnce(&mut Message)) -> &mut Message {
        let mut message = Message::new();
        fill(&mut message);
        self.message(field, &message)
    }

    /// A message of two numbers.
    pub fn pair(&mut self, field: u32, first: (u32, u64), second: (u32, u64)) -> &mut Message {
        self.key(field, BYTES);
        let length = |(field, value): (u32, u64)| length_of(u64::from(field << 3)) + length_of(value);
        self.put(length(first) + length(second));
        self.varint(first.0, first.1).varint(second.0, second.1)
    }

    /// The bytes in front of a message in this field.
    pub fn head(&mut self, field: u32, length: usize) {
        self.key(field, BYTES);
        self.put(length as u64);
    }

    /// Numbers in one field.
    pub fn packed(&mut self, field: u32, values: &[u64]) -> &mut Message {
        self.nested(field, |message| values.iter().for_each(|value| message.put(*value)))
    }
}

/// How many bytes a number takes.
fn length_of(value: u64) -> u64 {
    u64::from(64 - (value | 1).leading_zeros()).div_ceil(7)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_that_of_the_specification() {
        // Of "Encoding", in the documentation of protocol buffers.
        assert_eq!(Message::new().varint(1, 150).bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::new().text(2, "testing").bytes(), [0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g']);
        assert_eq!(
            Message::new()
                .nested(3, |inner| {
                    inner.varint(1, 150);
                })
                .bytes(),
            [0x1a, 3, 8, 0x96, 1]
        );
        assert_eq!(Message::new().packed(6, &[3, 270, 86942]).bytes(), [0x32, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5]);
        for value in [0, 1, 127, 128, 16383, 16384, u64::MAX >> 1, u64::MAX] {
            let pair = Message::new().pair(4, (1, 7), (3, value)).bytes().to_vec();
            let nested = Message::new()
                .nested(4, |inner| {
                    inner.varint(1, 7).varint(3, value);
                })
                .bytes()
                .to_vec();
            assert_eq!(pair, nested, "{value}");
        }
        assert_eq!(Message::new().fixed64(1, 1).bytes(), [9, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
