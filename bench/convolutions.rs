//! Convolutions alone, on one thread, with weights packed ahead: `cargo bench --bench convolutions`, with a part of a
//! name as an optional argument, and `--cold` to read weights from memory, as in a network. WEIR_MAX_ISA chooses the
//! instruction set. Prints Markdown: the least time of a quarter of a second, and the operations of the definition in
//! it.

use std::time::{Duration, Instant};
use weir_core::base::Result;
use weir_core::kernel::vector::activation::Activation;
use weir_core::kernel::vector::conv::{self, ConvShape, Data};
use weir_core::kernel::vector::isa::Isa;
use weir_core::kernel::vector::site::{MatrixMut, Site};
use weir_core::kernel::vector::window::{Axis, EdgeMode};
use weir_core::memory::AlignedBuffer;
use weir_core::sync::Claim;
use weir_core::threadpool::Span;

const TIME: Duration = Duration::from_millis(250);

/// Bytes of weights that no cache holds.
const COLD: usize = 96 << 20;

/// Numbers between -1 and 1, as aligned as those of a tensor.
struct Floats(AlignedBuffer);

impl Floats {
    fn new(len: usize) -> Floats {
        let buffer = AlignedBuffer::zeroed(len * size_of::<f32>(), "numbers").unwrap();
        // SAFETY: the floats of the buffer, which nobody else has.
        let all = unsafe { std::slice::from_raw_parts_mut(buffer.data().cast::<f32>(), len) };
        all.iter_mut().enumerate().for_each(|(i, x)| *x = (i * 7919 % 8001) as f32 / 4000.0 - 1.0);
        Floats(buffer)
    }

    fn all(&self) -> &[f32] {
        // SAFETY: the floats of the buffer; only those of the output change, which is read by nobody.
        unsafe { std::slice::from_raw_parts(self.0.data().cast(), self.0.bytes() / size_of::<f32>()) }
    }
}

/// The calling thread.
struct Alone(AlignedBuffer);

// SAFETY: the one claim has all items, and the only slot.
unsafe impl Site for Alone {
    fn parallel_for(&self, span: &Span, body: &(dyn Fn(Claim) -> Result<()> + Sync)) -> Result<()> {
        // SAFETY: the only claim.
        body(unsafe { Claim::new(0, span.items, 0) })
    }

    fn scratch_bytes(&self) -> usize {
        self.0.bytes()
    }

    fn scratch(&self, _: usize) -> *mut u8 {
        self.0.data()
    }
}

/// A convolution of a square image: its size, channels, filters, taps, stride and padding.
fn measure(name: &str, (wanted, cold): (&str, bool), [size, channels, filters, taps, stride, padding]: [usize; 6]) {
    let name = format!("{name}: {taps} x {taps}, stride {stride}, {channels} x {size} x {size} to {filters}");
    if !name.contains(wanted) {
        return;
    }
    let output = (size + 2 * padding - taps) / stride + 1;
    let axis = Axis { input: size, output, taps, stride, dilation: 1, before: padding, edge: EdgeMode::Zero };
    let activation = Activation::RELU;
    let (slices, rows, columns) = (Axis::ONE, axis, axis);
    let conv = ConvShape { images: 1, groups: 1, channels, filters, slices, rows, columns, activation };
    let [x, weights, out] = conv.sizes().map(Floats::new);
    let (bias, copies) = (Floats::new(filters), if cold { COLD.div_ceil(weights.0.bytes()) } else { 1 });
    // Other layers drive a layer's weights out of the caches.
    let weights: Vec<_> = (0..copies).map(|_| Floats::new(weights.all().len())).collect();
    let packed: Vec<_> =
        weights.iter().map(|weights| conv::packed(Isa::best(), &conv, weights.all()).unwrap()).collect();
    let site = Alone(AlignedBuffer::zeroed(conv::scratch_bytes(&conv).max(64), "scratch").unwrap());
    let (begin, mut least) = (Instant::now(), Duration::MAX);
    for copy in (0..copies).cycle() {
        let (weights, packed) = (weights[copy].all(), packed[copy].as_ref());
        let data = Data { x: x.all(), weights, packed, bias: Some(bias.all()), addend: None };
        // SAFETY: nobody else uses the output.
        let out = unsafe { MatrixMut::new(out.0.data().cast(), filters, conv.windows(), conv.windows()) };
        let start = Instant::now();
        conv::compute(&conv, &data, out, &site).unwrap();
        least = least.min(start.elapsed());
        if begin.elapsed() > TIME {
            break;
        }
    }
    let operations = 2.0 * (conv.windows() * conv.depth() * filters) as f64;
    println!("| {name} | {:.1} | {:.1} |", least.as_nanos() as f64 / 1e3, operations / least.as_nanos() as f64);
}

