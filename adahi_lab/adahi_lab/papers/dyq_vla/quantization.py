# SPDX-License-Identifier: Apache-2.0
"""Quantises the weights of an exported network to eight-bit integers.

Quantising needs the package onnx; running the result does not.
"""

from __future__ import annotations

import logging
from pathlib import Path

import onnx
from onnxruntime.quantization import QuantType, quantize_dynamic

from adahi_ros.core.written_files import replacing
from adahi_ros.policies.networks.onnx_files import DIGEST, note_hash


def quantize(full: Path, path: Path) -> None:
    """Write an exported network with eight-bit weights, and its hash into the JSON beside it.

    Dynamic quantisation: weights are scaled once, per output; activations at run time, each tensor by its
    own range. Matrix products then use integers; everything else stays as it was.

    Args:
        full: the ONNX file of the network.
        path: of the file to write.
    """
    model = onnx.load(full)
    digest = {each.key: each.value for each in model.metadata_props}[DIGEST]
    del model.graph.value_info[:]  # shapes of the exporter's example, which no longer hold
    _turn_weights(model.graph)
    chatter = logging.getLogger()
    level = chatter.level
    chatter.setLevel(logging.ERROR)  # it recommends a preparation that these networks do not need
    try:
        with replacing(path) as partial:
            quantize_dynamic(
                model,
                partial,
                per_channel=True,
                weight_type=QuantType.QInt8,
                extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
            )
            made = onnx.load(partial)
            onnx.helper.set_model_props(made, {DIGEST: digest})
            onnx.save(made, partial)
    finally:
        chatter.setLevel(level)
    note_hash(path)


def _turn_weights(graph: onnx.GraphProto) -> None:
    """Transpose, once, each weight that products read transposed.

    A flow's network runs several times in a row, and ONNX Runtime would transpose a weight each time.
    """
    products = [node for node in graph.node if node.op_type == "Gemm"]
    transposing = {
        each.input[1] for each in products for value in each.attribute if value.name == "transB" and value.i
    }
    for weight in graph.initializer:
        if weight.name not in transposing:
            continue
        turned = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight).T.copy(), weight.name)
        weight.CopyFrom(turned)
        for node in products:
            if node.input[1] == weight.name:
                kept = [value for value in node.attribute if value.name != "transB"]
                del node.attribute[:]
                node.attribute.extend(kept)
