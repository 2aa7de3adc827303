class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "image", "data_type": "TYPE_FP32", "dims": [4]})
        config.add_output({"name": "y", "data_type": "TYPE_FP32", "dims": [4]})
        config.set_max_batch_size(8)
        return config

    def execute(self, requests):
        raise NotImplementedError
