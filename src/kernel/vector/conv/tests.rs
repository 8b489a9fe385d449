//! Every algorithm at every level against the definition.
#![forbid(unsafe_code)]

use super::super::activation::{self, Activation};
use super::super::pieces_tests::Cutter;
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

/// The sums before addend and activation.
fn reference(conv: &ConvShape, data: &Data<'_>) -> Vec<f64> {
    let ConvShape { slices, rows, columns, filters, .. } = *conv;
    let (channels, depth) = (conv.channels / slices.taps, conv.depth());
    let mut out = Vec::new();
    for number in 0..conv.images * conv.groups {
        for at in 0..filters * slices.output * rows.output * columns.output {
            let (column, row) = (at % columns.output, at / columns.output % rows.output);
            let (slice, filter) = (at / conv.windows() % slices.output, at / conv.channel_step());
            let filter = number % conv.groups * filters + filter;
            let mut sum = data.bias.map_or(0.0, |bias| f64::from(bias[filter]));
            for k in 0..depth {
                let (across, down) = (k % columns.taps, k / columns.taps % rows.taps);
                let (plane, channel) = (k / (columns.taps * rows.taps) % slices.taps, k / (depth / channels));
                let places = (slices.element(slice, plane), rows.element(row, down), columns.element(column, across));
                if let (Some(z), Some(y), Some(x)) = places {
                    let line = ((number * channels + channel) * slices.input + z) * rows.input + y;
                    let x = data.x[line * columns.input + x];
                    sum += f64::from(x) * f64::from(data.weights[filter * depth + k]);
                }
            }
            out.push(sum);
        }
    }
    out
}

/// The activations that a convolution is tried with.
fn activations(conv: &ConvShape) -> Vec<Activation> {
    use crate::ops::weir_activation_value::*;
    let with = |function, alpha, beta| Activation { function, alpha, beta };
    if conv.activation == Activation::NONE {
        return vec![Activation::NONE];
    }
    vec![
        conv.activation,
        with(WEIR_ACTIVATION_CLIP, -0.25, 6.0),
        with(WEIR_ACTIVATION_HARDSWISH, 1.0 / 6.0, 0.5),
        with(WEIR_ACTIVATION_SWISH, 1.0, 0.0),
    ]
}

/// The definition of an activation.
fn activated(activation: Activation, x: f64) -> f64 {
    use crate::ops::weir_activation_value::*;
    let (alpha, beta) = (f64::from(activation.alpha), f64::from(activation.beta));
    match activation.function {
        WEIR_ACTIVATION_NONE => x,
        WEIR_ACTIVATION_RELU => x.max(0.0),
        WEIR_ACTIVATION_CLIP => x.clamp(alpha, beta),
        WEIR_ACTIVATION_HARDSWISH => x * (alpha * x + beta).clamp(0.0, 1.0),
        WEIR_ACTIVATION_SWISH => x / (1.0 + (-alpha * x).exp()),
        other => panic!("no definition of {other:?}"),
    }
}

