class TritonPythonModel:
    def execute(self, requests):
        raise NotImplementedError

    @staticmethod
    def auto_complete_config(config):
        config.set_max_batch_size(0)
        return config
