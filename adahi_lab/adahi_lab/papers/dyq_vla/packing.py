# SPDX-License-Identifier: Apache-2.0
"""Packs the weights of an exported network into four bits each, with activations of any width.

The network gets one more input, `levels` (B, 1, 1): how many steps a row's activations have on each side of
0, which `levels_of` gives for a number of bits. So one set of weights serves every width, and each robot in a
batch has its own. Packing needs the package onnx; running the result does not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from adahi_ros.core.written_files import replacing
from adahi_ros.policies.networks.onnx_files import DIGEST, note_hash

BLOCK = 32  # weights that share a scale
OFFSET, MOST = 8, 7  # of four bits: from -8 to 7
LEAST = 1e-6  # of an activation's range, so that rows of zeros divide


def pack(full: Path, path: Path) -> None:
    """Write an exported network with packed weights, and its hash into the JSON beside it.

    Args:
        full: the ONNX file of the network.
        path: of the file to write.
    """
    model = onnx.load(full)
    digest = {each.key: each.value for each in model.metadata_props}[DIGEST]
    graph = model.graph
    del graph.value_info[:]
    weights = {each.name: each for each in graph.initializer}
    nodes: list[onnx.NodeProto] = []
    rounded: dict[str, str] = {}
    for node in graph.node:
        if node.op_type != "MatMul" or node.input[1] not in weights:
            nodes.append(node)
            continue
        given, weight = node.input
        if given not in rounded:
            nodes += _rounding(given)
            rounded[given] = f"{given}.rounded"
        matrix = numpy_helper.to_array(weights.pop(weight))
        codes, scales = packed(matrix.T)
        graph.initializer.extend(
            (
                numpy_helper.from_array(codes, f"{weight}.codes"),
                numpy_helper.from_array(scales, f"{weight}.scales"),
            )
        )
        rows, columns = matrix.shape
        how = {"K": rows, "N": columns, "bits": 4, "block_size": BLOCK, "accuracy_level": 1}
        names = [rounded[given], f"{weight}.codes", f"{weight}.scales"]
        nodes.append(helper.make_node("MatMulNBits", names, list(node.output), domain="com.microsoft", **how))
    kept = [each for each in graph.initializer if each.name in weights or each.name.endswith(PARTS)]
    kept += [numpy_helper.from_array(np.array(LEAST, np.float32), "least")]
    kept += [numpy_helper.from_array(np.array([-1], np.int64), "last_axis")]
    for field, values in ((graph.node, nodes), (graph.initializer, kept)):
        del field[:]
        field.extend(values)
    graph.input.append(helper.make_tensor_value_info("levels", onnx.TensorProto.FLOAT, ["batch", 1, 1]))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    helper.set_model_props(model, {DIGEST: digest})
    with replacing(path) as partial:
        onnx.save(model, partial)
    note_hash(path)


PARTS = ".codes", ".scales"


def _rounding(name: str) -> list[onnx.NodeProto]:
    """Return nodes that round activations (B, m, K), each row of K to `levels` steps of its own range."""

    def node(kind: str, inputs: list[str], output: str) -> onnx.NodeProto:
        return helper.make_node(kind, inputs, [f"{name}.{output}"])

    return [
        node("Abs", [name], "size"),
        node("ReduceMax", [f"{name}.size", "last_axis"], "range"),
        node("Max", [f"{name}.range", "least"], "positive"),
        node("Div", [f"{name}.positive", "levels"], "step"),
        node("Div", [name, f"{name}.step"], "steps"),
        node("Round", [f"{name}.steps"], "whole"),
        node("Mul", [f"{name}.whole", f"{name}.step"], "rounded"),
    ]


def packed(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weights (N, K) as codes (N, blocks, 16) uint8, two in each byte, and scales (N, blocks).

    The largest weight of a block is a multiple of its scale without rounding.
    """
    outputs, inputs = matrix.shape
    blocks = -(-inputs // BLOCK)
    whole = np.zeros((outputs, blocks * BLOCK), dtype=np.float32)
    whole[:, :inputs] = matrix
    parts = whole.reshape(outputs, blocks, BLOCK)
    largest = np.take_along_axis(parts, np.abs(parts).argmax(axis=2)[..., None], axis=2)
    scales = np.where(largest == 0.0, 1.0, largest / -OFFSET)
    codes = np.clip(np.rint(parts / scales), -OFFSET, MOST).astype(np.int64) + OFFSET
    pairs = codes[..., 0::2] | codes[..., 1::2] << 4
    return pairs.astype(np.uint8), scales[..., 0].astype(np.float32)