fn check(conv: &ConvShape, way: ConvAlgorithm) {
    assert_eq!(conv.way(), way, "{conv:?}");
    let [x, weights, out] = conv.sizes();
    let (x, weights, bias) = (noise(x, 1), noise(weights, 2), noise(conv.groups * conv.filters, 3));
    let addend = noise(out, 4);
    let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    for bias in [None, Some(&bias[..])] {
        let data = Data { x: &x, weights: &weights, packed: None, bias, addend: None };
        let sums = reference(conv, &data);
        for isa in Isa::levels() {
            let compute = |conv: &ConvShape, data: &Data<'_>, caches: &Caches| {
                let mut got = vec![f32::NAN; out];
                let call = StandaloneCall::new(None, conv.cost_ns(), scratch_bytes_on(isa, caches, conv)).unwrap();
                let rows = conv.images * conv.groups * conv.filters;
                compute_with((isa, caches), conv, data, MatrixMut::dense(&mut got, rows, conv.channel_step()), &call)
                    .unwrap();
                got
            };
            let packed = super::packed(isa, conv, &weights).unwrap();
            // In pieces of any size and order, with weights that are packed in the call too, in several stretches.
            let whole = compute(conv, &data, Caches::of_machine());
            let small = Caches { l1: 4 << 10, l2: 16 << 10 };
            for (seed, packed, caches) in [
                (1, None, &small),
                (2, packed.as_ref(), &small),
                (3, None, Caches::of_machine()),
                (4, packed.as_ref(), Caches::of_machine()),
            ] {
                let mut got = vec![f32::NAN; out];
                let cutter = Cutter::new(seed, scratch_bytes_on(isa, caches, conv));
                let to = MatrixMut::dense(&mut got, conv.images * conv.groups * conv.filters, conv.channel_step());
                compute_with((isa, caches), conv, &Data { packed, ..data }, to, &cutter).unwrap();
                cutter.check_guards();
                assert_eq!(bits(&got), bits(&whole), "{isa:?} {way:?} {conv:?}: pieces by seed {seed}");
            }
            let plain = compute(&ConvShape { activation: Activation::NONE, ..*conv }, &data, Caches::of_machine());
            for (number, activation) in activations(conv).into_iter().enumerate() {
                // The first one alone and with an addend, the others with or without, in turn.
                let all = [None, Some(&addend[..])];
                for addend in if number == 0 { &all[..] } else { &all[number % 2..][..1] } {
                    let addend = *addend;
                    let (conv, data) = (ConvShape { activation, ..*conv }, Data { addend, ..data });
                    let got = compute(&conv, &data, Caches::of_machine());
                    for packed in [None, packed.as_ref()] {
                        let caches = Caches { l1: 4 << 10, l2: if packed.is_some() { 16 << 10 } else { 4 << 20 } };
                        let again = compute(&conv, &Data { packed, ..data }, &caches);
                        let packed = packed.is_some();
                        assert_eq!(bits(&again), bits(&got), "{isa:?} {way:?} {conv:?}: {caches:?}, packed: {packed}");
                    }
                    let mut apart = plain.clone();
                    apart.iter_mut().zip(addend.unwrap_or_default()).for_each(|(x, more)| *x += more);
                    activation::apply(activation, isa, &mut apart);
                    assert_eq!(bits(&got), bits(&apart), "{isa:?} {way:?} {conv:?}: what follows changes bits");
                    let bound = 3e-7 * (conv.depth() as f64).sqrt();
                    for (i, &got) in got.iter().enumerate() {
                        let sum = sums[i] + addend.map_or(0.0, |addend| f64::from(addend[i]));
                        let want = activated(activation, sum);
                        // No activation is steeper than 1.5.
                        let error = (f64::from(got) - want).abs() / 1.5;
                        assert!(error <= bound * sum.abs().max(4.0), "{isa:?} {way:?} {conv:?}: {i}: {got} for {want}");
                    }
                }
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
fn directly() {
    for columns in axes(17).into_iter().chain(axes(7)) {
        for rows in [
            axis(5, 3, 1, 1, (1, 1)),
            axis(6, 2, 2, 1, (1, 0)),
            axis(9, 1, 2, 1, (0, 0)),
            axis(8, 3, 1, 3, (3, 3)),
            axis(7, 3, 2, 3, (3, 4)),
            Axis { edge: EdgeMode::Reflect, ..axis(4, 3, 1, 1, (2, 1)) },
        ] {
            if rows.is_plain() && columns.is_plain() || rows.output * columns.output <= 12 {
                continue;
            }
            for (channels, filters) in [(3, 9), (1, 16), (2, 53)] {
                let conv = ConvShape {
                    images: 2,
                    groups: 2,
                    channels,
                    filters,
                    slices: Axis::ONE,
                    rows,
                    columns,
                    activation: Activation::RELU,
                };
                check(&conv, ConvAlgorithm::Direct);
            }
        }
    }
}

#[test]
fn by_winograd() {
    let edges = [(1, 1), (0, 2), (2, 0), (0, 0)];
    for (images, groups, channels, filters, height, width, edge) in [
        (1, 1, 32, 32, 7, 7, EdgeMode::Zero),
        (2, 1, 40, 50, 9, 14, EdgeMode::Zero),
        (1, 2, 33, 41, 10, 29, EdgeMode::Reflect),
        (1, 1, 300, 33, 8, 20, EdgeMode::Zero),
        (1, 1, 32, 33, 9, 301, EdgeMode::Zero),
        (1, 1, 32, 32, 29, 26, EdgeMode::Zero),
    ] {
        for padding in edges {
            let axis = |input: usize| Axis { edge, ..axis(input, 3, 1, 1, padding) };
            let (rows, columns) = (axis(height), axis(width));
            if rows.output.min(columns.output) < 7 {
                continue;
            }
            let activation = Activation::RELU;
            check(
                &ConvShape { images, groups, channels, filters, slices: Axis::ONE, rows, columns, activation },
                ConvAlgorithm::Winograd,
            );
        }
    }
}

#[test]
fn directly_in_several_pieces() {
    let activation = Activation::NONE;
    // Several stretches of channels, several strips of rows, and filters divided.
    let long = ConvShape {
        images: 1,
        groups: 1,
        channels: 180,
        filters: 150,
        slices: Axis::ONE,
        rows: axis(20, 3, 1, 1, (1, 1)),
        columns: axis(21, 3, 1, 1, (1, 1)),
        activation,
    };
    check(&ConvShape { rows: axis(20, 3, 2, 1, (1, 1)), ..long }, ConvAlgorithm::Direct);
    // Taps far apart.
    let apart = |input: usize, dilation: usize| axis(input, 3, 1, dilation, (dilation, dilation));
    for (height, dilation) in [(20, 2), (23, 6), (9, 12)] {
        let (rows, columns) = (apart(height, dilation), apart(21, dilation));
        check(&ConvShape { rows, columns, ..long }, ConvAlgorithm::Direct);
    }
    // Rows longer than a piece, with a stride; a signal.
    let wide = axis(1201, 5, 2, 1, (2, 2));
    check(&ConvShape { channels: 40, filters: 17, columns: wide, ..long }, ConvAlgorithm::Direct);
    check(&ConvShape { channels: 70, filters: 12, rows: Axis::ONE, columns: wide, ..long }, ConvAlgorithm::Direct);
    // Every second or third element of rows, some of them longer than a piece.
    for (height, width, strides) in [(14, 14, (2, 2)), (41, 56, (2, 2)), (13, 700, (3, 2)), (1, 90, (1, 3))] {
        let points = |input: usize, stride: usize| axis(input, 1, stride, 1, (0, 0));
        let (rows, columns) = (points(height, strides.0), points(width, strides.1));
        check(&ConvShape { channels: 260, filters: 37, rows, columns, ..long }, ConvAlgorithm::Direct);
    }
    // The image itself is the matrix.
    let plain = ConvShape { rows: axis(20, 1, 1, 1, (0, 0)), columns: axis(21, 1, 1, 1, (0, 0)), ..long };
    check(&plain, ConvAlgorithm::Product);
    check(&ConvShape { filters: 3, ..plain }, ConvAlgorithm::Product);
    let small = axis(6, 1, 1, 1, (0, 0));
    check(&ConvShape { filters: 3, rows: small, columns: small, ..plain }, ConvAlgorithm::Product);
}

#[test]
fn with_shifted_rows() {
    // Whole registers, parts of them, and rows that are hardly longer than a panel.
    for columns in [48, 50, 130].into_iter().flat_map(|output| {
        let stride = |stride: usize, taps: usize, padding| axis(output * stride, taps, stride, 1, padding);
        [
            stride(1, 3, (1, 1)),
            stride(2, 7, (3, 3)),
            stride(3, 2, (0, 2)),
            axis(output, 3, 1, 4, (4, 4)),
            Axis { edge: EdgeMode::Reflect, ..stride(2, 4, (1, 1)) },
        ]
    }) {
        for rows in [axis(8, 3, 2, 1, (1, 0)), axis(5, 2, 1, 1, (0, 0)), axis(9, 3, 1, 4, (4, 4)), Axis::ONE] {
            for (channels, filters) in [(3, 9), (1, 16), (2, 29)] {
                let conv = ConvShape {
                    images: 2,
                    groups: 2,
                    channels,
                    filters,
                    slices: Axis::ONE,
                    rows,
                    columns,
                    activation: Activation::RELU,
                };
                check(&conv, ConvAlgorithm::Shifted);
            }
        }
    }
    // Several pieces in each direction.
    let conv = ConvShape {
        images: 1,
        groups: 1,
        channels: 2,
        filters: 33,
        slices: Axis::ONE,
        rows: axis(30, 3, 2, 1, (1, 1)),
        columns: axis(1201, 5, 2, 1, (2, 2)),
        activation: Activation::NONE,
    };
    check(&conv, ConvAlgorithm::Shifted);
    check(&ConvShape { rows: Axis::ONE, columns: axis(5000, 9, 1, 1, (8, 0)), ..conv }, ConvAlgorithm::Shifted);
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
                slices: Axis::ONE,
                rows,
                columns,
                activation: Activation::RELU,
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
        slices: Axis::ONE,
        rows: Axis::ONE,
        columns,
        activation: Activation::NONE,
    };
    check(&signal, ConvAlgorithm::Rows);
}

#[test]
fn with_few_filters() {
    for columns in axes(70).into_iter().chain(axes(9)) {
        for (channels, filters) in [(1, 1), (3, 2), (2, 7)] {
            for rows in [
                axis(5, 3, 2, 1, (1, 1)),
                axis(20, 3, 1, 1, (1, 1)),
                axis(11, 5, 1, 2, (4, 4)),
                axis(9, 3, 1, 7, (7, 7)),
            ] {
                let conv = ConvShape {
                    images: 2,
                    groups: 3,
                    channels,
                    filters,
                    slices: Axis::ONE,
                    rows,
                    columns,
                    activation: Activation::RELU,
                };
                if conv.windows() > 12 {
                    check(&conv, ConvAlgorithm::Few);
                }
            }
        }
    }
    // A long signal.
    let columns = axis(10_000, 3, 1, 4, (4, 4));
    let activation = Activation::NONE;
    let signal = ConvShape {
        images: 1,
        groups: 2,
        channels: 5,
        filters: 3,
        slices: Axis::ONE,
        rows: Axis::ONE,
        columns,
        activation,
    };
    check(&signal, ConvAlgorithm::Few);
}

#[test]
fn depthwise_in_place() {
    for (taps, stride) in [(3, 1), (3, 2), (5, 1), (5, 2), (7, 1), (7, 2)] {
        for (height, width, padding) in [
            (7, 7, (taps / 2, taps / 2)),
            (14, 15, (1, 1)),
            (9, 16, (0, 0)),
            (13, 41, (taps, 0)),
            (100, 90, (1, taps - 1)),
        ] {
            for (groups, channels, filters) in [(3, 1, 1), (2, 1, 2), (1, 3, 2)] {
                let conv = ConvShape {
                    images: 2,
                    groups,
                    channels,
                    filters,
                    slices: Axis::ONE,
                    rows: axis(height, taps, stride, 1, padding),
                    columns: axis(width, taps, stride, 1, padding),
                    activation: Activation::RELU,
                };
                if conv.windows() > 12 {
                    check(&conv, ConvAlgorithm::Few);
                }
            }
        }
    }
}

#[test]
fn depthwise_in_place_with_taps_apart() {
    for (taps, dilations) in [(3, (2, 2)), (3, (5, 1)), (3, (1, 4)), (5, (2, 2)), (5, (3, 7)), (7, (2, 2)), (7, (1, 3))]
    {
        for (height, width) in [(7, 7), (14, 14), (2, 16), (20, 41), (33, 90)] {
            let axis = |input: usize, dilation: usize| {
                let reach = (taps - 1) * dilation;
                axis(input, taps, 1, dilation, (reach / 2, reach - reach / 3))
            };
            for (images, groups, filters) in [(2, 3, 1), (1, 2, 2)] {
                let (rows, columns) = (axis(height, dilations.0), axis(width, dilations.1));
                let activation = Activation::RELU;
                check(
                    &ConvShape { images, groups, channels: 1, filters, slices: Axis::ONE, rows, columns, activation },
                    ConvAlgorithm::Few,
                );
            }
        }
    }
}

#[test]
fn depthwise_over_rows_that_windows_share() {
    for (down, across, dilation) in [(7, 5, 2), (6, 6, 2), (9, 9, 1), (4, 1, 1), (6, 11, 3), (15, 3, 1), (5, 4, 1)] {
        for (height, width, edge) in [
            (7, 7, EdgeMode::Zero),
            (14, 14, EdgeMode::Zero),
            (3, 33, EdgeMode::Zero),
            (11, 25, EdgeMode::Reflect),
            (16, 40, EdgeMode::Zero),
        ] {
            let axis = |input: usize, taps: usize| {
                let (reach, last) = ((taps - 1) * dilation, input - 1);
                match edge {
                    EdgeMode::Zero => axis(input, taps, 1, dilation, (reach / 3, reach - reach / 3)),
                    EdgeMode::Reflect => Axis { edge, ..axis(input, taps, 1, dilation, (reach.min(last), last)) },
                }
            };
            let (rows, columns, activation) = (axis(height, down), axis(width, across), Activation::RELU);
            for (channels, filters) in [(1, 1), (2, 2)] {
                let conv =
                    ConvShape { images: 1, groups: 2, channels, filters, slices: Axis::ONE, rows, columns, activation };
                check(&conv, ConvAlgorithm::Few);
            }
        }
    }
}

/// Padding is zeros that are multiplied, also if a weight makes NaN of them.
#[test]
fn depthwise_with_weights_that_are_not_finite() {
    for (taps, stride, dilation, width) in [
        (3, 1, 1, 14),
        (3, 2, 1, 41),
        (5, 1, 1, 7),
        (5, 2, 1, 60),
        (7, 1, 1, 7),
        (7, 1, 1, 28),
        (7, 2, 1, 40),
        (9, 1, 1, 20),
        (3, 1, 3, 18),
    ] {
        let axis = |input| axis(input, taps, stride, dilation, (taps / 2 * dilation, taps / 2 * dilation));
        let (rows, columns, activation) = (axis(9), axis(width), Activation::NONE);
        let conv =
            ConvShape { images: 1, groups: 2, channels: 1, filters: 1, slices: Axis::ONE, rows, columns, activation };
        assert_eq!(conv.way(), ConvAlgorithm::Few);
        let [x, weights, out] = conv.sizes();
        let (x, finite) = (noise(x, 1), noise(weights, 2));
        for (tap, isa) in (0..conv.depth()).flat_map(|tap| Isa::levels().map(move |isa| (tap, isa))) {
            let mut weights = finite.clone();
            weights[tap] = f32::INFINITY;
            let data = Data { x: &x, weights: &weights, packed: None, bias: None, addend: None };
            let mut got = vec![0.0; out];
            let bytes = scratch_bytes_on(isa, Caches::of_machine(), &conv);
            let call = StandaloneCall::new(None, conv.cost_ns(), bytes).unwrap();
            let into = MatrixMut::dense(&mut got, 2, conv.windows());
            compute_with((isa, Caches::of_machine()), &conv, &data, into, &call).unwrap();
            for (i, &got) in got.iter().enumerate() {
                let (group, at) = (i / conv.windows(), i % conv.windows());
                let row = rows.element(at / columns.output, tap / taps);
                let column = columns.element(at % columns.output, tap % taps);
                let is_padding = row.is_none() || column.is_none();
                assert_eq!(got.is_nan(), group == 0 && is_padding, "{isa:?} {conv:?}: tap {tap}, {i}: {got}");
                assert_eq!(got.is_infinite(), group == 0 && !is_padding, "{isa:?} {conv:?}: tap {tap}, {i}: {got}");
            }
        }
    }
}

/// Every algorithm over the slices of a volume, which reach beyond its ends, lie apart, or are mirrored.
#[test]
fn of_volumes() {
    use ConvAlgorithm::*;
    let mirrored = |axis: Axis| Axis { edge: EdgeMode::Reflect, ..axis };
    for slices in [
        axis(4, 3, 1, 1, (1, 1)),
        axis(5, 3, 2, 1, (1, 0)),
        axis(6, 2, 1, 3, (2, 3)),
        axis(5, 1, 2, 1, (0, 0)),
        axis(2, 1, 1, 1, (1, 1)),
        axis(3, 3, 1, 1, (0, 0)),
        mirrored(axis(4, 3, 1, 1, (2, 1))),
    ] {
        for (way, groups, channels, filters, rows, columns) in [
            (Direct, 2, 3, 17, axis(9, 3, 1, 1, (1, 1)), axis(8, 3, 2, 1, (1, 0))),
            (Direct, 1, 5, 12, axis(9, 1, 2, 1, (0, 0)), axis(14, 1, 2, 1, (0, 0))),
            (Shifted, 1, 2, 11, axis(4, 3, 1, 1, (1, 1)), axis(50, 3, 1, 1, (1, 1))),
            (Winograd, 1, 32, 33, axis(9, 3, 1, 1, (1, 1)), axis(11, 3, 1, 1, (0, 2))),
            (Rows, 2, 4, 9, axis(3, 3, 1, 1, (1, 1)), axis(4, 2, 1, 1, (0, 1))),
            (Few, 3, 1, 1, axis(9, 3, 1, 1, (1, 1)), axis(14, 3, 1, 1, (1, 1))),
            (Few, 3, 1, 1, axis(13, 3, 2, 1, (1, 1)), axis(33, 3, 2, 1, (1, 1))),
            (Few, 2, 1, 2, axis(13, 5, 1, 1, (2, 2)), axis(18, 5, 1, 1, (2, 2))),
            (Few, 2, 2, 3, axis(9, 3, 1, 1, (1, 1)), axis(40, 3, 1, 1, (1, 1))),
            (Few, 2, 1, 1, axis(9, 7, 1, 1, (3, 3)), axis(19, 4, 3, 1, (1, 2))),
        ] {
            let [rows, columns] = match slices.edge {
                EdgeMode::Zero => [rows, columns],
                EdgeMode::Reflect => [mirrored(rows), mirrored(columns)],
            };
            let (channels, activation) = (channels * slices.taps, Activation::RELU);
            check(&ConvShape { images: 2, groups, channels, filters, slices, rows, columns, activation }, way);
        }
    }
}
