// SPDX-License-Identifier: MIT OR Apache-2.0
//
// The graphs of real networks, operator by operator as frameworks write them down: weights are read by nodes of their
// own, a convolution has two inputs, a batch normalisation five, a bias is an operator. Only the edges matter here.

#include <initializer_list>

#include "graphs.hpp"

namespace bench {

namespace {

using node = std::uint32_t;

class network {
public:
    /// Reads a variable.
    node read() {
        operators_.push_back({{}, true});
        return last();
    }
    node add(std::initializer_list<node> inputs) { return add(std::vector<node>(inputs)); }
    node add(std::vector<node> inputs) {
        operators_.push_back({std::move(inputs), false});
        return last();
    }

    node conv(node x) { return add({x, read()}); }
    node batch_norm(node x) {
        const node scale = read(), shift = read(), mean = read(), variance = read();
        return add({x, scale, shift, mean, variance});
    }
    node relu(node x) { return add({x}); }
    node dense(node x) {
        const node product = add({x, read()});
        return add({product, read()}); // the bias
    }

    shape forward(std::string name) const {
        std::vector<std::pair<node, node>> edges;
        for (node i = 0; i < operators_.size(); i++) {
            for (const node from : operators_[i].inputs) edges.emplace_back(from, i);
        }
        return make_shape(std::move(name), static_cast<std::uint32_t>(operators_.size()), std::move(edges));
    }

    /// Forward, backward and the update of each variable that was read. The gradient of an operator is one node, which
    /// reads what the operator read; where several come back, one more adds them up.
    shape training_step(std::string name) const {
        network whole = *this;
        const node rate = whole.read();
        std::vector<std::vector<node>> gradients(operators_.size()); // what came back to each operator
        gradients.back().push_back(static_cast<node>(operators_.size()) - 1);
        for (std::size_t i = operators_.size(); i-- > 0;) {
            if (gradients[i].empty()) continue; // the loss does not depend on it
            const node sum = gradients[i].size() == 1 ? gradients[i][0] : whole.add(gradients[i]);
            if (operators_[i].is_read) {
                whole.add({sum, rate, static_cast<node>(i)}); // the update
                continue;
            }
            std::vector<node> inputs = operators_[i].inputs;
            if (inputs.empty()) continue;
            inputs.push_back(sum);
            // One node for what goes on backwards, and one for a weight: that is how a convolution's are split.
            const node back = whole.add(inputs);
            bool is_first = true;
            for (const node from : operators_[i].inputs) {
                const bool is_weight = operators_[from].is_read && operators_[i].inputs.size() == 2;
                gradients[from].push_back(is_weight && !is_first ? whole.add({sum, operators_[i].inputs[0]}) : back);
                is_first = false;
            }
        }
        return whole.forward(std::move(name));
    }

private:
    struct an_operator {
        std::vector<node> inputs;
        bool is_read;
    };
    node last() const { return static_cast<node>(operators_.size()) - 1; }
    std::vector<an_operator> operators_;
};

// He, Zhang, Ren and Sun 2015: 53 convolutions in 16 blocks.
network resnet50_network() {
    network net;
    const node image = net.add({});
    node x = net.relu(net.batch_norm(net.conv(image)));
    x = net.add({x}); // the largest of 3 x 3
    for (const int blocks : {3, 4, 6, 3}) {
        for (int block = 0; block < blocks; block++) {
            const node way_around = block == 0 ? net.batch_norm(net.conv(x)) : x;
            node y = net.relu(net.batch_norm(net.conv(x)));
            y = net.relu(net.batch_norm(net.conv(y)));
            y = net.batch_norm(net.conv(y));
            x = net.relu(net.add({y, way_around}));
        }
    }
    x = net.add({x}); // the mean over the image
    const node logits = net.dense(x);
    const node label = net.add({});
    net.add({logits, label}); // the loss
    return net;
}

} // namespace

shape resnet50() {
    return resnet50_network().forward("ResNet-50");
}

shape resnet50_training_step() {
    return resnet50_network().training_step("ResNet-50 training");
}

// An encoder (Vaswani et al. 2017), each head with operators of its own.
shape transformer(int layers, int heads) {
    network net;
    const node tokens = net.add({}), mask = net.add({});
    const auto normalize = [&net](node x) {
        const node scale = net.read(), shift = net.read();
        return net.add({x, scale, shift});
    };
    node x = net.add({tokens, net.read()}); // the embedding
    for (int layer = 0; layer < layers; layer++) {
        const node normal = normalize(x);
        const node q = net.dense(normal), k = net.dense(normal), v = net.dense(normal);
        std::vector<node> parts;
        for (int head = 0; head < heads; head++) {
            const node q_part = net.add({q}), k_part = net.add({k}), v_part = net.add({v}); // slices
            const node scores = net.add({q_part, net.add({k_part})});                       // k transposed
            const node masked = net.add({net.add({scores}), mask});                         // scaled, masked
            parts.push_back(net.add({net.add({masked}), v_part}));                          // softmax, times v
        }
        x = net.add({net.dense(net.add(parts)), x});
        const node hidden = net.dense(normalize(x));
        const node gate = net.add({net.add({hidden})}); // gelu by its parts
        x = net.add({net.dense(net.add({hidden, gate})), x});
    }
    net.dense(normalize(x));
    return net.forward("transformer " + std::to_string(layers) + "x" + std::to_string(heads));
}

} // namespace bench
