//! Every algorithm at every level against the definition.
#![forbid(unsafe_code)]

use super::super::activation::Activation;
use super::super::standalone::StandaloneCall;
use super::super::window::EdgeMode;
use super::*;

fn noise(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// An axis with `after` elements of padding behind its end.
fn axis(input: usize, taps: usize, stride: usize, dilation: usize, (before, after): (usize, usize)) -> Axis {
    let output = (input + before + after - (taps - 1) * dilation - 1) / stride + 1;
    Axis { input, output, taps, stride, dilation, before, edge: EdgeMode::Zero }
}

fn reference(conv: &ConvShape, data: &Data<'_>) -> Vec<f64> {
    let mut out = Vec::new();
    for number in 0..conv.images * conv.groups {
        for filter in 0..conv.filters {
            let filter = number % conv.groups * conv.filters + filter;
            for (row, column) in (0..conv.rows.output).flat_map(|row| (0..conv.columns.output).map(move |c| (row, c))) {
                let mut sum = data.bias.map_or(0.0, |bias| f64::from(bias[filter]));
                for k in 0..conv.depth() {
                    let (channel, rest) =
                        (k / (conv.rows.taps * conv.columns.taps), k % (conv.rows.taps * conv.columns.taps));
                    let y = conv.rows.element(row, rest / conv.columns.taps);
                    let x = conv.columns.element(column, rest % conv.columns.taps);
                    if let (Some(y), Some(x)) = (y, x) {
                        let at = (number * conv.channels + channel) * conv.plane() + y * conv.columns.input + x;
                        sum += f64::from(data.x[at]) * f64::from(data.weights[filter * conv.depth() + k]);
                    }
                }
                out.push(if conv.activation == Activation::WEIR_ACTIVATION_RELU { sum.max(0.0) } else { sum });
            }
        }
    }
    out
}

fn check(conv: &ConvShape, way: ConvAlgorithm) {
    assert_eq!(conv.way(), way, "{conv:?}");
    let [x, weights, out] = conv.sizes();
    let (x, weights, bias) = (noise(x, 1), noise(weights, 2), noise(conv.groups * conv.filters, 3));
    for bias in [None, Some(&bias[..])] {
        let data = Data { x: &x, weights: &weights, bias };
        let want = reference(conv, &data);
        for isa in Isa::available() {
            let mut got = vec![f32::NAN; out];
            let call = StandaloneCall::new(None, conv.cost_ns(), conv.scratch_bytes()).unwrap();
            let rows = conv.images * conv.groups * conv.filters;
            compute_with(isa, conv, &data, MatrixMut::dense(&mut got, rows, conv.windows()), &call).unwrap();
            let bound = 2e-7 * (conv.depth() as f64).sqrt() * 4.0;
            for (i, (&got, &want)) in got.iter().zip(&want).enumerate() {
                let error = (f64::from(got) - want).abs();
                assert!(error <= bound, "{isa:?} {way:?} {conv:?}: {i}: {got} for {want}");
            }
        }
    }
}

/// All kinds of axes: strides, dilations, paddings, mirrors.
fn axes(input: usize) -> Vec<Axis> {
    let zero = [
        axis(input, 1, 1, 1, (0, 0)),
        axis(input, 3, 1, 1, (1, 1)),
        axis(input, 3, 2, 1, (0, 1)),
        axis(input, 2, 1, 2, (2, 0)),
        axis(input, 5, 3, 1, (4, 2)),
    ];
    let mirrored = [axis(input, 3, 1, 1, (2, 2)), axis(input, 4, 2, 1, (1, 2))];
    zero.into_iter().chain(mirrored.map(|axis| Axis { edge: EdgeMode::Reflect, ..axis })).collect()
}

#[test]
fn patches_in_panels() {
    for columns in axes(17) {
        for rows in [
            axis(5, 3, 1, 1, (1, 1)),
            axis(6, 2, 2, 1, (1, 0)),
            Axis { edge: EdgeMode::Reflect, ..axis(4, 3, 1, 1, (2, 1)) },
        ] {
            let conv = ConvShape {
                images: 2,
                groups: 2,
                channels: 3,
                filters: 5,
                rows,
                columns,
                activation: Activation::WEIR_ACTIVATION_RELU,
            };
            check(&conv, ConvAlgorithm::Panels);
        }
    }
    let activation = Activation::WEIR_ACTIVATION_NONE;
    // Several K blocks, several blocks of columns; and the image itself as the matrix.
    let long = ConvShape {
        images: 1,
        groups: 1,
        channels: 180,
        filters: 14,
        rows: axis(20, 3, 1, 1, (1, 1)),
        columns: axis(21, 3, 1, 1, (1, 1)),
        activation,
    };
    check(&long, ConvAlgorithm::Panels);
    check(
        &ConvShape { rows: axis(20, 1, 1, 1, (0, 0)), columns: axis(21, 1, 1, 1, (0, 0)), ..long },
        ConvAlgorithm::Panels,
    );
}

#[test]
fn patches_in_rows() {
    for columns in axes(9).into_iter().filter(|axis| axis.output <= 4) {
        let rows = axis(4, 3, 1, 1, (0, 1));
        check(
            &ConvShape {
                images: 2,
                groups: 2,
                channels: 3,
                filters: 37,
                rows,
                columns,
                activation: Activation::WEIR_ACTIVATION_RELU,
            },
            ConvAlgorithm::Rows,
        );
    }
    // A short signal with a long window, as a spectrum has.
    let columns = Axis { edge: EdgeMode::Reflect, ..axis(576, 256, 128, 1, (0, 64)) };
    let signal = ConvShape {
        images: 1,
        groups: 1,
        channels: 1,
        filters: 258,
        rows: Axis::ONE,
        columns,
        activation: Activation::WEIR_ACTIVATION_NONE,
    };
    check(&signal, ConvAlgorithm::Rows);
}

#[test]
fn without_patches() {
    for columns in axes(70).into_iter().chain(axes(9)) {
        for (channels, filters) in [(1, 1), (3, 2)] {
            let rows = axis(5, 3, 2, 1, (1, 1));
            check(
                &ConvShape {
                    images: 2,
                    groups: 3,
                    channels,
                    filters,
                    rows,
                    columns,
                    activation: Activation::WEIR_ACTIVATION_RELU,
                },
                ConvAlgorithm::Direct,
            );
        }
    }
}
