"""TG090 to TG097: plans that cannot be built, found by `tritongen build`."""

from __future__ import annotations

from tritongen.check.codes.entry import CodeEntry

ENTRIES = (
    CodeEntry(
        "TG090",
        "node-tensorrt-cannot-build",
        None,
        "TensorRT's parser takes every node of the ONNX file.",
        "An operator that TensorRT does not have, or has in another form, leaves no network to build.",
        "Export without it or with another opset, name a plugin (`tensorrt: {build: {plugins: [...]}}`), or serve the model with backend: onnxruntime and"
        " accelerator: tensorrt.",
    ),
    CodeEntry(
        "TG091",
        "profile-against-the-network",
        None,
        "Every profile has sizes for each variable dimension of the network, and values for each shape tensor.",
        "TensorRT refuses a profile that does not fit the network's inputs, or builds nothing.",
        "Give the sizes in `shapes`, the values in `tensorrt.shape_tensors`, and render again.",
    ),
    CodeEntry(
        "TG092",
        "build-that-failed",
        None,
        "The builder makes a plan of the network.",
        "TensorRT gives no plan, with the reasons that the message holds: too little memory, no kernel for a layer, a profile that contradicts the network.",
        "Give the builder more memory, other sizes or another precision, or serve the model with backend: onnxruntime.",
    ),
    CodeEntry(
        "TG093",
        "option-the-builder-lacks",
        None,
        "The TensorRT that builds, and the machine, have what the recipe asks for.",
        "Versions of TensorRT differ in their flags, TensorRT-RTX in the GPUs that it builds for, and a deep learning accelerator is on some machines only.",
        "Remove the option, or build with another version or on another machine.",
    ),
    CodeEntry(
        "TG095",
        "recipes-that-cannot-be-used",
        None,
        "A rendered repository has its recipes beside it, with the files that they were made for.",
        "Without a recipe nobody knows how a plan is built; from another file it would be another model's.",
        "Render the spec again, and edit neither recipes.json nor the files beside it.",
    ),
    CodeEntry(
        "TG096",
        "disk-refuses-a-plan",
        None,
        "Plans, manifests and timing caches can be read and written.",
        "A plan appears whole or not at all: what was there before stays.",
        "Check the path, its permissions and the space left.",
    ),
    CodeEntry(
        "TG097",
        "no-plan-of-that-model",
        None,
        "`--model` names models that have a plan.",
        "There is nothing to build for another name.",
        "Use one of the names that the message lists.",
    ),
)
