# SPDX-License-Identifier: Apache-2.0
"""Writes one layer of a token policy's network as an ONNX file of its own. Needs the package onnx."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from adahi_lab.papers.tokens.token_checkpoint import TokenCheckpoint
from adahi_ros.core.tensor_files import read_tensors
from adahi_ros.core.written_files import replacing
from adahi_ros.policies.networks.onnx_files import DIGEST, note_hash

LAYER = """
layer (float[m, width] tokens, float[2, heads, old, size] past, float[m, all] mask)
    => (float[m, width] made, float[2, heads, m, size] new, float[1, heads, m, all] attention)
{
    normed = LayerNormalization <epsilon = 1e-5> (tokens, attention_norm.weight, attention_norm.bias)
    product = MatMul (normed, query_key_value.weight)
    projected = Add (product, query_key_value.bias)
    parts = Reshape (projected, parts_shape)
    turned = Transpose <perm = [1, 2, 0, 3]> (parts)
    query, new = Split <axis = 0> (turned, one_two)
    present = Concat <axis = 2> (past, new)
    keys, values = Split <axis = 0> (present, one_one)
    columns = Transpose <perm = [0, 1, 3, 2]> (keys)
    scores = MatMul (query, columns)
    scaled = Mul (scores, scale)
    masked = Add (scaled, mask)
    attention = Softmax <axis = -1> (masked)
    mixed = MatMul (attention, values)
    rows = Transpose <perm = [0, 2, 1, 3]> (mixed)
    flat = Reshape (rows, flat_shape)
    output = MatMul (flat, attention_out.weight)
    shifted = Add (output, attention_out.bias)
    seen = Add (tokens, shifted)
    normed_again = LayerNormalization <epsilon = 1e-5> (seen, mlp_norm.weight, mlp_norm.bias)
    wide = MatMul (normed_again, mlp.0.weight)
    wider = Add (wide, mlp.0.bias)
    bent = Gelu (wider)
    narrow = MatMul (bent, mlp.2.weight)
    added = Add (narrow, mlp.2.bias)
    made = Add (seen, added)
}
"""
OPSET = 20


def export_layer(checkpoint: TokenCheckpoint, layer: int, path: Path) -> None:
    """Write a layer.

    It reads positions (m, width), the keys and values of earlier ones, and what is added to the scores of
    both. It returns the positions after the layer, their keys and values, and the attention.

    Args:
        checkpoint: of the network.
        layer: its number.
        path: of the file.
    """
    sizes = checkpoint.sizes
    size = sizes.width // sizes.heads
    prefix = f"blocks.{layer}."
    arrays = {
        name.removeprefix(prefix): values.astype(np.float32)
        for name, values in read_tensors(checkpoint.weights).items()
        if name.startswith(prefix)
    }
    arrays = {name: values.T.copy() if values.ndim == 2 else values for name, values in arrays.items()}
    arrays |= {
        "parts_shape": np.array([-1, 3, sizes.heads, size]),
        "flat_shape": np.array([-1, sizes.width]),
        "one_two": np.array([1, 2]),
        "one_one": np.array([1, 1]),
        "scale": np.array(size**-0.5, dtype=np.float32),
    }
    text = LAYER
    for name in arrays:  # the parser knows no dots in names
        text = text.replace(name, name.replace(".", "_"))
    graph = parser.parse_graph(text)
    graph.initializer.extend(
        numpy_helper.from_array(values, name.replace(".", "_")) for name, values in arrays.items()
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    onnx.checker.check_model(model)
    helper.set_model_props(model, {DIGEST: checkpoint.digest()})
    with replacing(path) as partial:
        onnx.save(model, partial)
    note_hash(path)
