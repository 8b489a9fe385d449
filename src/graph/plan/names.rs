//! The names of a program's nodes.
#![forbid(unsafe_code)]

/// The nodes' names, one behind the other, with a mark at each `STRIDE`th: they are looked up for texts only, and there
/// are many.
#[derive(Debug, Default)]
pub(in crate::graph) struct NodeNames {
    text: Vec<u8>,
    starts: Vec<u32>,
    count: usize,
}

impl NodeNames {
    const STRIDE: usize = 16;
    /// Behind each name; no byte of UTF-8.
    const END: u8 = 0xff;

    pub fn push(&mut self, parts: &[&str]) {
        if self.count.is_multiple_of(Self::STRIDE) {
            self.starts.push(self.text.len() as u32);
        }
        parts.iter().for_each(|part| self.text.extend_from_slice(part.as_bytes()));
        self.text.push(Self::END);
        self.count += 1;
    }

    pub fn get(&self, node: usize) -> &str {
        let start = self.starts[node / Self::STRIDE] as usize;
        let name = self.text[start..].split(|&byte| byte == Self::END).nth(node % Self::STRIDE);
        name.and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default()
    }

    pub fn bytes(&self) -> usize {
        self.text.capacity() + self.starts.capacity() * size_of::<u32>()
    }

    pub fn shrink(&mut self) {
        self.text.shrink_to_fit();
        self.starts.shrink_to_fit();
    }
}
