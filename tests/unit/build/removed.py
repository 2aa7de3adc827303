"""What TensorRT's Python interface lost, by name: in 10.0 and in 11.0. Source: the bindings of 9.3, 10.0, 10.16 and 11.1, compared member by member."""

GONE_IN_10 = frozenset(
    {
        *("build_engine", "max_batch_size", "max_workspace_size", "min_timing_iterations", "STRICT_TYPES", "ENABLE_TACTIC_HEURISTIC", "EXPLICIT_PRECISION"),
        *("num_bindings", "binding_is_input", "get_binding_name", "get_binding_shape", "get_binding_dtype", "get_binding_index", "get_profile_shape"),
        *("execute", "execute_async", "execute_async_v2", "set_binding_shape", "add_fully_connected", "add_rnn_v2", "CaffeParser", "UffParser"),
    }
)
GONE_IN_11 = frozenset(
    {
        *("FP16", "INT8", "BF16", "FP8", "INT4", "FP4", "OBEY_PRECISION_CONSTRAINTS", "PREFER_PRECISION_CONSTRAINTS", "REJECT_EMPTY_ALGORITHMS", "WEIGHTLESS"),
        *("precision", "set_output_type", "int8_calibrator", "IInt8Calibrator", "IInt8EntropyCalibrator2", "IInt8MinMaxCalibrator", "set_calibration_profile"),
        *(
            "get_calibration_profile",
            "set_dynamic_range",
            "dynamic_range",
            "set_quantization_flag",
            "quantization_flags",
            "IAlgorithmSelector",
            "algorithm_selector",
        ),
        *("EXPLICIT_BATCH", "platform_has_fast_fp16", "platform_has_fast_int8", "platform_has_tf32", "supports_model", "parse_with_weight_descriptors"),
        *("device_memory_size", "get_device_memory_size_for_profile", "has_implicit_batch_dimension", "weight_streaming_budget"),
        *("create_execution_context_without_device_memory", "get_plugin_creator", "plugin_creator_list", "CUBLAS", "CUBLAS_LT", "CUDNN"),
        *("PROFILE_SHARING_0806", "MULTIDEVICE_RUNTIME_10_16", "IStreamReader"),
    }
)
