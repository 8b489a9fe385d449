//! The files of `examples/digits`; `train.py` there says how they are made.

pub const PIXELS: usize = 64;
pub const CLASSES: usize = 10;

pub struct Layer {
    pub inputs: usize,
    pub outputs: usize,
    pub weights: Vec<f32>,
    pub bias: Vec<f32>,
}

pub struct Digits {
    pub layers: Vec<Layer>,
    /// Of scans that the network was not trained with.
    pub pixels: Vec<f32>,
    pub labels: Vec<u8>,
}

struct Reader(std::vec::IntoIter<u8>);

impl Reader {
    fn open(name: &str, magic: &[u8; 8]) -> Reader {
        // Elsewhere than in the repository the examples are where this says.
        let examples = std::env::var("WEIR_TEST_EXAMPLES");
        let examples = examples.unwrap_or_else(|_| format!("{}/examples", env!("CARGO_MANIFEST_DIR")));
        let path = format!("{examples}/digits/{name}");
        let mut reader = Reader(std::fs::read(path).unwrap().into_iter());
        assert_eq!(reader.bytes(8), magic);
        reader
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let bytes: Vec<u8> = self.0.by_ref().take(count).collect();
        assert_eq!(bytes.len(), count);
        bytes
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().unwrap())
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| f32::from_bits(self.word())).collect()
    }
}

impl Digits {
    pub fn load() -> Digits {
        let mut file = Reader::open("digits.bin", b"WEIRDIGS");
        let [scans, training, height, width] = [(); 4].map(|()| file.word() as usize);
        assert_eq!(height * width, PIXELS);
        let pixels = file.bytes(scans * PIXELS)[training * PIXELS..].iter().map(|&pixel| f32::from(pixel)).collect();
        let labels = file.bytes(scans)[training..].to_vec();
        let mut file = Reader::open("weights.bin", b"WEIRMLPS");
        let count = file.word();
        let sizes: Vec<usize> = (0..=count).map(|_| file.word() as usize).collect();
        let layers = sizes.windows(2).map(|sizes| {
            let (inputs, outputs) = (sizes[0], sizes[1]);
            Layer { inputs, outputs, weights: file.floats(inputs * outputs), bias: file.floats(outputs) }
        });
        let layers = layers.collect();
        Digits { layers, pixels, labels }
    }
}