fn main() {
    let wanted: String = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let cold = std::env::args().any(|arg| arg == "--cold");
    println!("{:?}\n\n| | us | GFLOP/s |\n|---|--:|--:|", Isa::best());
    for (name, sizes) in [
        ("first, resnet", [224, 3, 64, 7, 2, 3]),
        ("first, squeezenet", [224, 3, 64, 3, 2, 0]),
        ("first, shufflenet", [224, 3, 24, 3, 2, 1]),
        ("first, vgg", [224, 3, 64, 3, 1, 1]),
        ("first, ppocr", [320, 3, 8, 3, 2, 1]),
        ("first, zfnet", [224, 3, 96, 7, 2, 1]),
        ("plain, squeezenet", [55, 16, 64, 3, 1, 1]),
        ("plain, squeezenet", [27, 32, 128, 3, 1, 1]),
        ("plain, squeezenet", [27, 48, 192, 3, 1, 1]),
        ("plain, squeezenet", [13, 48, 192, 3, 1, 1]),
        ("plain, squeezenet", [13, 64, 256, 3, 1, 1]),
        ("plain, resnet", [56, 64, 64, 3, 1, 1]),
        ("plain, resnet", [28, 128, 128, 3, 1, 1]),
        ("plain, resnet", [14, 256, 256, 3, 1, 1]),
        ("plain, resnet", [7, 512, 512, 3, 1, 1]),
        ("plain, ppocr", [80, 96, 24, 3, 1, 1]),
        ("plain, few", [28, 24, 24, 3, 1, 1]),
        ("strided, inception", [56, 64, 96, 3, 2, 1]),
        ("strided, inception", [28, 128, 192, 3, 2, 1]),
        ("strided, inception", [14, 192, 256, 3, 2, 1]),
        ("one, resnet", [56, 64, 64, 1, 1, 0]),
        ("one, resnet", [56, 64, 256, 1, 1, 0]),
        ("one, resnet", [56, 256, 64, 1, 1, 0]),
        ("one, resnet", [28, 512, 128, 1, 1, 0]),
        ("one, resnet", [28, 128, 512, 1, 1, 0]),
        ("one, resnet", [14, 1024, 256, 1, 1, 0]),
        ("one, resnet", [14, 256, 1024, 1, 1, 0]),
        ("one, resnet", [7, 2048, 512, 1, 1, 0]),
        ("one, resnet", [7, 512, 2048, 1, 1, 0]),
        ("one, resnet", [56, 256, 512, 1, 2, 0]),
        ("one, resnet", [28, 512, 1024, 1, 2, 0]),
        ("one, resnet", [14, 1024, 2048, 1, 2, 0]),
        ("one, densenet", [28, 256, 128, 1, 1, 0]),
        ("one, densenet", [14, 512, 128, 1, 1, 0]),
        ("one, densenet", [7, 768, 128, 1, 1, 0]),
        ("one, squeezenet", [55, 128, 16, 1, 1, 0]),
        ("one, squeezenet", [27, 256, 32, 1, 1, 0]),
    ] {
        measure(name, (&wanted, cold), sizes);
    }
}
