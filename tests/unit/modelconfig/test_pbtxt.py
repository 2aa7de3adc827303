from google.protobuf import text_format

from tritongen.modelconfig import ModelConfig, parse_pbtxt, print_pbtxt


def test_a_zero_max_batch_size_is_written_out():
    assert "max_batch_size: 0\n" in print_pbtxt(ModelConfig(name="m"))


def test_what_is_printed_is_parsed_back_whole():
    config = ModelConfig(name="m", backend="onnxruntime", max_batch_size=4)
    config.input.add(name='weird"name\n', data_type="TYPE_FP32", dims=[-1, 3])
    config.parameters["b"].string_value = "1"
    config.parameters["a"].string_value = "2"
    config.dynamic_batching.SetInParent()
    assert parse_pbtxt(print_pbtxt(config)) == config


def test_the_text_does_not_depend_on_the_order_in_which_maps_were_filled():
    one, other = ModelConfig(), ModelConfig()
    for config, keys in ((one, "abc"), (other, "cab")):
        for key in keys:
            config.parameters[key].string_value = key
    assert print_pbtxt(one) == print_pbtxt(other)


def test_no_field_is_lost():
    """Every field of ModelConfig, set to something, comes back."""
    text = """
    name: "m" platform: "p" backend: "b" runtime: "r" max_batch_size: 3 default_model_filename: "f"
    input { name: "x" data_type: TYPE_FP32 dims: 1 } output { name: "y" data_type: TYPE_FP32 dims: 1 }
    batch_input { kind: BATCH_ITEM_SHAPE target_name: "t" data_type: TYPE_FP32 source_input: "x" }
    batch_output { target_name: "y" source_input: "x" } optimization { priority: PRIORITY_MAX }
    sequence_batching { direct { } } instance_group { count: 2 } cc_model_filenames { key: "8.6" value: "m" }
    metric_tags { key: "k" value: "v" } parameters { key: "k" value { string_value: "v" } } model_warmup { name: "w" }
    model_operations { op_library_filename: "l" } model_transaction_policy { decoupled: true }
    model_repository_agents { agents { name: "a" } } response_cache { enable: true } model_metrics { metric_control { metric_identifier { family: "f" } } }
    version_policy { all { } }
    """
    config = text_format.Parse(text, ModelConfig())
    set_fields = {field.name for field, _ in config.ListFields()}
    assert {field.name for field in ModelConfig.DESCRIPTOR.fields} - set_fields == {"dynamic_batching", "ensemble_scheduling"}  # the other two of a oneof
    assert parse_pbtxt(print_pbtxt(config)) == config
